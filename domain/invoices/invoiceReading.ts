import type { Box, InvoiceEngine } from './pageWords.js';

/**
 * Twelve decimals, as `Pico` of domain/money.ts, in the invoice's currency (amounts, unit prices) or in units
 * (quantities).
 */
export type Scaled = bigint;

/** A value with its place on the page. */
export interface ReadField<T> {
  value: T;
  /** As printed. */
  text: string;
  /** Null if the value was concluded from other fields. */
  box: Box | null;
  /** 0 to 1. */
  confidence: number;
  engine: InvoiceEngine;
}

export type Maybe<T> = ReadField<T> | null;

/** Invoices and credit notes are compared with bills; a receipt only confirms a payment. */
export const INVOICE_KINDS = ['invoice', 'credit_note', 'receipt'] as const;
export type InvoiceKind = (typeof INVOICE_KINDS)[number];

/** Only `usage` is compared with billed usage; `prepaid_purchase` fills the prepaid ledger. */
export const LINE_KINDS = [
  'usage',
  'prepaid_purchase',
  'subscription',
  'credit',
  'tax',
  'discount',
  'proration',
  'other',
] as const;
export type LineKind = (typeof LINE_KINDS)[number];

export interface InvoiceLineReading {
  /** From 1, in the order of the document. */
  line: number;
  description: ReadField<string>;
  quantity: Maybe<Scaled>;
  unitPrice: Maybe<Scaled>;
  /** Before tax, with its sign. */
  amount: ReadField<Scaled>;
  /** Percent. */
  taxRate: Maybe<Scaled>;
  /** UTC days, the last one inclusive. */
  periodStart: Maybe<string>;
  periodEnd: Maybe<string>;
  kind: LineKind;
  /** Canonical model id, where the description names one. */
  model: string | null;
  /** A class of tokens (domain/billing), where the description names one. */
  tokenClass: string | null;
}

/** One tax as the document states it. */
export interface TaxReading {
  name: string;
  /** Percent. */
  rate: Scaled | null;
  /** The taxed amount. */
  base: Scaled | null;
  amount: ReadField<Scaled>;
  /** The customer owes the tax, so the document adds none. */
  isReverseCharge: boolean;
}

/** The content of a document. Sums are as printed; `checkInvoice` compares them. */
export interface InvoiceReading {
  kind: InvoiceKind;
  /** The layout, such as `stripe` or `table`. */
  layout: string;
  number: Maybe<string>;
  issuer: Maybe<string>;
  /** The account at the provider, where the document names it. */
  account: Maybe<string>;
  issueDate: Maybe<string>;
  dueDate: Maybe<string>;
  /** Service period, UTC days, the last one inclusive. */
  periodStart: Maybe<string>;
  periodEnd: Maybe<string>;
  /** ISO 4217. */
  currency: Maybe<string>;
  lines: readonly InvoiceLineReading[];
  subtotal: Maybe<Scaled>;
  /** Below the subtotal; negative. */
  discounts: readonly ReadField<Scaled>[];
  taxes: readonly TaxReading[];
  /** Applied after tax, such as a balance; negative. */
  credits: readonly ReadField<Scaled>[];
  total: Maybe<Scaled>;
  amountPaid: Maybe<Scaled>;
  amountDue: Maybe<Scaled>;
  /** Number of the document that this one replaces or credits. */
  replaces: Maybe<string>;
}

/** One sum or product of a document. */
export interface InvoiceCheck {
  /** The comparison, such as `quantity_times_unit_price`, `lines_sum`, `tax`, `total` or `amount_due`. */
  check: string;
  /** The line's number; null: the document as a whole. */
  line: number | null;
  ok: boolean;
  expected: Scaled | null;
  found: Scaled | null;
  /** `found - expected`; null if one of them is missing. */
  difference: Scaled | null;
  /** One sentence for people. */
  message: string;
}
