import { STANDARD_TIER } from '../../../pricing/rateCards.js';
import type { Circumstances } from '../../audit/dayRates.js';
import { type Hypothesis, isEpisode, type MeterDay, type SeriesDay, sentenceOf } from './cause.js';
import { allMoved, isCountedAlike, partlyMoved, usesMoved } from './moves.js';
import { pairsBy } from './places.js';
import { asLinesName, otherCircumstances } from './predict.js';

const WORDS = {
  long_rate_on_ordinary: 'Ordinary requests were charged at the rates of long requests.',
  ordinary_rate_on_long: 'Long requests were charged at the ordinary rates.',
  long_rate_on_standard:
    'Ordinary requests to the standard service were charged at the rates of long requests.',
  ordinary_rate_on_long_standard: 'Long requests to the standard service were charged at the ordinary rates.',
  on_other_line:
    'Requests were charged on the line of another length than the one that the provider’s usage report counts them under.',
  in_ordinary_meter: 'Long requests were counted as ordinary ones.',
  part_in_long_meter: 'Some of the ordinary requests were counted as long ones.',
  part_in_ordinary_meter: 'Some of the long requests were counted as ordinary ones.',
  in_long_meter: 'Ordinary requests were counted as long ones.',
  standard_in_long_meter: 'Ordinary requests to the standard service were counted as long ones.',
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
    ...asLinesName(day, 'on_other_line', 'longContext'),
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
 * Ordinary requests on the meter of long ones; long requests on the ordinary one where requests and tokens as a whole are
 * counted alike.
 */
export const longContextQuantity: Hypothesis = {
  kind: 'long_context_rate_misapplied',
  nature: 'quantity',
  blame: 'provider',
  needs: ['quantity', 'complete_classes', 'full_coverage'],
  variants: (day) => [
    ...(areLengthsSeen(day)
      ? [
          ...allMoved(day, 'in_long_meter', linesOf(day, false)),
          // A bill's ordinary line may hold batch and other tiers as well, which stay where they are.
          ...usesMoved(day, 'standard_in_long_meter', linesBesideLong(day), isStandard, asLong),
          // A boundary that is drawn too low takes some of the ordinary requests; the bill does not show which.
          ...partlyMoved(day, 'part_in_long_meter', linesOf(day, false)),
        ]
      : []),
    ...(isCountedAlike(day) ? partlyMoved(day, 'part_in_ordinary_meter', linesOf(day, true)) : []),
  ],
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => ASK,
};

/**
 * Events that count too much input make requests longer than they were (clientCounts.ts), and a release that does so may be
 * taken back: it explains only an episode between right days, and never with certainty.
 */
export const longContextEpisode: Hypothesis = {
  kind: 'long_context_rate_misapplied',
  nature: 'quantity',
  blame: 'provider',
  needs: ['quantity', 'complete_classes', 'full_coverage'],
  highest: 'MEDIUM',
  variants: (day) => allMoved(day, 'in_ordinary_meter', linesOf(day, true)),
  fits: (run, context) => isEpisode(run, context),
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => ASK,
};

/** Each line of long or of ordinary requests with that of the other length. */
const linesOf = (day: SeriesDay, isLongOnes: boolean) =>
  pairsBy(day, (place) => place.longContext === isLongOnes, { longContext: !isLongOnes });

/**
 * Whether calls show their length: a tier without rates for long requests divides none, so that a long one which asked for it
 * and was served at the bill's tier counts as ordinary.
 */
function areLengthsSeen({ evidence, agreed, pricedAs }: SeriesDay): boolean {
  const billed = new Set(evidence.billed.map((line) => agreed.tier(line.serviceTier)));
  return evidence.observed.every(({ status, serviceTier }) => {
    const tier = agreed.tier(serviceTier);
    return status === 'error' || billed.has(tier) || agreed.hasLongRates(pricedAs ?? '', tier);
  });
}

/** Every line of ordinary requests with the line of long ones that the bill names like it. */
function linesBesideLong(day: SeriesDay): (readonly [MeterDay, MeterDay])[] {
  return day.meters.flatMap((from) => {
    if (from.meter.longContext !== false) return [];
    const { serviceTier, isBatch, region } = from.meter;
    const to = day.meters.find(
      ({ meter, tokenClass }) =>
        meter.longContext === true &&
        tokenClass === from.tokenClass &&
        meter.serviceTier === serviceTier &&
        meter.isBatch === isBatch &&
        meter.region === region,
    );
    return to ? [[from, to] as const] : [];
  });
}
