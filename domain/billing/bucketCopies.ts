import { DomainError } from '../errors.js';
import { MICROS_PER_DAY } from '../period.js';
import type { PageBucket } from './pageRow.js';

/** Buckets that one file may hold: a year of minutes of two reports. */
export const FILE_BUCKETS_MAX = 1_200_000;
/** Projects of a bucket that are told apart; beyond, a later copy counts as a restatement. */
export const PROJECTS_TRACKED_MAX = 64;

interface BucketCopy {
  number: number;
  startMicros: bigint;
  endMicros: bigint;
  projects: ReadonlySet<string>;
}

/**
 * Which copy of a bucket counts when a file holds several: pages are saved again after a provider restated a day,
 * or by hour after they were saved by day. A later bucket of the same report that overlaps an earlier one takes its
 * place, unless their pages both name projects and share none: then they were filtered to different projects.
 */
export class BucketCopies {
  readonly #byReport = new Map<string, Map<bigint, BucketCopy[]>>();
  readonly #superseded = new Set<number>();
  #count = 0;

  /** Numbers of the copies that a later one replaced. */
  get superseded(): ReadonlySet<number> {
    return this.#superseded;
  }

  /** The number of the next bucket, in the file's order. */
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

  /** Notes bucket `number` of `report`, once its page has told which projects it names. */
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
