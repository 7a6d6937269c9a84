import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  dayOf,
  GAP_PERIODS,
  gapWindow,
  type Instant,
  isoFromMicros,
  lastDays,
  listDays,
  MICROS_PER_DAY,
  microsOfDay,
  parseInstant,
  shiftDay,
  spanMicros,
} from '../../domain/period.js';

const FIRST_DAY = -719_162;
const LAST_DAY = 2_932_896;
const dayAt = (at: number) => dayOf(BigInt(at) * MICROS_PER_DAY);
const day = fc.integer({ min: FIRST_DAY + 5_000, max: LAST_DAY - 5_000 }).map(dayAt);

describe('times', () => {
  const FIRST = BigInt(FIRST_DAY) * MICROS_PER_DAY;
  const LAST = BigInt(LAST_DAY + 1) * MICROS_PER_DAY - 1n;
  const anyTime = fc.bigInt({ min: FIRST, max: LAST });
  const recent = fc.bigInt({ min: 1_700_000_000_000_000n, max: 1_700_000_120_000_000n });

  it('are written to the microsecond, and read as written, before and after one of the same minute', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(anyTime, recent), { minLength: 1, maxLength: 5 }), (times) => {
        for (const micros of times) {
          const text = isoFromMicros(micros);
          expect(text).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z$/);
          expect(parseInstant(text)?.micros).toBe(micros);
        }
      }),
    );
    expect([0n, 59_000_001n, 1_700_000_000_000_000n].map(isoFromMicros)).toEqual([
      '1970-01-01T00:00:00Z',
      '1970-01-01T00:00:59.000001Z',
      '2023-11-14T22:13:20Z',
    ]);
  });
});

describe('days', () => {
  it('shifted there and back are the same day, and each step is one day', () => {
    fc.assert(
      fc.property(day, fc.integer({ min: -5_000, max: 5_000 }), (from, days) => {
        const to = shiftDay(from, days);
        expect(shiftDay(to, -days)).toBe(from);
        expect(microsOfDay(to) - microsOfDay(from)).toBe(BigInt(days) * MICROS_PER_DAY);
      }),
    );
  });

  it('are read as written, from the first of the year 1 to the last of 9999', () => {
    expect([dayAt(FIRST_DAY), dayAt(LAST_DAY)]).toEqual(['0001-01-01', '9999-12-31']);
    fc.assert(
      fc.property(fc.integer({ min: FIRST_DAY, max: LAST_DAY }), (at) => {
        expect(microsOfDay(dayAt(at))).toBe(BigInt(at) * MICROS_PER_DAY);
      }),
    );
  });

  it('stay days at both ends of time', () => {
    expect(shiftDay('9999-12-31', 1)).toBe('9999-12-31');
    expect(shiftDay('0100-01-01', -100_000)).toBe('0001-01-01');
    expect(shiftDay(shiftDay('0100-01-01', -30), 30)).toBe('0100-01-01');
  });

  it('and times before the year 1 are none', () => {
    for (const text of ['0000-12-31', '0001-01-01T00:00:00+00:01', '0001-01-01T13:59:59+14:00'])
      expect(parseInstant(text)).toBeUndefined();
    expect(parseInstant('0001-01-01T14:00:00+14:00')?.micros).toBe(microsOfDay('0001-01-01'));
    expect(parseInstant('0099-02-29')).toBeUndefined();
    expect(parseInstant('0096-02-29')?.dateOnly).toBe(true);
  });

  it('are listed without the last, and not at all where the range is turned round', () => {
    expect(listDays('2026-02-27', '2026-03-02')).toEqual(['2026-02-27', '2026-02-28', '2026-03-01']);
    expect(listDays('2026-03-02', '2026-03-02')).toEqual([]);
    expect(listDays('2026-03-02', '2026-02-27')).toEqual([]);
  });
});

describe('a period that ends with today', () => {
  const at = (text: string) => (parseInstant(text) as Instant).micros;

  it.each([
    ['2026-11-23T00:00:00Z', '2026-11-17'],
    ['2026-11-23T12:00:00Z', '2026-11-17'],
    ['2026-11-23T23:59:59.999999Z', '2026-11-17'],
    ['2026-11-24T00:00:00Z', '2026-11-18'],
  ])('of 7 days has 7 UTC days at %s, the first of them %s', (now, first) => {
    const { start, end } = gapWindow('7d', at(now));
    expect([dayOf(start), dayOf(end - 1n)]).toEqual([first, now.slice(0, 10)]);
  });

  it('has as many days as its name states, whatever the time', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...GAP_PERIODS),
        fc.bigInt({ min: 0n, max: 4_000_000_000_000_000n }),
        (period, now) => {
          const count = Number.parseInt(period, 10);
          const { start, end } = gapWindow(period, now);
          expect(listDays(dayOf(start), dayOf(end))).toHaveLength(count);
          expect(listDays(dayOf(start), dayOf(end)).at(-1)).toBe(dayOf(now));
          expect(lastDays(count, now)).toEqual({ fromDay: dayOf(start), toDay: dayOf(end) });
        },
      ),
    );
  });
});

describe('the span of two inclusive bounds', () => {
  it.each([
    ['2026-02-01', '2026-02-01', MICROS_PER_DAY],
    ['2026-02-01', '2026-02-03', 3n * MICROS_PER_DAY],
    ['2026-02-01T00:00:00Z', '2026-02-02T00:00:00Z', MICROS_PER_DAY],
    ['2026-02-01T12:00:00Z', '2026-02-01', MICROS_PER_DAY / 2n],
    ['2026-02-01', '2026-02-02T00:00:00.000001Z', MICROS_PER_DAY + 1n],
  ])('from %s to %s counts a date as its whole day', (from, to, micros) => {
    expect(spanMicros(parseInstant(from) as Instant, parseInstant(to) as Instant)).toBe(micros);
  });
});
