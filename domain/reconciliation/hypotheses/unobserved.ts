import { againstReport } from './duplicates.js';
import type { Hypothesis } from './hypothesis.js';
import { quantityVariant } from './predict.js';
import { coversMost, touchesEdge } from './runs.js';
import { sentenceOf, servicesOf } from './words.js';

const WORDS = {
  unseen_calls: 'The bill holds calls that no event tells of.',
  fewer_seen: 'Fewer of the calls were seen than usual, and the rest of them is on the bill.',
  report_of_a_part:
    'The bill holds calls that neither an event nor the provider’s usage report tells of: the report seems to be of a part of what is billed.',
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
  advise: (variant, sources) => [
    variant === 'fewer_seen'
      ? `Look for hours of these days in which events of ${servicesOf(sources, true)} were not sent: the day's unobserved_minutes tell how many.`
      : `Calls of this model come from more places than ${servicesOf(sources, true)}: instrument the others, or register their keys under /provider-keys.`,
  ],
};

/**
 * The bill counts more than the usage report, at no whole number of times, and does so for good: the report is of one
 * project, and the bill of all.
 */
export const reportOfPart: Hypothesis = {
  kind: 'unobserved_usage',
  nature: 'quantity',
  blame: 'none',
  needs: ['quantity', 'usage_report'],
  variants: (day) => {
    const against = againstReport(day);
    return against?.isMore && !against.isWhole
      ? [quantityVariant(day, 'report_of_a_part', against.quantities)]
      : [];
  },
  fits: (run, context) => touchesEdge(run, context) || coversMost(run, context),
  describe: (variant) => sentenceOf(WORDS, variant),
  advise: () => [
    'Fetch the usage report for all projects and workspaces that the bill is of, and instrument the others’ services.',
  ],
};
