import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pacificDayOf, timesOfPacificDay } from '../../../domain/billing/billingDay.js';
import {
  isoFromMicros,
  MICROS_PER_DAY,
  MICROS_PER_HOUR,
  parseInstant,
  shiftDay,
} from '../../../domain/period.js';

const at = (iso: string) => parseInstant(iso)?.micros as bigint;
const FIRST = at('2007-01-01T08:00:00Z');
const LAST = at('2060-01-01T00:00:00Z');

/** The machine's own tables of time zones, which share nothing with the rule. */
const zone = new Intl.DateTimeFormat('sv-SE', { timeZone: 'America/Los_Angeles', dateStyle: 'short' });
const byTheTables = (micros: bigint) => zone.format(new Date(Number(micros / 1_000n)));

describe('Pacific days', () => {
  it.each([
    ['2026-03-01T07:59:59.999999Z', '2026-02-28'],
    ['2026-03-01T08:00:00Z', '2026-03-01'],
    ['2026-03-08T09:59:59Z', '2026-03-08'],
    ['2026-04-01T06:59:59Z', '2026-03-31'],
    ['2026-04-01T07:00:00Z', '2026-04-01'],
    ['2026-11-01T06:59:59Z', '2026-10-31'],
    ['2026-11-02T07:59:59Z', '2026-11-01'],
    ['2028-03-01T07:00:00Z', '2028-02-29'],
  ])('%s lies on %s', (iso, day) => {
    expect(pacificDayOf(at(iso))).toBe(day);
  });

  it('are those of the tables of time zones', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: FIRST, max: LAST }), (micros) => {
        expect(pacificDayOf(micros)).toBe(byTheTables(micros));
      }),
    );
  });

  it('follow one another without a gap and hold all of their times', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: FIRST, max: LAST }), (micros) => {
        const day = pacificDayOf(micros);
        const { startMicros, endMicros } = timesOfPacificDay(day);
        expect(startMicros <= micros && micros < endMicros).toBe(true);
        expect(timesOfPacificDay(shiftDay(day, 1)).startMicros).toBe(endMicros);
        expect(pacificDayOf(endMicros)).toBe(shiftDay(day, 1));
      }),
    );
  });

  it('have 23 hours where the clock goes forward and 25 where it goes back', () => {
    const hours = (day: string) => {
      const { startMicros, endMicros } = timesOfPacificDay(day);
      return (endMicros - startMicros) / MICROS_PER_HOUR;
    };
    expect(['2026-03-07', '2026-03-08', '2026-03-09', '2026-11-01', '2028-02-29'].map(hours)).toEqual([
      24n,
      23n,
      24n,
      25n,
      24n,
    ]);
    expect(isoFromMicros(timesOfPacificDay('2026-03-09').startMicros)).toBe('2026-03-09T07:00:00Z');
    expect(timesOfPacificDay('2026-12-31').endMicros - timesOfPacificDay('2026-01-01').startMicros).toBe(
      365n * MICROS_PER_DAY,
    );
  });
});
