import { compare } from '../compare.js';
import { DomainError } from '../errors.js';
import { MICROS_PER_DAY, startOfDay } from '../period.js';
import type { PageBucket } from './pageRow.js';

export interface Span {
  startMicros: bigint;
  endMicros: bigint;
}

/**
 * `duplicate`: two buckets of one time; `outside`: times that were not requested; `missing`: times of a finished
 * day. `spans` lists the times.
 */
export type Coverage =
  | { outcome: 'complete' }
  | { outcome: 'outside' | 'duplicate' | 'missing'; spans: Span[] };

/**
 * Whether a chunk's buckets cover its window exactly once. Changing pages cause gaps or overlaps; unfinished days
 * may be cut.
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

/** Maximum buckets of a file: a year of minutes in two reports. */
export const FILE_BUCKETS_MAX = 1_200_000;
/** Maximum projects of a bucket that are tracked; with more, a later copy counts as a restatement. */
export const PROJECTS_TRACKED_MAX = 64;

interface BucketCopy {
  number: number;
  startMicros: bigint;
  endMicros: bigint;
  projects: ReadonlySet<string>;
}

/** Of two overlapping buckets the later one counts, unless both name projects and have none in common. */
export class BucketCopies {
  readonly #byReport = new Map<string, Map<bigint, BucketCopy[]>>();
  readonly #superseded = new Set<number>();
  #count = 0;

  get superseded(): ReadonlySet<number> {
    return this.#superseded;
  }

  /** The number of the next bucket in file order. */
  next(): number {
    this.#count += 1;
    if (this.#count > FILE_BUCKETS_MAX) {
      throw new DomainError(
        'invalid_billing_file',
        `the file holds more than ${FILE_BUCKETS_MAX} buckets; split it by month`,
      );
    }
    return this.#count;
  }

  /** Notes bucket `number` of `report` after all projects of its page are known. */
  register(report: string, bucket: PageBucket, projects: ReadonlySet<string>, number: number): void {
    const copy: BucketCopy = {
      number,
      startMicros: bucket.startMicros,
      endMicros: bucket.endMicros,
      projects,
    };
    let days = this.#byReport.get(report);
    if (!days) {
      days = new Map<bigint, BucketCopy[]>();
      this.#byReport.set(report, days);
    }
    for (const day of daysOf(bucket)) {
      const kept = (days.get(day) ?? []).filter((earlier) => !this.#replaces(copy, earlier));
      kept.push(copy);
      days.set(day, kept);
    }
  }

  #replaces(later: BucketCopy, earlier: BucketCopy): boolean {
    if (later.startMicros >= earlier.endMicros || earlier.startMicros >= later.endMicros) return false;
    if (areOtherProjects(later.projects, earlier.projects)) return false;
    this.#superseded.add(earlier.number);
    return true;
  }
}

function areOtherProjects(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  if (a.size === 0 || b.size === 0 || a.size >= PROJECTS_TRACKED_MAX || b.size >= PROJECTS_TRACKED_MAX)
    return false;
  for (const project of a) if (b.has(project)) return false;
  return true;
}

function* daysOf(bucket: PageBucket): Generator<bigint> {
  for (let day = bucket.startMicros / MICROS_PER_DAY; day * MICROS_PER_DAY < bucket.endMicros; day += 1n)
    yield day;
}
