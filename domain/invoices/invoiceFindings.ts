import type { Finding, FindingDay } from '../reconciliation/engine/index.js';

import type { Grade } from '../reconciliation/matching/cells.js';
import type { FindingKind } from '../reconciliation/taxonomy.js';
import type { InvoiceCheck, Scaled } from './invoiceReading.js';
import { type Contradiction, convert, type TieOut } from './tieOut.js';

export interface ConfirmedInvoice {
  provider: string;
  accountId: string;
  number: string;
  /** Last charged day, and the day of the dollar amounts. */
  day: string;
  tieOut: TieOut;
  checks: readonly InvoiceCheck[];
  /** Dollars for one unit of the compared currency, and of the invoice's own. */
  comparedRate: Scaled;
  ownRate: Scaled;
  /** The bill of some days is still provisional. */
  isProvisional: boolean;
  /** Version of the current weights; no figure here depends on them. */
  weightSet: string;
}

/** A fault before its conversion to a finding. */
interface Mistake {
  kind: FindingKind;
  /** Place in the document, so that two mistakes of one invoice stay separate. */
  variant: string;
  model: string;
  chargedPico: Scaled;
  rightPico: Scaled;
  grade: Grade;
  cause: string;
  advice: string;
  isRate: boolean;
}

const ADVICE: Record<Contradiction['kind'] | 'tax_or_fx_error' | 'arithmetic', string> = {
  duplicate_charge:
    'Ask the provider to credit the repeated line; the invoice’s page and the bill show it once.',
  period_double_count: 'Ask the provider to cancel one of the two invoices, and pay only the other.',
  invoice_total_mismatch: 'Ask the provider which usage the invoice charges beyond its own cost report.',
  tax_or_fx_error: 'Ask the provider for a corrected invoice: a wrong tax cannot be deducted either.',
  arithmetic: 'Ask the provider for a corrected invoice: its own amounts do not add up.',
};

/** Checks whose difference is money that the document charges beyond its own lines. */
const SUMS: ReadonlySet<string> = new Set(['lines_sum', 'total', 'amount_due']);

/**
 * The findings of an invoice that a person has confirmed as the provider's mistake: contradictions of the bill, wrong
 * taxes and wrong sums. A wrong product of one line counts only without a bill for the line: otherwise the contradiction
 * of the bill includes it.
 */
export function findingsOfInvoice(invoice: ConfirmedInvoice): Finding[] {
  const { tieOut, checks } = invoice;
  const contradictions = tieOut.tie === 'contradicts' ? tieOut.contradictions : [];
  const isCompared = tieOut.tie !== 'not_comparable';
  const broken = checks.filter(
    ({ check, ok }) =>
      !ok && (check === 'tax' || SUMS.has(check) || (check === 'quantity_times_unit_price' && !isCompared)),
  );
  return [
    ...contradictions.map((one) => fromContradiction(invoice, one)),
    ...broken.flatMap((check) => fromCheck(invoice, check)),
  ]
    .filter(({ chargedPico, rightPico }) => chargedPico !== rightPico)
    .map((mistake) => toFinding(invoice, mistake));
}

function fromContradiction({ number, comparedRate }: ConfirmedInvoice, one: Contradiction): Mistake {
  const [line] = one.lines.slice(-1);
  const place = one.kind === 'duplicate_charge' && line !== undefined ? ` line ${line}` : '';
  return {
    kind: one.kind,
    variant: `invoice ${number}${place}`,
    model: one.model ?? '',
    chargedPico: convert(one.charged, comparedRate),
    rightPico: convert(one.right, comparedRate),
    grade: one.kind === 'invoice_total_mismatch' ? 'MEDIUM' : 'HIGH',
    cause: one.cause,
    advice: ADVICE[one.kind],
    isRate: false,
  };
}

function fromCheck({ number, ownRate }: ConfirmedInvoice, one: InvoiceCheck): Mistake[] {
  if (one.expected === null || one.found === null) return [];
  const isTax = one.check === 'tax';
  return [
    {
      kind: isTax ? 'tax_or_fx_error' : 'invoice_total_mismatch',
      variant: `invoice ${number} ${one.check}${one.line === null ? '' : ` line ${one.line}`}`,
      model: '',
      chargedPico: convert(one.found, ownRate),
      rightPico: convert(one.expected, ownRate),
      grade: 'HIGH',
      cause: `Invoice ${number}: ${one.message}`,
      advice: ADVICE[isTax ? 'tax_or_fx_error' : 'arithmetic'],
      isRate: true,
    },
  ];
}

/** Probability of an arithmetic fault that a person has confirmed. */
const PROBABILITY: Partial<Record<Grade, number>> = { HIGH: 0.99, MEDIUM: 0.8 };

function toFinding(invoice: ConfirmedInvoice, mistake: Mistake): Finding {
  const { chargedPico, rightPico, isRate, grade } = mistake;
  const impactPico = chargedPico - rightPico;
  const probability = PROBABILITY[grade] ?? 0.5;
  const isOvercharge = impactPico > 0n;
  const day: FindingDay = {
    ...{ day: invoice.day, billedPico: chargedPico, expectedPico: rightPico, impactPico, probability },
    ...{ ratePico: isRate ? impactPico : 0n, volumePico: isRate ? 0n : impactPico, ownPricingPico: 0n },
  };
  return {
    ...{ kind: mistake.kind, variant: mistake.variant, model: mistake.model, grade, probability, impactPico },
    ...{ provider: invoice.provider, accountId: invoice.accountId, weightSet: invoice.weightSet },
    direction: isOvercharge ? 'overcharge' : 'undercharge',
    blame: 'provider',
    claimable: isOvercharge,
    recoverablePico: isOvercharge ? impactPico : 0n,
    days: [day],
    lines: [],
    matchProbability: 1,
    visibility: 'V3',
    provisional: invoice.isProvisional,
    missing: invoice.isProvisional ? ['closed_period'] : [],
    next: null,
    waterfall: [],
    cause: mistake.cause,
    advice: [mistake.advice],
    critical: false,
  };
}
