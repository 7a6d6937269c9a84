import { centsFromPico, PICO_PER_USD, type Pico } from './money.js';

const PICO_PER_CENT = PICO_PER_USD / 100n;

/** Rounded amounts, in pico-dollars that are whole cents. */
export interface Footed {
  totalPico: Pico;
  partsPico: Pico[];
}

/**
 * Rounds amounts to cents that add up: rounds the total once and each amount down (a credit away from zero), and adds the
 * missing cents to the amounts that lost most, earlier ones first.
 * @param near by amount, what it should be where it can be rounded so; undefined: nothing. Amounts that are rounded up by
 * it get the cents first, those that are rounded down last
 */
export function footCents(exactPico: readonly Pico[], near: readonly (Pico | undefined)[] = []): Footed {
  const totalCents = centsFromPico(exactPico.reduce((sum, part) => sum + part, 0n));
  const losses = exactPico.map((part) => ((part % PICO_PER_CENT) + PICO_PER_CENT) % PICO_PER_CENT);
  const cents = exactPico.map((part, index) => (part - (losses[index] ?? 0n)) / PICO_PER_CENT);
  let missing = totalCents - cents.reduce((sum, part) => sum + part, 0n);
  const byLoss = losses
    .map((lost, index) => {
      const wanted = near[index];
      const isUp = wanted !== undefined && lost !== 0n && wanted > (cents[index] ?? 0n) * PICO_PER_CENT;
      return { index, lost, turn: wanted === undefined ? 1 : isUp ? 0 : 2 };
    })
    .sort((a, b) => a.turn - b.turn || (a.lost === b.lost ? a.index - b.index : a.lost > b.lost ? -1 : 1));
  for (const { index } of byLoss) {
    if (missing === 0n) break;
    cents[index] = (cents[index] ?? 0n) + 1n;
    missing -= 1n;
  }
  return { totalPico: totalCents * PICO_PER_CENT, partsPico: cents.map((part) => part * PICO_PER_CENT) };
}
