import { describe, expect, it } from 'vitest';
import { QUANTITY_ONE } from '../../../../../domain/billing/billedRow.js';
import type { DayInput, UsageCell } from '../../../../../domain/reconciliation/matching/cells.js';
import { aUsageCell } from '../../support.js';
import {
  chargeFor,
  findingsOf,
  isBetween,
  linesFor,
  type SeriesShape,
  type Use,
  useOf,
} from '../series/support.js';
import { said } from './bills.js';

const CLASSES = ['input', 'cache_read', 'output'] as const;
const part = (use: Use, of: (name: keyof Use) => number): Use => ({
  input: Math.round(use.input * of('input')),
  cache_read: Math.round(use.cache_read * of('cache_read')),
  output: Math.round(use.output * of('output')),
});

describe('days of which fewer calls were seen than usual', () => {
  const seenTo = (share: number, isLess: (at: number) => boolean): SeriesShape => ({
    seen: (use, at) => (isLess(at) ? part(use, () => share) : use),
  });

  it('are reported, whether what is missing is of the same mixture or of another', () => {
    const isLess = (at: number) => at === 9;
    const uneven = { input: 0.75, cache_read: 0.85, output: 0.8 };
    for (const shape of [
      seenTo(0.5, isLess),
      seenTo(0.8, isLess),
      { seen: (use: Use, at: number) => (isLess(at) ? part(use, (name) => uneven[name]) : use) },
    ]) {
      const [finding, more] = findingsOf(shape);
      expect(more).toBeUndefined();
      expect(finding).toMatchObject({ kind: 'unobserved_usage', blame: 'none', claimable: false });
      expect(finding?.cause).not.toContain('of another mix');
    }
  });

  it('have what was not seen as their impact, and nothing else', () => {
    const [finding] = findingsOf(seenTo(0.8, (at) => isBetween(at, 8, 12)));
    expect(finding && said(finding)).toMatchObject({ is: 'unobserved_usage/fewer_seen', claimable: false });
    expect(finding?.days).toHaveLength(5);
    for (const [index, day] of (finding?.days ?? []).entries()) {
      const use = useOf(index + 8);
      const unseen = CLASSES.reduce(
        (sum, name) => sum + chargeFor(name, BigInt(use[name]) - BigInt(Math.round(use[name] * 0.8))),
        0n,
      );
      expect(day.ratePico).toBe(0n);
      expect(day.volumePico).toBe(unseen);
    }
  });

  it('are days below the usual count: calls that are never seen lower the coverage instead', () => {
    expect(findingsOf(seenTo(0.6, () => true))).toEqual([]);
    expect(findingsOf(seenTo(0.97, (at) => at === 9))).toEqual([]);
  });
});

describe('a bill that counts more than the usage report', () => {
  const reported = (use: Use): UsageCell[] =>
    CLASSES.map((tokenClass) => aUsageCell({ tokenClass, quantity: BigInt(use[tokenClass]) * QUANTITY_ONE }));
  const share = (at: number) => (name: keyof Use) =>
    ({ input: 0.6 + 0.02 * (at % 3), cache_read: 0.5 + 0.03 * (at % 4), output: 0.55 })[name];
  /** Usage report and calls are of one project alone, as long as the other is on the bill. */
  const ofOneProject = (isOther: (at: number) => boolean): SeriesShape => {
    const own = (at: number) => (isOther(at) ? part(useOf(at), share(at)) : useOf(at));
    return {
      seen: (_use, at) => own(at),
      input: (input, at): DayInput => ({ ...input, usage: reported(own(at)) }),
    };
  };

  it('by no whole number of times and permanently is of more projects than the report', () => {
    for (const isOther of [() => true, (at: number) => at >= 10]) {
      const [finding, more] = findingsOf(ofOneProject(isOther));
      expect(more).toBeUndefined();
      expect(finding && said(finding)).toMatchObject({
        is: 'unobserved_usage/report_of_a_part',
        blame: 'none',
        claimable: false,
      });
    }
  });

  it('by a part for some days between right ones is MEDIUM at most', () => {
    for (const finding of findingsOf(ofOneProject((at) => isBetween(at, 8, 12)))) {
      expect(finding.kind).toBe('duplicate_charge');
      expect(['MEDIUM', 'LOW']).toContain(finding.grade);
    }
  });

  it('by a whole number of times is a duplicate, for some days and permanently alike', () => {
    for (const isTwice of [(at: number) => isBetween(at, 8, 12), (at: number) => at >= 10, () => true]) {
      const [finding, more] = findingsOf({
        bill: (lines, at, use) => (isTwice(at) ? linesFor(part(use, () => 2)) : lines),
        input: (input, at) => ({ ...input, usage: reported(useOf(at)) }),
      });
      expect(more).toBeUndefined();
      expect(finding && said(finding)).toEqual({
        is: 'duplicate_charge/beyond_usage_report',
        blame: 'provider',
        claimable: true,
        grade: 'HIGH',
      });
    }
  });
});
