import type { InvoiceTruth, TruthLineKind } from '../invoiceTruth.js';
import type { Day } from './dates.js';
import { type Decimal, decimalText } from './decimal.js';
import type { Currency, NumberStyle } from './numberStyle.js';

/** A line before the layout. */
export interface DraftLine {
  description: string;
  quantity: Decimal | null;
  unitPrice: Decimal | null;
  amount: Decimal;
  taxRate: Decimal | null;
  period: { start: Day; end: Day } | null;
  kind: TruthLineKind;
}

export interface DraftTax {
  name: string;
  rate: Decimal | null;
  base: Decimal | null;
  amount: Decimal;
  isReverseCharge: boolean;
}

export interface DraftInvoice {
  supplier: string;
  kind: 'invoice' | 'credit_note' | 'receipt';
  features: Set<string>;
  currency: Currency;
  style: NumberStyle;
  issuer: { name: string; address: string[] };
  customer: { name: string; address: string[] };
  number: string;
  account: string | null;
  issueDate: Day;
  dueDate: Day | null;
  period: { start: Day; end: Day } | null;
  lines: DraftLine[];
  subtotal: Decimal;
  discounts: { name: string; amount: Decimal }[];
  taxes: DraftTax[];
  total: Decimal;
  credits: { name: string; amount: Decimal }[];
  amountPaid: Decimal | null;
  amountDue: Decimal;
  replaces: string | null;
  contradictions: InvoiceTruth['contradictions'];
}

/** Optional fields that a layout prints. */
export interface Printed {
  subtotal: boolean;
  amountDue: boolean;
  amountPaid: boolean;
  period: boolean;
  dueDate: boolean;
}

export function truthOf(
  draft: DraftInvoice,
  printed: Printed,
  pages: number,
  boxes: InvoiceTruth['boxes'],
): InvoiceTruth {
  const text = (value: Decimal | null) => (value === null ? null : decimalText(value));
  return {
    supplier: draft.supplier,
    features: [...draft.features].sort(),
    pages,
    kind: draft.kind,
    number: draft.number,
    issuer: draft.issuer.name,
    account: draft.account,
    issueDate: draft.issueDate,
    dueDate: printed.dueDate ? draft.dueDate : null,
    periodStart: printed.period ? (draft.period?.start ?? null) : null,
    periodEnd: printed.period ? (draft.period?.end ?? null) : null,
    currency: draft.currency.code,
    lines: draft.lines.map((line) => ({
      description: line.description,
      quantity: text(line.quantity),
      unitPrice: text(line.unitPrice),
      amount: decimalText(line.amount),
      taxRate: text(line.taxRate),
      periodStart: line.period?.start ?? null,
      periodEnd: line.period?.end ?? null,
      kind: line.kind,
    })),
    subtotal: printed.subtotal ? decimalText(draft.subtotal) : null,
    discounts: draft.discounts.map(({ amount }) => decimalText(amount)),
    taxes: draft.taxes.map(({ name, rate, base, amount, isReverseCharge }) => ({
      name,
      rate: text(rate),
      base: text(base),
      amount: decimalText(amount),
      isReverseCharge,
    })),
    credits: draft.credits.map(({ amount }) => decimalText(amount)),
    total: decimalText(draft.total),
    amountPaid: printed.amountPaid ? text(draft.amountPaid) : null,
    amountDue: printed.amountDue ? decimalText(draft.amountDue) : null,
    replaces: draft.replaces,
    contradictions: draft.contradictions,
    boxes,
  };
}
