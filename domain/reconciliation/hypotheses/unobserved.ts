import type { Hypothesis } from './hypothesis.js';
import { quantityVariant } from './predict.js';
import { sentenceOf, servicesOf } from './words.js';

const WORDS = {
  unseen_calls: 'The bill holds calls that no event tells of, of another mix than those that were seen.',
};

/**
 * More of everything than was seen, in another mix: other callers of the account. A common share of every class that is
 * missing is already the coverage that every explanation is judged with.
 */
export const unobservedUsage: Hypothesis = {
  kind: 'unobserved_usage',
  nature: 'quantity',
  blame: 'none',
  needs: ['quantity'],
  variants: (day) => {
    const known = day.meters.filter(({ meter }) => meter.quantity !== null);
    const isMore = known.some(({ meter, observed }) => (meter.quantity ?? 0n) * 98n > observed * 100n);
    const isNowhereLess = known.every(
      ({ meter, observed }) => (meter.quantity ?? 0n) * 102n >= observed * 100n,
    );
    if (!isMore || !isNowhereLess || known.length === 0) return [];
    return [quantityVariant(day, 'unseen_calls', new Map(known.map((meter) => [meter.index, null])))];
  },
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: (_variant, sources) => [
    `Calls of this model come from more places than ${servicesOf(sources, true)}: instrument the others, or register their keys under /provider-keys.`,
  ],
};
