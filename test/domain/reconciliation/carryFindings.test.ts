import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { carryFindings, type PublishedFinding } from '../../../domain/reconciliation/carryFindings.js';
import type { Finding } from '../../../domain/reconciliation/engine/series/finding.js';

import { type DisputedDay, separateDisputed } from '../../../domain/reconciliation/reconcileDays.js';
import { aFinding, aFindingDay } from '../../support/findings.js';

const USD = 10n ** 12n;
const dayAt = (at: number) => `2026-03-${String(at + 1).padStart(2, '0')}`;
const found = (days: readonly number[], parts: Partial<Finding> = {}): Finding =>
  aFinding({ ...parts, days: days.map((at) => aFindingDay(dayAt(at), BigInt(at + 1) * USD)) });
const disputed = (days: readonly number[], parts: Partial<DisputedDay> = {}): DisputedDay[] =>
  days.map((at) => ({
    ...{ disputeId: 'd-1', findingId: 'f-1', model: 'gpt-4o', day: dayAt(at), live: true },
    ...{ kind: 'cache_read_rate_mismatch', variant: 'full_rate' },
    ...parts,
  }));
const published = (id: string, days: readonly number[], parts: Partial<PublishedFinding> = {}) => ({
  ...{ id, model: 'gpt-4o', kind: 'cache_read_rate_mismatch', direction: 'overcharge' as const },
  ...{ status: 'confirmed' as const, days: days.map(dayAt) },
  ...parts,
});

/** Result for each finding: days, id, source of its decision, and the dispute that has its days. */
function outcome(
  before: readonly PublishedFinding[],
  findings: readonly Finding[],
  disputes: readonly DisputedDay[],
) {
  const separated = separateDisputed(findings, disputes);
  const carried = carryFindings(before, separated);
  return {
    ...carried,
    parts: separated.map(({ finding, heldBy }, at) => ({
      ...carried.parts[at],
      heldBy,
      days: finding.days.map(({ day }) => Number(day.slice(8)) - 1),
    })),
  };
}

describe('a disputed finding', () => {
  it('that is split in two continues in one part, and the other takes its decision', () => {
    const { parts, removed, gone } = outcome(
      [published('f-1', [0, 1, 2, 3])],
      [found([0]), found([2, 3])],
      disputed([0, 1, 2, 3]),
    );
    expect(parts).toEqual([
      { id: null, decisionOf: 'f-1', heldBy: null, days: [0] },
      { id: 'f-1', decisionOf: 'f-1', heldBy: null, days: [2, 3] },
    ]);
    expect([removed, gone]).toEqual([[], []]);
  });

  it('that was published on fewer days meanwhile has its disputed days again', () => {
    const { parts } = outcome([published('f-1', [0])], [found([0]), found([2, 3])], disputed([0, 2, 3]));
    expect(parts.map(({ id, decisionOf }) => id ?? decisionOf)).toEqual(['f-1', 'f-1']);
  });

  it('that is found together with other days is cut from them, which stay open', () => {
    const open = published('f-2', [4, 5], { status: 'open' });
    const { parts } = outcome([published('f-1', [1, 2]), open], [found([0, 1, 2, 4])], disputed([1, 2]));
    expect(parts).toEqual([
      { id: 'f-2', decisionOf: null, heldBy: null, days: [0, 4] },
      { id: 'f-1', decisionOf: 'f-1', heldBy: null, days: [1, 2] },
    ]);
  });

  it('stays apart from another disputed one that it is found together with', () => {
    const { parts, gone } = outcome(
      [published('f-1', [0, 1]), published('f-2', [3], { status: 'gone' })],
      [found([0, 1, 3])],
      [...disputed([0, 1]), ...disputed([3], { disputeId: 'd-2', findingId: 'f-2' })],
    );
    expect(parts.map(({ id, days }) => [id, days])).toEqual([
      ['f-1', [0, 1]],
      ['f-2', [3]],
    ]);
    expect(gone).toEqual([]);
  });

  it('holds its days under another kind as long as it is live and not found on them itself', () => {
    const other = found([0, 1, 2], { kind: 'unexplained', variant: '' });
    const before = [published('f-1', [0, 1])];
    expect(outcome(before, [other], disputed([0, 1])).parts).toEqual([
      { id: null, decisionOf: 'f-1', heldBy: 'd-1', days: [0, 1] },
      { id: null, decisionOf: null, heldBy: null, days: [2] },
    ]);
    const free = [{ id: null, decisionOf: null, heldBy: null, days: [0, 1, 2] }];
    expect(outcome(before, [other], disputed([0, 1], { live: false })).parts).toEqual(free);
    const both = outcome(before, [other, found([0, 1])], disputed([0, 1]));
    expect(both.parts.slice(0, 1)).toEqual(free);
  });

  it('holds days of another variant of its kind only where its own is not found on them', () => {
    const other = found([0], { variant: 'input_rate' });
    expect(outcome([], [other], disputed([0])).parts[0]?.decisionOf).toBe('f-1');
    expect(outcome([], [other, found([0])], disputed([0])).parts.map(({ decisionOf }) => decisionOf)).toEqual(
      [null, 'f-1'],
    );
  });

  it('has nothing to do with what is charged too little', () => {
    const short = aFinding({ direction: 'undercharge', days: [aFindingDay(dayAt(0), -USD)] });
    expect(separateDisputed([short], disputed([0]))).toEqual([
      { finding: short, decidedWith: null, heldBy: null },
    ]);
  });
});

it('a dismissed finding that is found in two is dismissed in both', () => {
  const dismissed = published('f-1', [0, 1, 2], { status: 'dismissed' });
  const { parts } = outcome([dismissed], [found([0, 1]), found([2])], []);
  expect(parts.map(({ id, decisionOf }) => [id, decisionOf])).toEqual([
    ['f-1', null],
    [null, 'f-1'],
  ]);
});

const KINDS = ['cache_read_rate_mismatch', 'duplicate_charge', 'unexplained'] as const;
const DAYS = 8;
/** Findings of one series: of each kind a day is in one at most. */
const findings = fc
  .array(
    fc.tuple(
      fc.constantFrom(...KINDS),
      fc.constantFrom('a', 'b'),
      fc.uniqueArray(fc.nat(DAYS - 1), { minLength: 1 }),
    ),
    {
      maxLength: 5,
    },
  )
  .map((given) => {
    const seen = new Set<string>();
    return given.flatMap(([kind, variant, days]) => {
      const own = days.filter((day) => !seen.has(`${kind} ${day}`)).sort((a, b) => a - b);
      for (const day of own) seen.add(`${kind} ${day}`);
      return own.length > 0 ? [found(own, { kind, variant })] : [];
    });
  });
const disputes = fc.array(
  fc.record({
    kind: fc.constantFrom(...KINDS),
    variant: fc.constantFrom('a', 'b'),
    day: fc.nat(DAYS - 1),
    of: fc.nat(2),
    live: fc.boolean(),
  }),
  { maxLength: 8 },
);

it('no disputed day is left open, no dollar is lost, and a second run of the same changes nothing', () => {
  fc.assert(
    fc.property(findings, disputes, (given, drawn) => {
      const days = drawn.map(({ kind, variant, day, of, live }) => ({
        ...{ model: 'gpt-4o', kind, variant, live, day: dayAt(day) },
        ...{ disputeId: `d-${of}`, findingId: `f-${of}` },
      }));
      const parts = separateDisputed(given, days);
      const dollarsOf = (some: readonly Finding[]) =>
        some
          .flatMap((one) =>
            one.days.map(({ day, impactPico }) => `${one.kind} ${one.variant} ${day} ${impactPico}`),
          )
          .sort();
      expect(dollarsOf(parts.map(({ finding }) => finding))).toEqual(dollarsOf(given));
      for (const { finding } of parts)
        expect(finding.impactPico).toBe(finding.days.reduce((sum, day) => sum + day.impactPico, 0n));
      for (const { finding, decidedWith } of parts)
        if (decidedWith === null)
          for (const { day } of finding.days)
            for (const one of days)
              if (one.day === day) {
                const isElsewhere = given.some(
                  (other) =>
                    other.kind === one.kind &&
                    (one.kind !== finding.kind || other.variant === one.variant) &&
                    other.days.some((its) => its.day === day),
                );
                expect(isElsewhere || (one.kind !== finding.kind && !one.live)).toBe(true);
                expect(one.kind === finding.kind && one.variant === finding.variant).toBe(false);
              }
      const first = parts.map(({ finding, decidedWith }, at) => ({
        ...{ id: `p-${at}`, model: finding.model, kind: finding.kind, direction: finding.direction },
        status: decidedWith === null ? ('open' as const) : ('confirmed' as const),
        days: finding.days.map(({ day }) => day),
      }));
      const again = carryFindings(first, parts);
      expect(again.parts.map(({ id }) => id)).toEqual(first.map(({ id }) => id));
      expect([again.removed, again.gone]).toEqual([[], []]);
    }),
  );
});
