import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BusinessDays } from '../../../domain/claims/deadlines.js';
import { dayOf, isoFromMicros, listDays, parseInstant, shiftDay } from '../../../domain/period.js';

const MICROS_PER_HOUR = 3_600_000_000n;
/** Time zones with clock changes forward and back, at midnight, by half an hour, and with a skipped day. */
const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/New_York',
  'America/St_Johns',
  'America/Sao_Paulo',
  'Asia/Beirut',
  'Asia/Kathmandu',
  'Australia/Lord_Howe',
  'Pacific/Apia',
  'Pacific/Kiritimati',
];
const micros = (iso: string) => parseInstant(iso)?.micros ?? 0n;
const FROM = micros('2005-01-01');
const TO = micros('2035-01-01');

const zone = fc.constantFrom(...ZONES);
const time = fc.bigInt(FROM, TO);
const count = fc.integer({ min: 0, max: 60 });
const holidaysNear = (day: string) =>
  fc.subarray(listDays(shiftDay(day, -10), shiftDay(day, 60)), { maxLength: 40 });
/** A time, and holidays around it: none, some, many. */
const situation = fc.tuple(zone, time, count).chain(([timeZone, at, days]) =>
  fc.record({
    timeZone: fc.constant(timeZone),
    at: fc.constant(at),
    days: fc.constant(days),
    holidays: fc.oneof(fc.constant<string[]>([]), holidaysNear(dayOf(at))),
  }),
);

/** The day that clocks show, by another way than the code under test has. */
const shown = (at: bigint, timeZone: string) =>
  new Date(Number(at / 1_000n)).toLocaleDateString('sv-SE', { timeZone });
const weekdayOf = (day: string) => new Date(`${day}T12:00:00Z`).getUTCDay();
const isWorked = (day: string, holidays: readonly string[]) =>
  ![0, 6].includes(weekdayOf(day)) && !holidays.includes(day);

const endOf = (calendar: { timeZone: string; holidays: string[] }, from: string, days: number) =>
  isoFromMicros(new BusinessDays(calendar).after(micros(from), days));

describe('business days', () => {
  it('leave out weekends and holidays', () => {
    const calendar = { timeZone: 'UTC', holidays: ['2026-12-25', '2027-01-01'] };
    expect(endOf(calendar, '2026-12-23T15:00:00Z', 1)).toBe('2026-12-24T15:00:00Z');
    expect(endOf(calendar, '2026-12-24T15:00:00Z', 1)).toBe('2026-12-28T15:00:00Z');
    expect(endOf(calendar, '2026-12-24T15:00:00Z', 5)).toBe('2027-01-04T15:00:00Z');
  });

  it('of what passes on days that are none, nothing counts', () => {
    const calendar = { timeZone: 'UTC', holidays: ['2026-12-25'] };
    for (const from of ['2026-12-25T00:00:00Z', '2026-12-26T11:11:11Z', '2026-12-27T23:59:59Z'])
      expect(endOf(calendar, from, 3)).toBe('2026-12-31T00:00:00Z');
  });

  it('begin and end by the clocks of the time zone', () => {
    // Sunday in Berlin, Saturday in New York; Friday evening in Los Angeles is Saturday in Berlin.
    const from = '2026-12-12T01:00:00Z';
    expect(endOf({ timeZone: 'America/Los_Angeles', holidays: [] }, from, 1)).toBe('2026-12-15T01:00:00Z');
    expect(endOf({ timeZone: 'Europe/Berlin', holidays: [] }, from, 1)).toBe('2026-12-14T23:00:00Z');
  });

  it('are as far into the day by the clock before and after clocks change', () => {
    const berlin = { timeZone: 'Europe/Berlin', holidays: [] };
    expect(endOf(berlin, '2026-03-27T09:00:00Z', 1)).toBe('2026-03-30T08:00:00Z');
    expect(endOf(berlin, '2026-10-23T08:00:00Z', 1)).toBe('2026-10-26T09:00:00Z');
  });

  it('begin where clocks begin them: midnight itself may be left out, and so may a day', () => {
    const starts = (timeZone: string, day: string) =>
      isoFromMicros(new BusinessDays({ timeZone, holidays: [] }).startOfDay(day));
    expect(starts('America/Sao_Paulo', '2018-11-04')).toBe('2018-11-04T03:00:00Z');
    expect(starts('Asia/Kathmandu', '2026-01-01')).toBe('2025-12-31T18:15:00Z');
    expect(starts('Pacific/Apia', '2011-12-30')).toBe(starts('Pacific/Apia', '2011-12-31'));
  });

  it('continue where every day of ten years is a holiday', () => {
    const holidays = listDays('2026-01-01', '2036-01-01');
    expect(endOf({ timeZone: 'Europe/Berlin', holidays }, '2026-05-05T12:00:00Z', 2)).toBe(
      '2036-01-02T23:00:00Z',
    );
  });

  it('are counted by UTC and without invalid days, where the settings were edited by hand', () => {
    const calendar = { timeZone: 'Mars/Olympus', holidays: ['2026-02-30', '2026-12-24'] };
    expect(endOf(calendar, '2026-12-23T15:00:00Z', 1)).toBe('2026-12-25T15:00:00Z');
  });

  it('end on a business day or as the next day begins, after so many business days', () => {
    fc.assert(
      fc.property(situation, ({ timeZone, at, days, holidays }) => {
        const end = new BusinessDays({ timeZone, holidays }).after(at, days);
        expect(end >= at).toBe(true);
        const first = shown(at, timeZone);
        // The clocks do not show a skipped day, which may have been a business day.
        if (days === 0 || timeZone === 'Pacific/Apia') return;
        const passed = listDays(shiftDay(first, 1), shiftDay(shown(end, timeZone), 1)).filter((day) =>
          isWorked(day, holidays),
        ).length;
        // From a non-business day the count begins with the next day and ends at its end.
        expect([days, days + 1]).toContain(passed);
        if (isWorked(first, holidays) && passed === days)
          expect(isWorked(shown(end, timeZone), holidays)).toBe(true);
      }),
      { numRuns: 300 },
    );
  });

  it('never move back as time passes, and more of them never end earlier', () => {
    fc.assert(
      fc.property(
        situation,
        fc.bigInt(0n, 72n * MICROS_PER_HOUR),
        ({ timeZone, at, days, holidays }, later) => {
          const calendar = new BusinessDays({ timeZone, holidays });
          expect(calendar.after(at + later, days) >= calendar.after(at, days)).toBe(true);
          expect(calendar.after(at, days + 1) > calendar.after(at, days)).toBe(true);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('are what they are, however often and in whichever order they are asked for', () => {
    fc.assert(
      fc.property(situation, time, ({ timeZone, at, days, holidays }, other) => {
        const used = new BusinessDays({ timeZone, holidays });
        used.after(other, days);
        const fresh = new BusinessDays({ timeZone, holidays: [...holidays].reverse() });
        expect(used.after(at, days)).toBe(fresh.after(at, days));
      }),
      { numRuns: 100 },
    );
  });
});
