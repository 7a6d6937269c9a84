/**
 * The mistakes that a perfect reader of the delivered documents could identify, by visibility and however
 * difficult. The reader knows the price list, the contracts and every reported call, but cannot choose between two
 * causes with the same documents.
 */
import type { GeneratedVisibility } from '../world.js';
import type { Mistake } from './mistakes/mistake.js';
import type { Series } from './series.js';

export interface Facts {
  mistake: Mistake;
  series: Series;
  /** Days of the mistake that are not provisional. */
  days: number;
  /** |impact| ÷ the right charge over these days. */
  effect: number;
}

/** Number of days on each of which an amount must equal a hypothesis to exclude coincidence. */
const DAYS_OF_TOTALS = 5;
const DAYS_OF_AMOUNTS = 3;
/** Share by which calls at midnight and cut answers blur the observed quantities. */
const BLUR = 0.005;
/** Lost calls are a sample, so they can hide a difference of this multiple of their share in one class. */
const BLUR_OF_LOSSES = 3;

export function identifiableAt(facts: Facts): { at: Set<GeneratedVisibility>; reason: string } {
  const { mistake, series, days, effect } = facts;
  const at = new Set<GeneratedVisibility>();
  if (mistake.nature === 'nothing')
    return { at, reason: mistake.reason ?? 'the documents fit with something innocent' };
  if (effect === 0) return { at, reason: 'it changed no amount' };
  if (mistake.needsAnswers && !series.tellsAnswers)
    return { at, reason: 'the clients do not tell what the provider answered, so it may be their own' };
  if (mistake.nature === 'key') {
    at.add('V3');
    return {
      at,
      reason: 'only a report by key shows it; amounts and quantities alone are usage that nobody told of',
    };
  }
  const { coverage, lacksCache } = series.circumstances;
  const isComplete = coverage === 1;
  const isVisible = effect >= BLUR + BLUR_OF_LOSSES * (1 - coverage);
  const mergesQuantities =
    series.habits.longShare > 0 || series.habits.usShare > 0 || isPlainWithBatch(series);
  const canDivide = isVisible && !lacksCache;
  if (mistake.nature === 'rate') {
    at.add('V3');
    if ((!mergesQuantities || canDivide) && !mistake.needsSecondCount) at.add('V2');
  } else if (isVisible && (!lacksCache || !mistake.needsQuantity)) {
    at.add('V3');
    at.add('V2');
  }
  // With one factor for every class and no quantities, only equality on several days separates it from lost calls.
  const isExact = isComplete && !mistake.hasTwin && days >= DAYS_OF_AMOUNTS;
  if (canDivide && !mistake.needsQuantity && (isExact || !mistake.isUniform)) {
    at.add('V1');
    if (isComplete && days >= DAYS_OF_TOTALS && effect >= 2 * BLUR) at.add('V0');
  }
  return { at, reason: reasonOf(facts, isVisible) };
}

/** A plain file that merges batch and standard has no usage report to divide them. */
const isPlainWithBatch = (series: Series): boolean =>
  series.provider !== 'openai' && series.provider !== 'anthropic' && series.habits.batchShare > 0;

function reasonOf({ mistake, series }: Facts, isVisible: boolean): string {
  if (!isVisible) return 'smaller than what lost calls, calls at midnight and cut answers blur';
  if (series.circumstances.lacksCache) return 'the clients tell cached tokens as plain input';
  if (mistake.needsQuantity) return 'an amount without its quantity could as well be a wrong rate';
  if (mistake.hasTwin) return 'without quantities another mistake gives the same amounts';
  if (series.circumstances.coverage < 1)
    return 'some calls were not told of, so an amount for all classes is not exact';
  return 'all calls were told of';
}
