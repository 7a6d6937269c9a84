import type { Tie } from './tieOut.js';

/** Facts about the invoice that contains a day's charge. */
export interface InvoicePeriod {
  id: string;
  provider: string;
  accountId: string;
  /** Both inclusive. */
  fromDay: string;
  toDay: string;
  tie: Tie;
}

/** Whether an invoice agrees with the bill of its days. */
export const isAligned = ({ tie }: Pick<InvoicePeriod, 'tie'>): boolean => tie === 'exact' || tie === 'close';

/**
 * The invoice that charges for a day of an account. An invoice that ties has precedence, then the one with the fewest
 * days. Undefined without one.
 */
export function invoiceOfDay<I extends InvoicePeriod>(
  invoices: readonly I[],
  { provider, accountId, day }: { provider: string; accountId: string; day: string },
): I | undefined {
  return invoices
    .filter(
      (one) =>
        one.provider === provider && one.accountId === accountId && one.fromDay <= day && day <= one.toDay,
    )
    .reduce<I | undefined>((best, one) => (best && !isNearer(one, best) ? best : one), undefined);
}

function isNearer(one: InvoicePeriod, other: InvoicePeriod): boolean {
  if (isAligned(one) !== isAligned(other)) return isAligned(one);
  return daysOf(one) < daysOf(other);
}

const daysOf = ({ fromDay, toDay }: InvoicePeriod): number => Date.parse(toDay) - Date.parse(fromDay);
