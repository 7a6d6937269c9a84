/**
 * Amounts in whole cents, as findings, disputes, claims and their documents show them. Every figure of theirs is rounded
 * here, so that a title, a sentence, a table and an API answer never show two amounts for one thing.
 */
import { PICO_PER_USD, type Pico } from '../money.js';

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
