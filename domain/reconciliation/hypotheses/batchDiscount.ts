import type { Hypothesis, SeriesDay, Variant } from './hypothesis.js';
import { allMoved } from './movedCounts.js';
import { pairsBy, placeOf } from './places.js';
import { hasQuantities, multipleOf, otherCircumstances, under } from './predict.js';
import { coversMost, lasts } from './runs.js';
import { sentenceOf } from './words.js';

const WORDS = {
  standard_rate: 'Batch calls were charged at the standard rate.',
  batch_rate: 'Standard calls were charged at the batch rate.',
  discount_twice: 'The batch discount was taken off twice.',
  in_standard_meter: 'Batch calls were counted as standard calls.',
};

const ASK = ['Ask for the batch rate on the calls named here; the batches are found by their ids.'];

/** Batch calls charged at the rate of standard calls, or standard calls at that of batch. */
export const batchDiscountRate: Hypothesis = {
  kind: 'batch_discount_not_applied',
  nature: 'rate',
  blame: 'provider',
  needs: ['quantity', 'second_price_source'],
  variants: (day) => [
    ...otherCircumstances(day, 'standard_rate', under({ isBatch: false })),
    // With amounts alone half of all is as well half of what the events count.
    ...(hasQuantities(day) ? atBatchRate(day) : []),
    ...multipleOf(day, 'discount_twice', 1n, 2n, (meter) => placeOf(meter).isBatch === true),
  ],
  // Half the price from the first day to the last is no mistake of the bill.
  fits: (run, context, variant) => variant === 'standard_rate' || !coversMost(run, context),
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => ASK,
};

function atBatchRate(day: SeriesDay): Variant[] {
  return otherCircumstances(day, 'batch_rate', (at) =>
    at.isBatch || at.serviceTier !== 'standard' ? at : { ...at, isBatch: true },
  );
}

/**
 * Batch calls on the meter of standard calls: the rates are right, the counts are not. The other way round nothing tells the
 * bill from calls that nobody flagged, and it is the client's (clientCounts.ts).
 */
export const batchDiscountQuantity: Hypothesis = {
  kind: 'batch_discount_not_applied',
  nature: 'quantity',
  blame: 'provider',
  needs: ['quantity', 'complete_classes', 'full_coverage'],
  variants: (day) =>
    allMoved(
      day,
      'in_standard_meter',
      pairsBy(day, (place) => place.isBatch === true, { isBatch: false }),
    ),
  // A batch may be counted on the day beside: on one day alone it is as well not billed yet, and others' calls are.
  fits: lasts,
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => ASK,
};
