import { absPico, type Pico } from '../money.js';
import type { RateMismatch } from './cells.js';
import { billedRate } from './charge.js';
import { expectedOfMeter } from './classLines.js';
import { type DayRates, isTokenClass } from './dayRates.js';
import type { Meter } from './meters.js';

/** No price rule changes a rate by less than one part in this many; what lies below is noise of the bill's making. */
const RATE_DEVIATION_PARTS = 2_000n;

/**
 * Meters that the bill alone shows at another than the list rate: amount against quantity × list, beyond what the
 * rows' rounding explains. A rate that no source gives accuses nobody, an amount of zero is a free allowance, and
 * where the bill leaves batch open only what exceeds the full standard rate is sure.
 */
export function findRateMismatches(
  place: { day: string; accountId: string; model: string },
  meters: readonly Meter[],
  pricedAs: string | null,
  rates: DayRates,
): RateMismatch[] {
  if (pricedAs === null) return [];
  return meters.flatMap((meter) => {
    const mismatch = mismatchOf(place, meter, pricedAs, rates);
    return mismatch ? [mismatch] : [];
  });
}

function mismatchOf(
  place: { day: string; accountId: string; model: string },
  meter: Meter,
  pricedAs: string,
  rates: DayRates,
): RateMismatch | undefined {
  const { tokenClass, quantity } = meter;
  if (!isTokenClass(tokenClass) || quantity === null || quantity <= 0n || meter.amountPico <= 0n)
    return undefined;
  if (meter.split === 'observed_mix') return undefined;
  const expectedPico = expectedOfMeter(meter, pricedAs, rates);
  if (expectedPico === null || expectedPico === 0n) return undefined;
  if (meter.parts.some((part) => rates.rate(pricedAs, tokenClass, part.circumstances)?.assumed !== false))
    return undefined;
  const excess: Pico = meter.amountPico - expectedPico;
  // One more pico-dollar for our own rounding of quantity × rate.
  if (absPico(excess) <= meter.roundingPico + 1n) return undefined;
  if (absPico(excess) * RATE_DEVIATION_PARTS < expectedPico) return undefined;
  const mayBeBatch = meter.split === 'bill' && meter.isBatch === null;
  if (mayBeBatch && excess < 0n) return undefined;
  return {
    ...place,
    tokenClass,
    serviceTier: meter.serviceTier,
    isBatch: meter.isBatch,
    longContext: meter.longContext,
    region: meter.region,
    quantity,
    billedPico: meter.amountPico,
    expectedPico,
    billedRate: billedRate(meter.amountPico, quantity),
    listRate: billedRate(expectedPico, quantity),
    ...rates.provenance(pricedAs),
  };
}
