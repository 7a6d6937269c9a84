import { STANDARD_TIER } from '../../pricing/serviceTiers.js';
import type { Circumstances } from '../dayRates.js';
import type { Hypothesis, SeriesDay, Variant } from './hypothesis.js';
import { pairsBy } from './places.js';
import { movedVariant, otherCircumstances, quantityVariant } from './predict.js';
import { isEpisode } from './runs.js';
import { sentenceOf } from './words.js';

const WORDS = {
  long_rate_on_ordinary: 'Ordinary requests were charged at the rates of long requests.',
  ordinary_rate_on_long: 'Long requests were charged at the ordinary rates.',
  long_rate_on_standard:
    'Ordinary requests to the standard service were charged at the rates of long requests.',
  ordinary_rate_on_long_standard: 'Long requests to the standard service were charged at the ordinary rates.',
  in_ordinary_meter: 'Long requests were counted as ordinary ones.',
  part_in_long_meter: 'Some of the ordinary requests were counted as long ones.',
  in_long_meter: 'Ordinary requests were counted as long ones.',
};

const ASK = [
  'Name some of the requests with their whole input: below the boundary of the price list the ordinary rates hold.',
];

const isLong = (at: Circumstances) => at.longContext || at.contextBand > 0;
const asLong = (at: Circumstances) => (isLong(at) ? at : { ...at, longContext: true });
const asOrdinary = (at: Circumstances) => (isLong(at) ? { ...at, longContext: false, contextBand: 0 } : at);
const isStandard = (at: Circumstances) => !at.isBatch && at.serviceTier === STANDARD_TIER;

function isMixed(day: SeriesDay): boolean {
  return day.meters.some(({ mix }) => mix.some(({ circumstances }) => !isStandard(circumstances)));
}

/** The rates of long requests on requests below the boundary, or the other way round. */
export const longContextRate: Hypothesis = {
  kind: 'long_context_rate_misapplied',
  nature: 'rate',
  blame: 'provider',
  needs: ['quantity', 'second_price_source', 'complete_classes'],
  variants: (day) => [
    ...otherCircumstances(day, 'long_rate_on_ordinary', asLong),
    ...otherCircumstances(day, 'ordinary_rate_on_long', asOrdinary),
    // A bill's line may hold batch and other tiers as well, and the mistake be in the standard service's price alone.
    ...(isMixed(day)
      ? [
          ...otherCircumstances(day, 'long_rate_on_standard', (at) => (isStandard(at) ? asLong(at) : at)),
          ...otherCircumstances(day, 'ordinary_rate_on_long_standard', (at) =>
            isStandard(at) ? asOrdinary(at) : at,
          ),
        ]
      : []),
  ],
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => ASK,
};

/**
 * Requests on the meter of the other length. That long ones were counted as ordinary looks like events that count too much
 * input, by which requests seem longer than they were (clientCounts.ts): it is said of an episode between right days alone.
 */
export const longContextQuantity: Hypothesis = {
  kind: 'long_context_rate_misapplied',
  nature: 'quantity',
  blame: 'provider',
  needs: ['quantity', 'complete_classes', 'full_coverage'],
  variants: (day) => [
    ...[false, true].flatMap((fromLong) =>
      movedVariant(
        day,
        fromLong ? 'in_ordinary_meter' : 'in_long_meter',
        pairsBy(day, (place) => place.longContext === fromLong, { longContext: !fromLong }),
      ),
    ),
    ...partOnLongMeter(day),
  ],
  fits: (run, context, variant) => variant !== 'in_ordinary_meter' || isEpisode(run, context),
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => ASK,
};

/** Share of a class that has to be seen before anything is said of how it was divided. */
const SEEN_PERCENT = 97n;

/**
 * Some of the ordinary requests on the meter of long ones, as a boundary that is drawn too low makes it: which, the bill does
 * not say, so that both meters' sum is what is tested.
 */
function partOnLongMeter(day: SeriesDay): Variant[] {
  const quantities = new Map<number, bigint>();
  const pairs = pairsBy(day, (place) => place.longContext === false, { longContext: true });
  for (const [ordinary, long] of pairs) {
    const billed = [ordinary, long].map(({ meter }) => meter.quantity ?? 0n);
    const [onOrdinary = 0n, onLong = 0n] = billed;
    if (onLong <= long.observed || onOrdinary === 0n) continue;
    const observed = ordinary.observed + long.observed;
    // Calls that were not seen are as well the long ones: a split that is free fits any such day.
    if (observed * 100n < (onOrdinary + onLong) * SEEN_PERCENT) continue;
    quantities.set(long.index, (observed * onLong) / (onOrdinary + onLong));
    quantities.set(ordinary.index, observed - (quantities.get(long.index) ?? 0n));
  }
  return quantities.size > 0 ? [quantityVariant(day, 'part_in_long_meter', quantities)] : [];
}
