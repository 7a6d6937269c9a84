import type { InvoiceCheck, InvoiceReading, ReadField, Scaled } from './invoiceReading.js';
import { ONE } from './reading/printedNumber.js';

/** Agreements that a total needs: the text layer is exact, recognised figures need two confirmations. */
const AGREEMENTS_OF_TEXT = 1;
const AGREEMENTS_OF_RECOGNITION = 2;
/**
 * Recognition misreads the same digit in the same way wherever it is printed. If all figures repeat one amount, no sum
 * mixes digits, so each figure needs at least this confidence.
 */
const REPEATED_CONFIDENCE_MIN = 0.85;
/** A sum with a lower confidence confirms nothing. */
const CONFIDENCE_MIN = 0.3;

/**
 * Counts the independent agreements that confirm the total: the lines, the subtotal, the amount due or paid, and the
 * products of quantity and unit price.
 */
export function totalEvidence(reading: InvoiceReading, checks: readonly InvoiceCheck[]): InvoiceCheck {
  const { total, subtotal, amountDue, amountPaid, lines } = reading;
  const isOk = (name: string) => checks.some((check) => check.check === name && check.ok);
  const figures = [total, subtotal, amountDue, ...lines.map((line) => line.amount)].filter(
    (field) => field !== null,
  );
  const recognised = figures.some((field) => field.engine !== 'text');
  const linked = isOk('lines_sum') && (subtotal === null || isOk('total'));
  const agreements = [
    linked && lines.length > 0,
    subtotal !== null && isOk('total') && isOk('lines_sum'),
    amountDue !== null && isOk('amount_due') && amountDue.value !== 0n,
    amountDue === null && amountPaid !== null && amountPaid.value === total?.value,
    linked && confirmedByProducts(reading, checks),
  ].filter(Boolean).length;
  const needed = recognised ? AGREEMENTS_OF_RECOGNITION : AGREEMENTS_OF_TEXT;
  const doubted = recognised && total !== null ? doubtOf(figures, reading) : undefined;
  const ok = total !== null && linked && agreements >= needed && doubted === undefined;
  const message = ok
    ? `The total rests on ${agreements} independent ${agreements === 1 ? 'agreement' : 'agreements'}.`
    : (doubted ?? `The total rests on ${agreements} independent agreements; ${needed} are needed.`);
  return {
    check: 'total_evidence',
    line: null,
    ok,
    expected: null,
    found: total?.value ?? null,
    difference: null,
    message,
  };
}

/** The reason why recognised figures prove nothing; undefined if they do. */
function doubtOf(figures: readonly ReadField<Scaled>[], reading: InvoiceReading): string | undefined {
  const read = figures.filter((field) => field.box !== null && field.engine !== 'text');
  const { total, subtotal, amountDue } = reading;
  const unsure = [total, subtotal, amountDue].find(
    (field) => field && read.includes(field) && field.confidence < CONFIDENCE_MIN,
  );
  if (unsure) return `Recognition is not certain of ${unsure.text}.`;
  const values = new Set(
    [...figures, ...reading.taxes.map((tax) => tax.amount)]
      .map((field) => field.value)
      .filter((value) => value !== 0n),
  );
  if (values.size === 1 && read.some((field) => field.confidence < REPEATED_CONFIDENCE_MIN))
    return 'All figures repeat one amount, so no sum confirms how its digits were read.';
  return undefined;
}

/** Every product of a line is right, and at least one quantity is not one. */
function confirmedByProducts({ lines }: InvoiceReading, checks: readonly InvoiceCheck[]): boolean {
  const confirmed = new Set(
    checks
      .filter((check) => check.check === 'quantity_times_unit_price' && check.ok)
      .map((check) => check.line),
  );
  return (
    lines.length > 0 &&
    lines.every((line) => confirmed.has(line.line)) &&
    lines.some((line) => line.quantity !== null && line.quantity.value !== ONE)
  );
}
