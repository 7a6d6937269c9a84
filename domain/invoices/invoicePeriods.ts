import type { Tie } from './tieOut.js';

/** What a day's charge needs to know of the invoice that it is on. */
export interface InvoicePeriod {
  id: string;
  provider: string;
  accountId: string;
  /** Both inclusive. */
  fromDay: string;
  toDay: string;
  tie: Tie;
}

/** Whether an invoice says what the bill of its days says. */
export const isAligned = ({ tie }: Pick<InvoicePeriod, 'tie'>): boolean => tie === 'exact' || tie === 'close';

/**
 * The invoice that charges for a day of an account: one that ties before one that does not, then the one over the fewest
 * days. Undefined where none does.
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
