import type { Hypothesis } from './hypothesis.js';
import { pairsBy } from './places.js';
import { movedVariant, otherCircumstances } from './predict.js';
import { sentenceOf } from './words.js';

const WORDS = {
  long_rate_on_ordinary: 'Ordinary requests were charged at the rates of long requests.',
  ordinary_rate_on_long: 'Long requests were charged at the ordinary rates.',
  in_long_meter: 'Ordinary requests were counted as long ones.',
};

const ASK = [
  'Name some of the requests with their whole input: below the boundary of the price list the ordinary rates hold.',
];

/** The rates of long requests on requests below the boundary, or the other way round. */
export const longContextRate: Hypothesis = {
  kind: 'long_context_rate_misapplied',
  nature: 'rate',
  blame: 'provider',
  needs: ['quantity', 'second_price_source', 'complete_classes'],
  variants: (day) => [
    ...otherCircumstances(day, 'long_rate_on_ordinary', (at) =>
      at.longContext || at.contextBand > 0 ? at : { ...at, longContext: true },
    ),
    ...otherCircumstances(day, 'ordinary_rate_on_long', (at) =>
      at.longContext || at.contextBand > 0 ? { ...at, longContext: false, contextBand: 0 } : at,
    ),
  ],
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => ASK,
};

/**
 * Ordinary requests on the meter of long ones. The other way round nothing tells the bill from events that count too much
 * input, by which a request seems longer than it was: that is the client's (clientCounts.ts).
 */
export const longContextQuantity: Hypothesis = {
  kind: 'long_context_rate_misapplied',
  nature: 'quantity',
  blame: 'provider',
  needs: ['quantity', 'complete_classes', 'full_coverage'],
  variants: (day) =>
    movedVariant(
      day,
      'in_long_meter',
      pairsBy(day, (place) => place.longContext === false, { longContext: true }),
    ),
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => ASK,
};
