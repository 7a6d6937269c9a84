import { compare } from '../compare.js';
import { startOfDay } from '../period.js';

/** Half-open times of a bucket, microseconds. */
export interface Span {
  startMicros: bigint;
  endMicros: bigint;
}

/**
 * What the buckets of a chunk's pages say about its window. `duplicate`: a time was told twice, `outside`: a time was
 * told that was not asked for, `missing`: a time of a day that has ended was not told. `spans` names the times.
 */
export type Coverage =
  | { outcome: 'complete' }
  | { outcome: 'outside' | 'duplicate' | 'missing'; spans: Span[] };

/**
 * Whether the buckets of all pages of a chunk tell its window once and whole, in whatever order they came. Paging
 * that changes under way leaves a gap or an overlap; such a chunk is fetched again from its first page, and nothing
 * of it is kept. Days that had not ended at `nowMicros` may be missing or cut: a provider tells them as far as they
 * have come.
 */
export function checkCoverage(window: Span, buckets: readonly Span[], nowMicros: bigint): Coverage {
  const outside = buckets.filter(
    (bucket) =>
      bucket.startMicros < window.startMicros ||
      bucket.endMicros > window.endMicros ||
      bucket.endMicros <= bucket.startMicros,
  );
  if (outside.length > 0) return { outcome: 'outside', spans: outside };
  const ordered = [...buckets].sort((a, b) => compare(a.startMicros, b.startMicros));
  const today = startOfDay(nowMicros);
  const mustReach = window.endMicros < today ? window.endMicros : today;
  const duplicate: Span[] = [];
  const missing: Span[] = [];
  let reached = window.startMicros;
  for (const bucket of ordered) {
    if (bucket.startMicros < reached) duplicate.push(bucket);
    if (bucket.startMicros > reached && reached < mustReach) {
      missing.push({ startMicros: reached, endMicros: earlier(bucket.startMicros, mustReach) });
    }
    if (bucket.endMicros > reached) reached = bucket.endMicros;
  }
  if (reached < mustReach) missing.push({ startMicros: reached, endMicros: mustReach });
  if (duplicate.length > 0) return { outcome: 'duplicate', spans: duplicate };
  return missing.length > 0 ? { outcome: 'missing', spans: missing } : { outcome: 'complete' };
}

function earlier(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
