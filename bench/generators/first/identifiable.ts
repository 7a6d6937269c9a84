/**
 * What a perfect reader of the delivered documents could tell, by visibility: not what is easy. It knows the price list,
 * the contracts and every call that was told of; it does not know which of two causes with the same documents it was.
 */
import type { GeneratedVisibility } from '../world.js';
import type { Mistake } from './mistakes/mistake.js';
import type { Series } from './series.js';

export interface Facts {
  mistake: Mistake;
  series: Series;
  /** Days of the run that are not provisional. */
  days: number;
  /** |impact| ÷ what was right, over these days. */
  effect: number;
}

/** Days after which an amount alone, equal to a hypothesis on each of them, is no accident. */
const DAYS_OF_TOTALS = 5;
const DAYS_OF_AMOUNTS = 3;
/** Calls at midnight and answers that were cut off blur the observed quantities by as much. */
const BLUR = 0.005;

export function identifiableAt(facts: Facts): { at: Set<GeneratedVisibility>; reason: string } {
  const { mistake, series, days, effect } = facts;
  const at = new Set<GeneratedVisibility>();
  if (mistake.nature === 'nothing')
    return { at, reason: mistake.reason ?? 'the documents fit with something innocent' };
  if (effect === 0) return { at, reason: 'it changed no amount' };
  if (mistake.nature === 'key') {
    at.add('V3');
    return {
      at,
      reason: 'only a report by key shows it; amounts and quantities alone are usage that nobody told of',
    };
  }
  const isComplete = series.circumstances.coverage === 1;
  const isVisible = effect >= BLUR;
  const tellsClasses = !series.circumstances.lacksCache;
  const mergesQuantities =
    series.habits.longShare > 0 || series.habits.usShare > 0 || isPlainWithBatch(series);
  const canDivide = isComplete && isVisible && tellsClasses;
  if (mistake.nature === 'rate') {
    at.add('V3');
    if ((!mergesQuantities || canDivide) && !mistake.needsSecondCount) at.add('V2');
  } else if (isComplete && isVisible && (tellsClasses || !mistake.needsQuantity)) {
    at.add('V3');
    at.add('V2');
  }
  if (canDivide && !(mistake.isUniform && mistake.hasTwin)) {
    const canTellClass = !mistake.needsQuantity && days >= (mistake.isUniform ? DAYS_OF_AMOUNTS : 1);
    if (canTellClass) at.add('V1');
    if (canTellClass && days >= DAYS_OF_TOTALS && effect >= 2 * BLUR) at.add('V0');
  }
  return { at, reason: reasonOf(facts, isComplete, isVisible) };
}

/** A plain file that merges batch and standard has no usage report to divide them by. */
const isPlainWithBatch = (series: Series): boolean =>
  series.provider !== 'openai' && series.provider !== 'anthropic' && series.habits.batchShare > 0;

function reasonOf({ mistake, series }: Facts, isComplete: boolean, isVisible: boolean): string {
  if (!isVisible) return 'smaller than what calls at midnight and cut answers blur';
  if (!isComplete)
    return 'not all calls were told of, so only what the bill itself counts can be held against it';
  if (series.circumstances.lacksCache) return 'the clients tell cached tokens as plain input';
  if (mistake.needsQuantity) return 'an amount without its quantity could as well be a wrong rate';
  if (mistake.hasTwin) return 'without quantities another mistake gives the same amounts';
  return 'all calls were told of';
}
