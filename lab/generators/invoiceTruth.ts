/**
 * The known content of a generated invoice. Generators write it beside the PDF and share nothing else with each other or
 * with the judged reader. Every number is a decimal as text, every day is `2026-08-31`.
 */

export type TruthLineKind =
  | 'usage'
  | 'prepaid_purchase'
  | 'subscription'
  | 'credit'
  | 'tax'
  | 'discount'
  | 'proration'
  | 'other';

export interface TruthLine {
  /** As printed, without the service period below it; wrapped lines are joined by a space. */
  description: string;
  quantity: string | null;
  unitPrice: string | null;
  /** As printed, before tax. */
  amount: string;
  /** Percent. */
  taxRate: string | null;
  periodStart: string | null;
  /** The last day. */
  periodEnd: string | null;
  kind: TruthLineKind;
}

export interface TruthTax {
  name: string;
  /** Percent. */
  rate: string | null;
  base: string | null;
  amount: string;
  isReverseCharge: boolean;
}

/** A sum or product of the document that is printed wrong. */
export interface Contradiction {
  kind: 'line' | 'lines_sum' | 'tax' | 'total' | 'amount_due';
  /** From 1; null: no single line. */
  line: number | null;
  printed: string;
  right: string;
}

/** Points from the page's upper left corner. */
export interface TruthBox {
  /** From 1. */
  page: number;
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface InvoiceTruth {
  supplier: string;
  /** Special features of the document, such as `reverse_charge` or `lost_glyphs`. */
  features: string[];
  pages: number;
  kind: 'invoice' | 'credit_note' | 'receipt';
  number: string;
  issuer: string;
  account: string | null;
  issueDate: string;
  dueDate: string | null;
  /** Service period of the whole document, if it is printed once for all lines. */
  periodStart: string | null;
  periodEnd: string | null;
  currency: string;
  lines: TruthLine[];
  /** Null if none is printed. */
  subtotal: string | null;
  /** Taken off before tax; negative. */
  discounts: string[];
  taxes: TruthTax[];
  /** Taken off after tax, such as a balance; negative. */
  credits: string[];
  total: string;
  amountPaid: string | null;
  amountDue: string | null;
  replaces: string | null;
  contradictions: Contradiction[];
  /** Places of printed fields, by path, such as `total` or `lines.3.amount` (lines from 1). */
  boxes: Record<string, TruthBox>;
}

export interface GeneratedInvoice {
  /** Unique among the generators and seeds, such as `first-7-012`. */
  name: string;
  pdf: Buffer;
  truth: InvoiceTruth;
}
