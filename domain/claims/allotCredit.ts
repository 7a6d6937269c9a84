import { PICO_PER_USD, type Pico } from '../money.js';

const PICO_PER_CENT = PICO_PER_USD / 100n;

/** What was claimed of a month, `YYYY-MM`. */
export interface ClaimedMonth {
  month: string;
  impactPico: Pico;
}

/**
 * A claim's credit as it falls on the months that it was over, in proportion to what was claimed of each: the parts sum to
 * the credit to the pico-dollar, whatever order the months are given in. A month with nothing claimed gets nothing.
 */
export function allotCredit(creditCents: number, months: readonly ClaimedMonth[]): Map<string, Pico> {
  const creditPico = BigInt(creditCents) * PICO_PER_CENT;
  const claimed = months
    .filter(({ impactPico }) => impactPico > 0n)
    .sort((a, b) => (a.month < b.month ? -1 : 1));
  const total = claimed.reduce((sum, { impactPico }) => sum + impactPico, 0n);
  const parts = new Map<string, Pico>();
  let upTo = 0n;
  for (const { month, impactPico } of claimed) {
    const before = (creditPico * upTo) / total;
    upTo += impactPico;
    parts.set(month, (parts.get(month) ?? 0n) + (creditPico * upTo) / total - before);
  }
  return parts;
}
