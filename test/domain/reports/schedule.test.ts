import { describe, expect, it } from 'vitest';
import { isoFromMicros, microsOfDay, shiftDay } from '../../../domain/period.js';
import {
  daysOfPeriod,
  partsOfPeriod,
  periodBefore,
  sectionsOf,
  weekdayOf,
} from '../../../domain/reports/report.js';
import {
  type Cadence,
  dueMicrosOf,
  localDayAt,
  periodAfter,
  periodEndedBefore,
  periodFrom,
  scheduleHourOf,
} from '../../../domain/reports/schedule.js';

const due = (cadence: Cadence, fromDay: string, zone: string) =>
  isoFromMicros(dueMicrosOf(periodFrom(cadence, fromDay), zone));

describe('the report of a schedule', () => {
  it('is of the week or the month that is over on a local day, also at the ends of months and years', () => {
    expect(periodEndedBefore('monthly', '2026-03-01')).toEqual({
      fromDay: '2026-02-01',
      toDay: '2026-02-28',
    });
    expect(periodEndedBefore('monthly', '2024-03-31')).toEqual({
      fromDay: '2024-02-01',
      toDay: '2024-02-29',
    });
    expect(periodEndedBefore('monthly', '2026-01-01')).toEqual({
      fromDay: '2025-12-01',
      toDay: '2025-12-31',
    });
    for (const day of ['2026-11-23', '2026-11-26', '2026-11-29'])
      expect(periodEndedBefore('weekly', day)).toEqual({ fromDay: '2026-11-16', toDay: '2026-11-22' });
    expect(periodEndedBefore('weekly', '2026-01-01')).toEqual({ fromDay: '2025-12-22', toDay: '2025-12-28' });
  });

  it('follows its predecessor without a gap, for years', () => {
    for (const cadence of ['weekly', 'monthly'] as const) {
      let period = periodEndedBefore(cadence, '2024-01-05');
      for (let at = 0; at < 150; at += 1) {
        const next = periodAfter(cadence, period);
        expect(next.fromDay).toBe(shiftDay(period.toDay, 1));
        expect(periodEndedBefore(cadence, shiftDay(next.toDay, 1))).toEqual(next);
        if (cadence === 'weekly') expect([weekdayOf(next.fromDay), daysOfPeriod(next)]).toEqual([1, 7]);
        else expect(next.fromDay).toMatch(/-01$/);
        period = next;
      }
    }
  });

  it('is due at 06:00 of its zone, on both sides of a change of the clock', () => {
    expect(due('monthly', '2026-02-01', 'Europe/Berlin')).toBe('2026-03-01T05:00:00Z');
    expect(due('monthly', '2026-03-01', 'Europe/Berlin')).toBe('2026-04-01T04:00:00Z');
    expect(due('monthly', '2026-10-01', 'Europe/Berlin')).toBe('2026-11-01T05:00:00Z');
    expect(due('weekly', '2026-03-02', 'America/New_York')).toBe('2026-03-09T10:00:00Z');
    expect(due('weekly', '2026-02-23', 'America/New_York')).toBe('2026-03-02T11:00:00Z');
    expect(due('weekly', '2026-11-16', 'America/St_Johns')).toBe('2026-11-23T09:30:00Z');
  });

  it('is due later where the last UTC day is not over at 06:00', () => {
    expect(scheduleHourOf('UTC')).toBe(6);
    expect(scheduleHourOf('Asia/Tokyo')).toBe(9);
    expect(due('monthly', '2026-10-01', 'Asia/Tokyo')).toBe('2026-11-01T00:00:00Z');
    for (const zone of [
      'Pacific/Auckland',
      'Pacific/Kiritimati',
      'Asia/Kolkata',
      'Australia/Lord_Howe',
      'Pacific/Honolulu',
    ])
      for (let month = 1; month <= 12; month += 1) {
        const period = periodFrom('monthly', `2026-${String(month).padStart(2, '0')}-01`);
        const at = dueMicrosOf(period, zone);
        expect(at >= microsOfDay(shiftDay(period.toDay, 1))).toBe(true);
        expect(localDayAt(zone, at)).toBe(shiftDay(period.toDay, 1));
      }
  });
});

describe('a period', () => {
  it('is compared with as many days before it', () => {
    expect(periodBefore({ fromDay: '2026-03-01', toDay: '2026-03-31' })).toEqual({
      fromDay: '2026-01-29',
      toDay: '2026-02-28',
    });
  });

  it.each([
    [{ fromDay: '2026-10-01', toDay: '2026-10-31' }, 31],
    [{ fromDay: '2026-07-01', toDay: '2026-09-30' }, 14],
    [{ fromDay: '2025-11-15', toDay: '2026-11-14' }, 13],
    [{ fromDay: '2026-10-31', toDay: '2026-10-31' }, 1],
  ])('consists of its days, weeks or months without gap: %o', (period, count) => {
    const parts = partsOfPeriod(period);
    expect(parts).toHaveLength(count);
    expect([parts[0]?.fromDay, parts.at(-1)?.toDay]).toEqual([period.fromDay, period.toDay]);
    for (const [at, part] of parts.entries())
      if (at > 0) expect(part.fromDay).toBe(shiftDay(parts[at - 1]?.toDay ?? '', 1));
  });

  it('has sections in their fixed order, each once', () => {
    expect(sectionsOf(['reconciliation', 'summary', 'reconciliation'])).toEqual([
      'summary',
      'reconciliation',
    ]);
    expect(sectionsOf(undefined)).toHaveLength(5);
  });
});
