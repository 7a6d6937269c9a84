import type { Decimal } from '../app/format.js';
import { exactSum, footedCents } from './exactSum.js';

/** Exact amounts in dollars, and the cents that each shows. */
export interface ShownAmounts {
  amounts: readonly Decimal[];
  cents: readonly string[];
}

/**
 * A table of sums in whole cents: its columns, then that of their totals. Each column adds up to its rounded sum, and each
 * row to its total where both can hold.
 * @param isAlone rows that are rounded by themselves, since another sum has them as its result
 */
export function footedTable(
  columns: readonly (readonly Decimal[])[],
  totals: readonly Decimal[],
  isAlone: readonly boolean[] = [],
): ShownAmounts[] {
  const shown = (amounts: readonly Decimal[], across: readonly string[] = []): ShownAmounts => {
    const near = amounts.map((amount, at) => (isAlone[at] ? footedCents([amount])[0] : across[at]));
    return { amounts, cents: footedCents(amounts, near) };
  };
  const beside = columns.map((amounts) => shown(amounts));
  const across = totals.map((_, at) => exactSum(beside.map(({ cents }) => cents[at] ?? 0)));
  return [...beside, shown(totals, across)];
}

/** The cents that an amount shows where a sum has it; undefined: no sum has it. */
export function centsInSums(amount: Decimal, sums: readonly ShownAmounts[]): string | undefined {
  for (const { amounts, cents } of sums) {
    const at = amounts.findIndex((one) => isEqual(one, amount));
    if (at >= 0) return cents[at];
  }
  return undefined;
}

/** Whether two decimals are the same amount. */
export const isEqual = (one: Decimal, other: Decimal) => exactSum([one]) === exactSum([other]);
