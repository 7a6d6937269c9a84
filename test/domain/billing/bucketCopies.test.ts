import { describe, expect, it } from 'vitest';
import { BucketCopies } from '../../../domain/billing/coverage.js';
import { MICROS_PER_DAY } from '../../../domain/period.js';

const HOUR = MICROS_PER_DAY / 24n;
const at = (from: bigint, to: bigint) => ({ startMicros: from, endMicros: to });

function told(...buckets: [string, bigint, bigint, string[]][]): number[] {
  const copies = new BucketCopies();
  for (const [report, from, to, projects] of buckets) {
    copies.register(report, at(from, to), new Set(projects), copies.next());
  }
  return [...copies.superseded].sort();
}

describe('of several copies of a bucket in one file', () => {
  it('the later counts', () => {
    expect(told(['cost', 0n, MICROS_PER_DAY, ['a']], ['cost', 0n, MICROS_PER_DAY, ['a', 'b']])).toEqual([1]);
  });

  it('another report or another day is no copy of the same', () => {
    expect(told(['cost', 0n, MICROS_PER_DAY, []], ['usage', 0n, MICROS_PER_DAY, []])).toEqual([]);
    expect(told(['cost', 0n, MICROS_PER_DAY, []], ['cost', MICROS_PER_DAY, 2n * MICROS_PER_DAY, []])).toEqual(
      [],
    );
  });

  it('hours reported after the day replace it, and the day reported after its hours replaces them', () => {
    expect(told(['u', 0n, MICROS_PER_DAY, []], ['u', 0n, HOUR, []], ['u', HOUR, 2n * HOUR, []])).toEqual([1]);
    expect(told(['u', 0n, HOUR, []], ['u', HOUR, 2n * HOUR, []], ['u', 0n, MICROS_PER_DAY, []])).toEqual([
      1, 2,
    ]);
  });

  it('pages filtered to different projects both count', () => {
    expect(told(['cost', 0n, MICROS_PER_DAY, ['a']], ['cost', 0n, MICROS_PER_DAY, ['b']])).toEqual([]);
  });
});
