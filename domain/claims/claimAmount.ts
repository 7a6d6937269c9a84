import { PICO_PER_USD, type Pico } from '../money.js';

/**
 * Amounts in whole cents, as findings, disputes, claims and their documents show them. Every figure of theirs is rounded
 * here, so that a title, a sentence, a table and an API answer never show two amounts for one thing.
 */

const PICO_PER_CENT = PICO_PER_USD / 100n;

/** Whole cents of an amount, rounded toward zero: a claim asks for nothing that it cannot show. */
export function claimCents(pico: Pico): bigint {
  return pico / PICO_PER_CENT;
}

/** Cents as dollars with commas: `$1,234.56`, `-$0.05`. */
export function dollarsText(cents: bigint): string {
  const digits = (cents < 0n ? -cents : cents).toString().padStart(3, '0');
  const whole = digits.slice(0, -2).replace(/\B(?=(\d{3})+$)/g, ',');
  return `${cents < 0n ? '-' : ''}$${whole}.${digits.slice(-2)}`;
}

/** An exact amount as a finding or claim shows it: `$109.01` of 109.0176. */
export const claimDollars = (pico: Pico): string => dollarsText(claimCents(pico));

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
