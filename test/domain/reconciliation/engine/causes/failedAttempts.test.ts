import { describe, expect, it } from 'vitest';
import { shiftDay } from '../../../../../domain/period.js';
import type { Finding } from '../../../../../domain/reconciliation/engine/series/finding.js';

import type { DayInput } from '../../../../../domain/reconciliation/matching/cells.js';
import { ACCOUNT, DAY } from '../../support.js';
import { findingsOf, isBetween, linesFor, MODEL, observedOf, type Use } from '../series/support.js';
import { said } from './bills.js';

const FAILED_CALLS = 40;
const failedOf = (at: number): Use => ({ input: 4_000_000 + at * 10_000, cache_read: 0, output: 0 });
const withOutput = (at: number): Use => ({ ...failedOf(at), output: 500_000 + at * 1_000 });

/**
 * Attempts that failed on some days and are on the bill; `refused` of them by the provider's own HTTP status. On one of the
 * days the bill can be `short` of output by a share of it; and it can have a `share` of the failed input alone.
 */
function billed(of: (at: number) => Use, refused: number, { short = 0, share = 1 } = {}): Finding[] {
  const isWrong = (at: number) => isBetween(at, 8, 12);
  const sources = new Map([
    [
      ACCOUNT,
      new Map([
        [MODEL, [{ serviceName: 'chat', calls: 1000 + FAILED_CALLS, callsWithoutCache: 0, refused }]],
      ]),
    ],
  ]);
  return findingsOf({
    bill: (lines, at, use) => {
      const failed = of(at);
      const both = {
        input: use.input + Math.round(failed.input * share),
        cache_read: use.cache_read,
        output: Math.round((use.output + failed.output) * (at === 10 ? 1 - short : 1)),
      };
      return isWrong(at) ? linesFor(both) : lines;
    },
    input: (input, at): DayInput => ({
      ...input,
      sources,
      observed: [
        ...input.observed,
        ...(isWrong(at) ? [observedOf(input.day, of(at), { status: 'error', calls: FAILED_CALLS })] : []),
      ],
    }),
  });
}

describe('failed attempts on the bill', () => {
  it('are MEDIUM at most, since what a client refused itself is rightly billed', () => {
    for (const of of [failedOf, withOutput])
      for (const refused of [0, FAILED_CALLS - 1]) {
        const [finding, more] = billed(of, refused);
        expect(more).toBeUndefined();
        expect(finding && said(finding)).toMatchObject({
          is: expect.stringContaining('failed_request_billed/'),
          claimable: true,
          grade: 'MEDIUM',
        });
        expect(finding?.missing).toEqual(['evidence_needed']);
        expect(finding?.advice[0]).toContain('HTTP status of 400 or more');
      }
  });

  it('are HIGH where the provider refused every one of them itself', () => {
    const [finding] = billed(failedOf, FAILED_CALLS);
    expect(finding && said(finding)).toMatchObject({ grade: 'HIGH', claimable: true });
    const [first = 0, ...rest] = [8, 9, 10, 11, 12].map((at) => failedOf(at).input * 2);
    const cost = BigInt(rest.reduce((sum, one) => sum + one, first)) * 1_000_000n;
    expect(finding?.impactPico).toBe(cost);
  });

  it('are no longer HIGH on a day that has a count which nothing explains; the other days are', () => {
    const findings = billed(failedOf, FAILED_CALLS, { short: 0.2 });
    expect(findings.map((one) => one.kind)).toContain('unexplained');
    const failed = findings.filter((one) => one.kind === 'failed_request_billed');
    expect(failed.map(({ days, grade, missing }) => [days.length, grade, missing])).toEqual([
      [4, 'HIGH', []],
      [1, 'MEDIUM', ['residual_within_tolerance']],
    ]);
    expect(failed[1]?.days[0]?.day).toBe(shiftDay(DAY, 10));
  });

  it('are no longer HIGH where the bill has not quite their counts: others’ calls may be what is too much', () => {
    for (const share of [0.94, 1.08]) {
      const failed = billed(failedOf, FAILED_CALLS, { share }).find(
        (one) => one.kind === 'failed_request_billed',
      );
      expect(failed?.missing).toContain('residual_within_tolerance');
      expect(failed?.grade).not.toBe('HIGH');
    }
    expect(billed(failedOf, FAILED_CALLS, { share: 0.98 })[0]?.grade).toBe('HIGH');
  });
});
