/**
 * What a charge is told under that the invoice of another period has than its day's (a correction, late use); `from` is a
 * day of that period, `YYYY-MM…`. So it adds to its day: told under '' it would be a newer copy of that day, and take the
 * place of its whole bill.
 */
export function reportOfInvoice(from: string): string {
  return `invoice ${from.slice(0, 7).replace('-', '')}`;
}

/** SQL: whether the column of a report's name is that of such charges. */
export const LATE_REPORTS = 'invoice %';
