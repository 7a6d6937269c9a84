import { describe, expect, it } from 'vitest';
import { TOKEN_CLASSES, type TokenClass } from '../../../domain/events/event.js';
import {
  type BilledUse,
  findDayOffset,
  findOffsetOfDays,
  type ObservedUse,
} from '../../../domain/reconciliation/evidence/dayOffset.js';
import { estimateDayOffset } from '../../../usecases/reconciliation/planRun.js';

const NONE = Object.fromEntries(TOKEN_CLASSES.map((name) => [name, 0n])) as Record<TokenClass, bigint>;
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

const DAYS_ALONE = 24;

/**
 * Bills of days alone, cut at another hour: two models, of which one has calls by day only. `seen`: the share of calls
 * observed on a day.
 */
function dayAlone(
  offset: number,
  { seen = (_: number): number => 1, isWrong = (_: number): boolean => false } = {},
) {
  const hours: ObservedUse[] = [];
  const billed = new Map<string, BilledUse>();
  for (let hour = 0; hour < 24 * (DAYS_ALONE + 2); hour += 1) {
    for (const [model, tokens] of [
      ['small', useAt(hour)],
      ['large', hour % 24 >= 7 && hour % 24 < 18 ? useAt(hour * 7) : 0],
    ] as const) {
      if (tokens === 0) continue;
      const observed = Math.round(tokens * seen(Math.floor(hour / 24)));
      hours.push({
        model,
        hour,
        tokens: { ...NONE, input: BigInt(observed) },
        computedCostPico: BigInt(observed),
      });
      const day = Math.floor((hour + offset) / 24);
      if (day < 1 || day > DAYS_ALONE) continue;
      const known = billed.get(`${model} ${day}`)?.quantity ?? 0n;
      const quantity = known + BigInt(tokens) * (isWrong(day) && model === 'small' ? 2n : 1n);
      billed.set(`${model} ${day}`, { model, tokenClass: 'input', day, quantity, amountPico: 3n * quantity });
    }
  }
  return { days: [...billed.values()], hours };
}

describe('the hours by which a provider’s clock differs, of bills of days', () => {
  const offsetOf = ({ days, hours }: ReturnType<typeof dayAlone>) =>
    findOffsetOfDays(days, hours, (model) => model);

  it('are those at which every day has its calls', () => {
    for (const offset of [-14, -8, -5, 1, 2, 9]) expect(offsetOf(dayAlone(offset))).toBe(offset);
  });

  it('are none where the days are UTC’s', () => {
    expect(offsetOf(dayAlone(0))).toBe(0);
  });

  it('are found beside mistakes, and where many calls are not seen', () => {
    expect(offsetOf(dayAlone(-8, { isWrong: (day) => day > 6 && day < 14 }))).toBe(-8);
    expect(offsetOf(dayAlone(9, { seen: (day) => (day < 9 ? 0.62 : 0.97) }))).toBe(9);
  });

  it('are none where mistakes or outages alone set days apart', () => {
    expect(offsetOf(dayAlone(0, { isWrong: (day) => day % 2 === 0 }))).toBe(0);
    expect(offsetOf(dayAlone(0, { seen: (day) => (day % 3 === 0 ? 0.5 : 1) }))).toBe(0);
  });

  it('are found by amounts where the bill has no quantities', () => {
    const { days, hours } = dayAlone(-5);
    expect(offsetOf({ days: days.map((one) => ({ ...one, quantity: null })), hours })).toBe(-5);
    const whole = days.map((one) => ({ ...one, quantity: null, tokenClass: 'other' as const }));
    expect(offsetOf({ days: whole, hours })).toBe(-5);
  });

  it('are not inferred from less than two weeks', () => {
    const { days, hours } = dayAlone(-8);
    expect(offsetOf({ days: days.filter(({ day }) => day < 12), hours })).toBeUndefined();
  });

  it('are none where no call is between the hours that could divide the days', () => {
    const { days, hours } = dayAlone(4);
    const isLarge = ({ model }: { model: string }) => model === 'large';
    expect(offsetOf({ days: days.filter(isLarge), hours: hours.filter(isLarge) })).toBe(0);
  });
});

describe('the clock of a provider', () => {
  const told = { hours: shifted(-7), fromDay: '2026-10-12' };
  const silent = { hours: [], fromDay: '2026-10-26' };

  const nothing = { uses: async () => ({ billed: [], observed: [] }), nameOf: (model: string) => model };

  it('is the one of the days before, where the newest days do not show it', async () => {
    const asked: string[] = [];
    const offset = await estimateDayOffset('2026-11-09', {
      ...nothing,
      hours: async (toDay) => {
        asked.push(toDay);
        return asked.length === 1 ? silent : told;
      },
    });
    expect([offset, asked]).toEqual([-7, ['2026-11-09', '2026-10-26']]);
  });

  it('is the one of the billed days, where the usage report has no hours', async () => {
    const read = { hours: async () => ({ hours: [], fromDay: null }), nameOf: (model: string) => model };
    const { days, hours } = dayAlone(-8);
    const uses = async () => ({ billed: days, observed: hours });
    expect(await estimateDayOffset('2026-11-09', { ...read, uses })).toBe(-8);
  });

  it('is UTC where no days show it, or there are no others', async () => {
    let asked = 0;
    const read = async () => {
      asked += 1;
      return silent;
    };
    expect([await estimateDayOffset('2026-11-09', { ...nothing, hours: read }), asked]).toEqual([0, 3]);
    const none = async () => ({ hours: [], fromDay: null });
    expect(await estimateDayOffset('2026-11-09', { ...nothing, hours: none })).toBe(0);
  });
});
