import { cannotTell } from './clientCounts.js';
import type { Hypothesis } from './hypothesis.js';
import { quantityVariant, sumOf } from './predict.js';
import { coversMost, lasts, touchesEdge } from './runs.js';
import { sentenceOf } from './words.js';

const WORDS = { class: 'One class was billed in another quantity than was seen, while the others agree: %.' };

/** Counts that differ by less are noise of the counting. */
const NOISE_PERCENT = 1n;

/**
 * One class counts otherwise than the answers' own usage did, and the others do not. Providers' internal work and missing
 * counts of the client look alike, so it is for a person to judge.
 */
export const countInflation: Hypothesis = {
  kind: 'token_count_inflation',
  nature: 'quantity',
  blame: 'provider',
  needs: ['quantity', 'complete_classes', 'full_coverage'],
  highest: 'LOW',
  reviewOnly: true,
  variants: (day) =>
    [...new Set(day.meters.map((meter) => meter.tokenClass))].flatMap((tokenClass) => {
      const meters = day.meters.filter((meter) => meter.tokenClass === tokenClass);
      const billed = sumOf(meters.map(({ meter }) => meter.quantity ?? 0n));
      const observed = sumOf(meters.map((meter) => meter.observed));
      const difference = billed > observed ? billed - observed : observed - billed;
      const isAlone = meters.length === day.meters.length;
      // Where clients say that they cannot tell cached input, no count of it is held against the bill.
      if (isAboutCache(tokenClass) && cannotTell(day.evidence.sources)) return [];
      if (isAlone || billed === 0n || observed === 0n || difference * 100n < observed * NOISE_PERCENT)
        return [];
      return [
        quantityVariant(day, `class:${tokenClass}`, new Map(meters.map((meter) => [meter.index, null]))),
      ];
    }),
  fits: (run, context) => lasts(run) && !coversMost(run, context) && !touchesEdge(run, context),
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => [
    'Compare the usage objects of some answers with the bill; give both with the request ids when asking.',
  ],
};

const CACHE_CLASSES: ReadonlySet<string> = new Set([
  'input',
  'cache_read',
  'cache_write_5m',
  'cache_write_1h',
]);
const isAboutCache = (tokenClass: string): boolean => CACHE_CLASSES.has(tokenClass);
