import { describe, expect, it } from 'vitest';
import { VISIBILITIES } from '../../lab/bench/reconciliation/benchmark.js';
import { billedCellsOf } from '../../lab/bench/reconciliation/cells.js';
import { fetchBills } from '../../lab/bench/reconciliation/fetchRows.js';
import { makeSecondWorld } from '../../lab/generators/second/company.js';

const SIZE = 0.25;
const world = makeSecondWorld({ seed: 2, set: 'mixed', size: SIZE });

describe('the second generator', () => {
  it('makes the same world of the same seed, and another of another', () => {
    const again = makeSecondWorld({ seed: 2, set: 'mixed', size: SIZE });
    expect(again.bills).toEqual(world.bills);
    expect(again.calls).toEqual(world.calls);
    expect(again.truths).toEqual(world.truths);
    expect(makeSecondWorld({ seed: 3, set: 'mixed', size: SIZE }).spendPico).not.toBe(world.spendPico);
  });

  it('bills the same total at every visibility, and it is what is read', async () => {
    for (const visibility of VISIBILITIES) {
      const { rows } = await fetchBills(world, world.bills[visibility]);
      const billed = [...billedCellsOf(rows).values()].flat();
      expect(
        billed.reduce((sum, { amountPico }) => sum + amountPico, 0n),
        visibility,
      ).toBe(world.spendPico);
    }
  });

  it('plants mistakes of dollars, on days of the bill, over and under', () => {
    const mistakes = world.truths.filter(({ isViolation }) => isViolation);
    expect(mistakes.length).toBeGreaterThan(2);
    for (const { id, impactByDay } of mistakes)
      for (const [day, impact] of impactByDay) {
        expect(impact, id).not.toBe(0n);
        expect(day >= world.firstDay && day <= world.lastDay, id).toBe(true);
      }
    const moved = mistakes.reduce(
      (sum, { impactByDay }) =>
        [...impactByDay.values()].reduce((total, impact) => total + (impact < 0n ? -impact : impact), sum),
      0n,
    );
    expect(moved).toBeLessThan(world.spendPico / 4n);
  });

  it('marks nothing as identifiable on a day that may still be restated', () => {
    for (const { id, impactByDay, identifiableAt } of world.truths)
      if (impactByDay.has(world.lastDay)) expect(identifiableAt.size, id).toBe(0);
  });

  it('plants no mistake where none is wanted, and keeps what looks like one', () => {
    const benign = makeSecondWorld({ seed: 2, set: 'benign_only', size: SIZE });
    expect(benign.truths.some(({ isViolation }) => isViolation)).toBe(false);
    expect(benign.truths.length).toBeGreaterThan(0);
    expect(() => makeSecondWorld({ seed: 2, set: 'nothing', size: SIZE })).toThrow(
      'the second generator has the sets',
    );
  });

  it('has keys that are followed by others, and models that begin later', () => {
    const whole = makeSecondWorld({ seed: 1, set: 'mixed', size: 0.5 });
    expect(whole.keys.some(({ revokedAtSeconds }) => revokedAtSeconds !== null)).toBe(true);
    const firstDays = new Map<string, number>();
    for (const { accountId, model, endSeconds } of whole.calls) {
      const key = `${accountId} ${model}`;
      firstDays.set(key, Math.min(firstDays.get(key) ?? endSeconds, endSeconds));
    }
    const begun = [...firstDays.values()].map((seconds) =>
      new Date(seconds * 1_000).toISOString().slice(0, 10),
    );
    expect(begun.some((day) => day > '2026-07-20')).toBe(true);
  });
});
