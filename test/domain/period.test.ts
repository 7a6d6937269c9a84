import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dayOf, listDays, MICROS_PER_DAY, microsOfDay, shiftDay } from '../../domain/period.js';

const day = fc.integer({ min: 0, max: 40_000 }).map((at) => dayOf(BigInt(at) * MICROS_PER_DAY));

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

  it('stay days at the end of time', () => {
    expect(shiftDay('9999-12-31', 1)).toBe('9999-12-31');
    expect(shiftDay('0100-01-01', -100_000)).toBe('0001-01-01');
  });

  it('are listed without the last, and not at all where the range is turned round', () => {
    expect(listDays('2026-02-27', '2026-03-02')).toEqual(['2026-02-27', '2026-02-28', '2026-03-01']);
    expect(listDays('2026-03-02', '2026-03-02')).toEqual([]);
    expect(listDays('2026-03-02', '2026-02-27')).toEqual([]);
  });
});
