import { decimalFromPico, picoFromDecimal } from '../money.js';
import type { LineCorrection } from './correctLine.js';
import type {
  InvoiceCheck,
  InvoiceLineReading,
  InvoiceReading,
  Maybe,
  ReadField,
  Scaled,
  TaxReading,
} from './invoiceReading.js';

/** A value as JSON holds it: amounts as decimal texts. */
export type Stored<T> = T extends bigint
  ? string
  : T extends readonly (infer U)[]
    ? Stored<U>[]
    : T extends object
      ? { [K in keyof T]: Stored<T[K]> }
      : T;

/** The stored fields of an invoice, without its lines. */
export type InvoiceFields = Omit<InvoiceReading, 'lines'>;

export function toStored<T>(value: T): Stored<T> {
  return JSON.parse(JSON.stringify(value, (_, part: unknown) => storable(part))) as Stored<T>;
}

/** Postgres stores neither the character NUL nor half a surrogate pair, which a PDF may contain. */
function storable(part: unknown): unknown {
  if (typeof part === 'bigint') return decimalFromPico(part);
  return typeof part === 'string' ? part.toWellFormed().replaceAll('\0', '') : part;
}

const scaled = (text: string): Scaled => picoFromDecimal(text) ?? 0n;
const amountOrNull = (text: string | null): Scaled | null => (text === null ? null : scaled(text));
const amount = (field: Stored<ReadField<Scaled>>): ReadField<Scaled> => ({
  ...field,
  value: scaled(field.value),
});
const maybeAmount = (field: Stored<Maybe<Scaled>>): Maybe<Scaled> => field && amount(field);

export function restoreLine(line: Stored<InvoiceLineReading>): InvoiceLineReading {
  return {
    ...line,
    quantity: maybeAmount(line.quantity),
    unitPrice: maybeAmount(line.unitPrice),
    amount: amount(line.amount),
    taxRate: maybeAmount(line.taxRate),
  };
}

const restoreTax = (tax: Stored<TaxReading>): TaxReading => ({
  ...tax,
  rate: amountOrNull(tax.rate),
  base: amountOrNull(tax.base),
  amount: amount(tax.amount),
});

export function restoreReading(
  fields: Stored<InvoiceFields>,
  lines: readonly Stored<InvoiceLineReading>[],
): InvoiceReading {
  return {
    ...fields,
    lines: lines.map(restoreLine),
    subtotal: maybeAmount(fields.subtotal),
    discounts: fields.discounts.map(amount),
    taxes: fields.taxes.map(restoreTax),
    credits: fields.credits.map(amount),
    total: maybeAmount(fields.total),
    amountPaid: maybeAmount(fields.amountPaid),
    amountDue: maybeAmount(fields.amountDue),
  };
}

export function restoreCorrection(correction: Stored<LineCorrection> | null): LineCorrection {
  const { description, quantity, unitPrice, amount: sum, tax } = correction ?? {};
  return {
    ...(description === undefined ? {} : { description }),
    ...(quantity === undefined ? {} : { quantity: amountOrNull(quantity) }),
    ...(unitPrice === undefined ? {} : { unitPrice: amountOrNull(unitPrice) }),
    ...(sum === undefined ? {} : { amount: scaled(sum) }),
    ...(tax === undefined ? {} : { tax: amountOrNull(tax) }),
  };
}

export function restoreCheck(check: Stored<InvoiceCheck>): InvoiceCheck {
  return {
    ...check,
    expected: amountOrNull(check.expected),
    found: amountOrNull(check.found),
    difference: amountOrNull(check.difference),
  };
}
