/** The first page of a claim's document: the parties, the faults, the sums and the request. */
import { picoFromDecimal } from '../../money.js';
import { claimCents, dollarsText } from '../claimAmount.js';
import type { ClaimEvidence, EvidenceDispute } from './claimEvidence.js';
import { billZone, faultText } from './documentParties.js';
import { contractTexts, type DocumentTable, numberColumn, rateChanges, textColumn } from './documentRates.js';
import { cellsOf, reportCount } from './documentSupport.js';
import { counted, listed, shortened, spanText, words } from './documentTexts.js';

export interface Summary {
  facts: { name: string; value: string; isCode: boolean }[];
  /** A kind of fault, its sentence, and the findings of it. */
  faults: { title: string; text: string; findings: DocumentTable }[];
  moreFaults: string;
  /** Rates as charged beside the right ones; null where no rate is disputed. */
  rateChanges: DocumentTable | null;
  rateChangesNote: string;
  sums: { name: string; value: string; isTotal: boolean }[];
  sumsNote: string;
  remedy: string;
  remedyTo: string;
  notes: readonly string[];
}

/** Findings, and models by their names, that the page has room for. */
const FINDINGS_MAX = 6;
const MODELS_MAX = 6;
const MODEL_CHARS = 36;
/** Rows of tables that it has room for, and as many as the sentence and the head of a table take. */
const ROWS_MAX = 20;
const HEAD_ROWS = 3.5;

export function summaryOf(evidence: ClaimEvidence, provider: string, amount: string): Summary {
  const { claim, disputes } = evidence;
  const shown = largestOf(disputes);
  const more = disputes.length - shown.length;
  const changes = rateChanges(evidence, Math.floor(ROWS_MAX - rowsOf(shown)));
  const period = spanText(claim.period_start, claim.period_end);
  return {
    facts: factsOf(evidence, provider, period),
    faults: [...faultsOf(shown, provider).values()].map(({ title, text, of }) => ({
      title,
      text,
      findings: findingsTable(of, evidence),
    })),
    moreFaults: more > 0 ? `${counted(more, 'further finding')} in the lines.` : '',
    rateChanges: changes?.table ?? null,
    rateChangesNote:
      changes && changes.more > 0 ? `${counted(changes.more, 'further rate')} in the lines.` : '',
    ...sumsOf(evidence),
    remedy: `Please issue a credit memo of ${amount} for ${period}.`,
    remedyTo: `${claim.provider_account_id ? 'To the account below. ' : ''}Please quote the claim’s id.`,
    notes: evidence.notes,
  };
}

/** As many of the largest as the page has room for, in the order of the claim. */
function largestOf(disputes: readonly EvidenceDispute[]): EvidenceDispute[] {
  const shown = new Set<EvidenceDispute>();
  for (const one of [...disputes].sort((a, b) => b.amount_cents - a.amount_cents)) {
    if (shown.size === FINDINGS_MAX || rowsOf([...shown, one]) >= ROWS_MAX) break;
    shown.add(one);
  }
  return disputes.filter((one) => shown.has(one));
}

/** With the table of rates. */
const rowsOf = (disputes: readonly EvidenceDispute[]): number =>
  disputes.length + HEAD_ROWS * (faultsOf(disputes, '').size + 1);

function factsOf(evidence: ClaimEvidence, provider: string, period: string): Summary['facts'] {
  const { claim } = evidence;
  const models = [...new Set(evidence.disputes.map(({ model }) => model))];
  const contracts = contractTexts(evidence, provider);
  const invoices = [...new Set(evidence.invoice_refs.flatMap(({ invoice_id }) => invoice_id ?? []))];
  const fact = (name: string, value: string, isCode = false) => ({ name, value, isCode });
  return [
    fact('From', claim.organization.name),
    fact('To', `${provider}, billing support`),
    claim.provider_account_id
      ? fact('Account', claim.provider_account_id, true)
      : fact('Account', 'all accounts of the organization'),
    fact('Claim', claim.id, true),
    fact('Period', `${period} (${billZone(evidence)})`),
    fact(models.length > 1 ? 'Models' : 'Model', modelsText(models)),
    ...(invoices.length > 0
      ? [fact(invoices.length > 1 ? 'Invoices' : 'Invoice', invoices.join(', '), true)]
      : [fact('Bill', billText(evidence, provider))]),
    ...contracts.map((text) => fact('Contract', text)),
  ];
}

/** One long name is shown whole, of several the beginnings. */
function modelsText(models: readonly string[]): string {
  const [only, ...others] = models;
  if (only !== undefined && others.length === 0) return only;
  const shown = models.slice(0, MODELS_MAX).map((model) => shortened(model, MODEL_CHARS));
  const more = models.length - shown.length;
  return more > 0 ? `${shown.join(', ')} and ${more} more` : shown.join(', ');
}

function billText({ source_pages }: ClaimEvidence, provider: string): string {
  if (source_pages.length === 0) return `${provider}’s bill as it was imported`;
  const names = [...new Set(source_pages.map(({ filename, file }) => filename ?? file))];
  const shown = names.length > 3 ? counted(names.length, 'page') : listed(names);
  const reports = names.length === 1 ? 'report' : 'reports';
  return `${shown}: ${provider}’s own ${reports}, without an invoice number`;
}

/** Disputes by their kind and sentence. */
function faultsOf(
  disputes: readonly EvidenceDispute[],
  provider: string,
): Map<string, { title: string; text: string; of: EvidenceDispute[] }> {
  const faults = new Map<string, { title: string; text: string; of: EvidenceDispute[] }>();
  for (const dispute of disputes) {
    const text = shortened(faultText(dispute, provider), 300);
    const key = JSON.stringify([dispute.kind, text]);
    const fault = faults.get(key) ?? { title: words(dispute.kind), text, of: [] };
    fault.of.push(dispute);
    faults.set(key, fault);
  }
  return faults;
}

/** With the units charged beside those of the usage report, where the report counts fewer. */
function findingsTable(disputes: readonly EvidenceDispute[], evidence: ClaimEvidence): DocumentTable {
  const counts = disputes.map((dispute) => reportCount(cellsOf(dispute, evidence)));
  const hasCounts = counts.every((count) => count !== undefined);
  return {
    columns: [
      textColumn('Model'),
      textColumn('Days'),
      ...(hasCounts ? ['Units charged', 'Units by the usage report'].map(numberColumn) : []),
      numberColumn('Charged too much'),
    ],
    rows: disputes.map((one, at) => [
      shortened(one.model, MODEL_CHARS),
      spanText(one.period_start, one.period_end),
      ...(hasCounts ? [counts[at]?.billed ?? '', counts[at]?.reported ?? ''] : []),
      dollarsText(BigInt(one.amount_cents)),
    ]),
  };
}

const centsOf = (exact: string): bigint => claimCents(picoFromDecimal(exact) ?? 0n);

/**
 * In whole cents that add up: charged, difference and credit are rounded as everywhere in the claim, and what lies between
 * two of them is the difference of the two.
 */
function sumsOf({ totals }: ClaimEvidence): Pick<Summary, 'sums' | 'sumsNote'> {
  const charged = centsOf(totals.billed_usd_exact);
  const difference = centsOf(totals.disputed_usd_exact);
  const credit = BigInt(totals.recoverable_cents);
  const sum = (name: string, cents: bigint, isTotal = false) => ({
    name,
    value: dollarsText(cents).replace('-', '−'),
    isTotal,
  });
  return {
    sums: [
      sum('Charged on the disputed lines', charged),
      sum('Right charge for the same lines', charged - difference),
      ...(totals.netted_usd_exact === '0'
        ? []
        : [
            sum('Difference', difference),
            sum('Less what was charged too little in the same months', credit - difference),
          ]),
      sum('Credit requested', credit, true),
    ],
    sumsNote:
      'In whole cents that add up; the credit is rounded down. The tables on the following pages have all digits.',
  };
}
