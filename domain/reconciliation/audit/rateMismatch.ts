import type { RateMismatch } from '../matching/cells.js';
import { billedRate } from '../matching/charge.js';
import type { Meter } from '../matching/meters.js';
import { isTokenClass } from './dayRates.js';
import { judgeMeter } from './judgeMeter.js';
import { type ChargeRates, findRateHints } from './rateHints.js';

/**
 * Meters that the bill alone shows at another than the expected rate: amount against quantity × rate, beyond what the
 * rows' rounding explains. A rate that no source gives accuses nobody, an amount of zero is a free allowance, and what
 * some mix of batch or of long requests explains is not asserted where nobody says what was used.
 */
export function findRateMismatches(
  place: { day: string; accountId: string; model: string },
  meters: readonly Meter[],
  pricedAs: string | null,
  rates: ChargeRates,
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
  rates: ChargeRates,
): RateMismatch | undefined {
  const { tokenClass, quantity } = meter;
  if (!isTokenClass(tokenClass) || quantity === null || meter.split === 'observed_mix') return undefined;
  const { verdict, expectedPico } = judgeMeter(meter, pricedAs, rates.agreed);
  if (verdict !== 'differs' || expectedPico === null) return undefined;
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
    ...rates.agreed.provenance(pricedAs),
    looksLike: findRateHints(meter, pricedAs, rates),
  };
}
