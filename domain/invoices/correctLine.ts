import { decimalFromPico } from '../money.js';
import type { Provider } from '../providers.js';
import type { InvoiceLineReading, LineKind, ReadField, Scaled } from './invoiceReading.js';
import { classifyLine } from './lineClass.js';

/** A person's values by field. A quantity, price or tax of null: the line has none. */
export interface LineCorrection {
  description?: string;
  quantity?: Scaled | null;
  unitPrice?: Scaled | null;
  amount?: Scaled;
  tax?: Scaled | null;
}

/** The effective values of a line: as read, or as a person corrected them. */
export interface EffectiveLine {
  /** From 1. */
  line: number;
  description: string;
  quantity: Scaled | null;
  unitPrice: Scaled | null;
  amount: Scaled;
  /** From a person's correction. */
  tax: Scaled | null;
  periodStart: string | null;
  /** Inclusive. */
  periodEnd: string | null;
  kind: LineKind;
  model: string | null;
  tokenClass: string | null;
}

/** Applies a person's correction. A new description or sign classifies the line again. */
export function correctLine(
  line: InvoiceLineReading,
  correction: LineCorrection,
  provider: Provider,
): InvoiceLineReading {
  const { description, amount } = correction;
  const corrected: InvoiceLineReading = {
    ...line,
    ...(description === undefined ? {} : { description: { ...line.description, value: description } }),
    ...(amount === undefined ? {} : { amount: written(amount, line.amount) }),
    quantity: correctedField(line.quantity, correction.quantity, line.amount),
    unitPrice: correctedField(line.unitPrice, correction.unitPrice, line.amount),
  };
  if (description === undefined && amount === undefined) return corrected;
  const { kind, model, tokenClass } = classifyLine(corrected.description.value, {
    amount: corrected.amount.value,
    provider,
    hasQuantity: corrected.quantity !== null,
  });
  return { ...corrected, kind, model, tokenClass };
}

function correctedField(
  read: ReadField<Scaled> | null,
  value: Scaled | null | undefined,
  like: ReadField<Scaled>,
): ReadField<Scaled> | null {
  if (value === undefined) return read;
  return value === null ? null : written(value, read ?? { ...like, box: null });
}

/** A person's value keeps the place on the page. */
function written(value: Scaled, read: ReadField<Scaled>): ReadField<Scaled> {
  return { ...read, value, text: decimalFromPico(value), confidence: 1 };
}

export function effectiveLine(line: InvoiceLineReading, tax: Scaled | null): EffectiveLine {
  return {
    line: line.line,
    description: line.description.value,
    quantity: line.quantity?.value ?? null,
    unitPrice: line.unitPrice?.value ?? null,
    amount: line.amount.value,
    tax,
    periodStart: line.periodStart?.value ?? null,
    periodEnd: line.periodEnd?.value ?? null,
    kind: line.kind,
    model: line.model,
    tokenClass: line.tokenClass,
  };
}
