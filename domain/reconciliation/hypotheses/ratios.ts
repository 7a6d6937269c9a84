/** Uniform ratios of charged to right amounts, told from a day's own meters. */
import { absPico, type Pico } from '../../money.js';
import type { MeterDay } from './hypothesis.js';

export interface Ratio {
  readonly billedPico: Pico;
  readonly expectedPico: Pico;
}

/** Meters whose amount can be held against quantity × rate; an amount of zero is an allowance, and no rate. */
export function chargedMeters(meters: readonly MeterDay[]): MeterDay[] {
  return meters.filter(
    ({ meter, expectedPico }) =>
      meter.quantity !== null && expectedPico !== null && expectedPico > 0n && meter.amountPico > 0n,
  );
}

/** One part in this many: meters' ratios that differ by less are the same. */
const SAME_RATIO_PARTS = 2_000n;

/** The ratio that all these meters share within their rounding; undefined where they share none, or it is one. */
export function sharedRatio(meters: readonly MeterDay[]): Ratio | undefined {
  let billedPico = 0n;
  let expectedPico = 0n;
  for (const one of meters) {
    billedPico += one.meter.amountPico;
    expectedPico += one.expectedPico ?? 0n;
  }
  if (expectedPico <= 0n || billedPico <= 0n) return undefined;
  const isShared = meters.every(({ meter, expectedPico: own }) => {
    const predicted = ((own ?? 0n) * billedPico) / expectedPico;
    const slack = meter.roundingPico + 1n + (own ?? 0n) / SAME_RATIO_PARTS;
    return absPico(meter.amountPico - predicted) <= slack;
  });
  const isOne = absPico(billedPico - expectedPico) * SAME_RATIO_PARTS < expectedPico;
  return isShared && !isOne ? { billedPico, expectedPico } : undefined;
}

/** The ratio with three digits after the point, as variants are named by it. */
export function ratioText({ billedPico, expectedPico }: Ratio): string {
  const perMille = (billedPico * 1_000n + expectedPico / 2n) / expectedPico;
  return `${perMille / 1_000n}.${String(perMille % 1_000n).padStart(3, '0')}`;
}
