import { describe, expect, it } from 'vitest';
import { findDayOffset } from '../../../domain/reconciliation/evidence/dayOffset.js';
import { estimateDayOffset } from '../../../usecases/reconciliation/planRun.js';

const HOURS = 24 * 10;
/** Use that is never the same two hours running, and never a day's use again. */
const useAt = (hour: number): number => 1_000 + ((hour * hour * 31 + hour * 4_421) % 983) * 3;

function shifted(offset: number, share = 1) {
  return [
    ...Array.from({ length: HOURS }, (_, hour) => ({ hour, billed: 0, observed: useAt(hour) * share })),
    ...Array.from({ length: HOURS }, (_, hour) => ({
      hour: hour + offset,
      billed: useAt(hour),
      observed: 0,
    })),
  ];
}

describe('the hours by which a provider’s clock differs', () => {
  it('are inferred where almost everything lies apart at one offset and much without it', () => {
    for (const offset of [-14, -8, -1, 3, 9, 14]) expect(findDayOffset(shifted(offset))).toBe(offset);
  });

  it('are none where the hours agree without an offset', () => {
    expect(findDayOffset(shifted(0))).toBe(0);
  });

  it('are not inferred where a part of the calls was not seen and no offset makes up for it', () => {
    expect(findDayOffset(shifted(5, 0.4))).toBeUndefined();
  });

  it('are not inferred from a few hours', () => {
    expect(findDayOffset(shifted(5).filter(({ hour }) => hour < 60))).toBeUndefined();
  });

  it('are not inferred from days in which the clock was changed', () => {
    const change = HOURS / 2;
    const winter = shifted(-8).filter(({ billed, hour }) => billed === 0 || hour + 8 >= change);
    const summer = shifted(-7).filter(({ billed, hour }) => billed > 0 && hour + 7 < change);
    expect(findDayOffset([...summer, ...winter])).toBeUndefined();
  });

  it('do not depend on the order of the hours', () => {
    expect(findDayOffset([...shifted(6)].reverse())).toBe(6);
  });

  it('are none where use is the same every hour: any offset would do', () => {
    const flat = Array.from({ length: HOURS }, (_, hour) => ({ hour, billed: 10, observed: 10 }));
    expect(findDayOffset(flat)).toBe(0);
  });
});

describe('the clock of a provider', () => {
  const told = { hours: shifted(-7), fromDay: '2026-10-12' };
  const silent = { hours: [], fromDay: '2026-10-26' };

  it('is the one of the days before, where the newest days do not show it', async () => {
    const asked: string[] = [];
    const offset = await estimateDayOffset('2026-11-09', async (toDay) => {
      asked.push(toDay);
      return asked.length === 1 ? silent : told;
    });
    expect([offset, asked]).toEqual([-7, ['2026-11-09', '2026-10-26']]);
  });

  it('is UTC where no days show it, or there are no others', async () => {
    let asked = 0;
    const read = async () => {
      asked += 1;
      return silent;
    };
    expect([await estimateDayOffset('2026-11-09', read), asked]).toEqual([0, 3]);
    expect(await estimateDayOffset('2026-11-09', async () => ({ hours: [], fromDay: null }))).toBe(0);
  });
});
