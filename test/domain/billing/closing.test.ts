import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type AsOfQuestion,
  bookedMicros,
  decideClosing,
  endOfMonth,
  followingMonth,
  monthOf,
  monthsBetween,
  parseMonth,
  startOfMonth,
  statusOfMonth,
  viewAsOf,
} from '../../../domain/billing/periods.js';
import { dayOf, MICROS_PER_DAY, microsOfDay, parseInstant, startOfDay } from '../../../domain/period.js';

const time = fc.bigInt({ min: microsOfDay('2020-01-01'), max: microsOfDay('2030-01-01') });
const code = (work: () => unknown) => {
  try {
    return work();
  } catch (error) {
    return (error as { code?: string }).code;
  }
};

describe('a month', () => {
  it('is four digits, a hyphen and a month of the year', () => {
    for (const text of ['2026-01', '2026-12', '1000-01', '9999-11']) expect(parseMonth(text)).toBe(text);
    for (const text of [
      '2026-00',
      '2026-13',
      '2026-1',
      '0000-01',
      '0999-12',
      '9999-12',
      '26-01',
      '2026-01-01',
      ' 2026-01',
      '',
    ])
      expect(parseMonth(text)).toBeUndefined();
  });

  it('holds exactly the times from its first microsecond to the next month’s', () => {
    fc.assert(
      fc.property(time, (micros) => {
        const month = monthOf(micros);
        expect(startOfMonth(month) <= micros && micros < endOfMonth(month)).toBe(true);
        expect(monthOf(endOfMonth(month))).toBe(followingMonth(month));
      }),
    );
    expect(monthsBetween('2025-11', '2026-02')).toEqual(['2025-11', '2025-12', '2026-01', '2026-02']);
    expect(monthsBetween('2026-02', '2026-01')).toEqual([]);
  });
});

describe('closing', () => {
  const march = microsOfDay('2026-03-01');

  it('takes a month that is over, to the microsecond', () => {
    expect(decideClosing('2026-02', undefined, march)).toBe('close');
    expect(code(() => decideClosing('2026-02', undefined, march - 1n))).toBe('period_not_over');
    expect(code(() => decideClosing('2026-03', undefined, march))).toBe('period_not_over');
  });

  it('begins with any month and continues in order', () => {
    expect(decideClosing('2024-05', undefined, march)).toBe('close');
    expect(decideClosing('2024-06', '2024-05', march)).toBe('close');
    expect(code(() => decideClosing('2024-07', '2024-05', march))).toBe('period_out_of_order');
    expect(decideClosing('2024-05', '2024-05', march)).toBe('closed_already');
    expect(decideClosing('1999-01', '2024-05', march)).toBe('closed_already');
    expect([
      statusOfMonth('2024-05', endOfMonth('2024-05')),
      statusOfMonth('2024-06', endOfMonth('2024-05')),
    ]).toEqual(['closed', 'open']);
    expect(statusOfMonth('2024-05', null)).toBe('open');
  });
});

describe('a change', () => {
  it('of an open time counts at that time, of a closed time on the day on which it came, never in a closed month', () => {
    fc.assert(
      fc.property(time, time, fc.option(time.map(monthOf).map(endOfMonth)), (event, came, closedUntil) => {
        const booked = bookedMicros(event, came, closedUntil);
        if (closedUntil === null || event >= closedUntil) expect(booked).toBe(event);
        else {
          expect(booked).toBe(startOfDay(booked));
          expect(booked >= closedUntil).toBe(true);
          expect(booked === startOfDay(came) || booked === closedUntil).toBe(true);
        }
      }),
    );
  });
});

describe('as_of', () => {
  const closings = ['2026-01', '2026-02'].map((month, index) => ({
    month,
    endsAtMicros: endOfMonth(month),
    closedAtMicros: microsOfDay('2026-03-05') + BigInt(index * 31) * MICROS_PER_DAY + 36_000_000_000n,
  }));
  const ask = (asOf: string | undefined, to: string | undefined, known = closings) => {
    const question: AsOfQuestion = {
      asOf: asOf === undefined ? undefined : parseInstant(asOf),
      fromMicros: undefined,
      toMicros: to === undefined ? undefined : microsOfDay(to),
      names: ['from', 'to'],
      nowMicros: microsOfDay('2026-04-20') + 1n,
    };
    return viewAsOf(question, known);
  };

  it('that is left out asks for the books, and from now on for what is known now', () => {
    expect(ask(undefined, undefined)).toEqual({ kind: 'books' });
    for (const asOf of ['2026-04-20', '2026-04-20T00:00:00.000002Z', '2099-01-01'])
      expect(ask(asOf, undefined)).toEqual({ kind: 'now' });
  });

  it('of a past day’s end is answered for months that were closed by then', () => {
    expect(ask('2026-03-05', '2026-02-01')).toEqual({ kind: 'known', beforeDay: '2026-03-06' });
    expect(ask('2026-03-06T00:00:00Z', '2026-01-15')).toEqual({ kind: 'known', beforeDay: '2026-03-06' });
    expect(ask('2026-04-10', '2026-03-01')).toEqual({ kind: 'known', beforeDay: '2026-04-11' });
  });

  it('is refused where what was known is not kept, with what to ask instead', () => {
    const sentence = (asOf: string, to?: string, known = closings) => {
      try {
        return JSON.stringify(ask(asOf, to, known));
      } catch (error) {
        expect((error as { code: string }).code).toBe('as_of_unanswerable');
        return (error as Error).message;
      }
    };
    expect(sentence('2026-03-04', '2026-02-01')).toMatch(/no month was closed before .*as_of=2026-03-05/);
    expect(sentence('2026-03-05T12:00:00Z', '2026-02-01')).toMatch(/by UTC day.*as_of=2026-03-05 /);
    expect(sentence('2026-03-10', '2026-03-01')).toMatch(/closed by then was 2026-01.*set to=2026-01-31/);
    expect(sentence('2026-03-10')).toMatch(/has no end/);
    expect(sentence('2026-03-10', '2026-02-01', [])).toMatch(/close months to keep their figures/);
  });

  it('returns only days before a closing, for windows that it closed', () => {
    fc.assert(
      fc.property(time, time, (asOfMicros, toMicros) => {
        const asOf = { micros: startOfDay(asOfMicros), dateOnly: true };
        const question = { asOf, fromMicros: undefined, toMicros, names: ['from', 'to'] as const };
        const nowMicros = microsOfDay('2029-01-01');
        try {
          const view = viewAsOf({ ...question, nowMicros }, closings);
          if (view.kind !== 'known') {
            expect(asOf.micros + MICROS_PER_DAY > nowMicros).toBe(true);
            return;
          }
          expect(view.beforeDay).toBe(dayOf(asOf.micros + MICROS_PER_DAY));
          const closed = closings.filter(
            ({ closedAtMicros }) => closedAtMicros < microsOfDay(view.beforeDay),
          );
          expect(toMicros <= (closed.at(-1)?.endsAtMicros ?? 0n)).toBe(true);
        } catch (error) {
          expect((error as { code: string }).code).toBe('as_of_unanswerable');
        }
      }),
    );
  });
});
