import type { Pace, Steps } from '../steps.js';
import { compareApart, compareRichness, type Telling } from './telling.js';

/** Items that are sorted at once, before they are merged. */
const RUN_ITEMS = 64;
const WORK_OF_COMPARISON = 64;

/** As `compareTellings`, of two tellings of a list by their indices. */
export type CompareRanked = (one: number, other: number) => number;

/**
 * Makes a long list quick to compare. What compares the tellings alone becomes a rank, in steps. Which of two lies
 * inside the other cannot: with it the comparison is no order, and a sort by it is the language's own.
 * @param isInside whether one of the list, by its index, lies inside another one.
 */
export function* rankTellings(
  tellings: readonly Telling[],
  isInside: (inner: number, outer: number) => boolean,
  pace: Pace,
): Steps<CompareRanked> {
  const richness = yield* ranksBy(tellings, compareRichness, pace);
  const apart = yield* ranksBy(tellings, compareApart, pace);
  return (one, other) =>
    (richness[one] as number) - (richness[other] as number) ||
    Number(isInside(one, other)) - Number(isInside(other, one)) ||
    (apart[one] as number) - (apart[other] as number);
}

/** The place of each item in the order, from 0; equal items have the same. The comparison must be an order. */
function* ranksBy<T>(
  items: readonly T[],
  compare: (one: T, other: T) => number,
  pace: Pace,
): Steps<number[]> {
  const compareAt = (one: number, other: number) => compare(items[one] as T, items[other] as T);
  const sorted = yield* sortInSteps(items.length, compareAt, pace);
  const ranks: number[] = new Array(items.length).fill(0);
  let rank = 0;
  for (let at = 1; at < sorted.length; at += 1) {
    const index = sorted[at] as number;
    if (compareAt(sorted[at - 1] as number, index) !== 0) rank += 1;
    ranks[index] = rank;
    if (pace.isDue(WORK_OF_COMPARISON)) yield;
  }
  return ranks;
}

/** The numbers from 0 to `count` in order: runs are sorted, then merged two by two. */
function* sortInSteps(count: number, compare: CompareRanked, pace: Pace): Steps<number[]> {
  let runs: number[][] = [];
  for (let from = 0; from < count; from += RUN_ITEMS) {
    const length = Math.min(RUN_ITEMS, count - from);
    runs.push(Array.from({ length }, (_, index) => from + index).sort(compare));
    if (pace.isDue(length * Math.log2(length + 1) * WORK_OF_COMPARISON)) yield;
  }
  while (runs.length > 1) {
    const merged: number[][] = [];
    for (let at = 0; at < runs.length; at += 2)
      merged.push(yield* merge(runs[at] as number[], runs[at + 1] ?? [], compare, pace));
    runs = merged;
  }
  return runs[0] ?? [];
}

function* merge(
  one: readonly number[],
  other: readonly number[],
  compare: CompareRanked,
  pace: Pace,
): Steps<number[]> {
  const merged: number[] = [];
  let [i, j] = [0, 0];
  while (i < one.length && j < other.length) {
    if (compare(one[i] as number, other[j] as number) <= 0) merged.push(one[i++] as number);
    else merged.push(other[j++] as number);
    if (pace.isDue(WORK_OF_COMPARISON)) yield;
  }
  while (i < one.length) merged.push(one[i++] as number);
  while (j < other.length) merged.push(other[j++] as number);
  return merged;
}
