/** Mistakes that begin and end within a day: the hours of reports and calls show which part of each line they had. */
import { describe, expect, it } from 'vitest';
import { QUANTITY_ONE } from '../../../../../domain/billing/billedRow.js';
import { microsOfDay } from '../../../../../domain/period.js';
import type { Finding } from '../../../../../domain/reconciliation/engine/series/finding.js';
import type { DayInput, ObservedCell } from '../../../../../domain/reconciliation/matching/cells.js';
import { aUsageCell } from '../../support.js';
import {
  chargeFor,
  findingsOf,
  type Lines,
  observedOf,
  type SeriesShape,
  type Use,
  useOf,
} from './support.js';

const HOURS = Array.from({ length: 24 }, (_, hour) => hour);
const HOUR_MICROS = 3_600_000_000n;
/** It begins in this hour of one day and ends in that hour of the next. */
const [FIRST, LAST] = [9, 10];
const [BEGIN, END] = [15, 8];

/** Each class has its own share of every hour: prompts are cached in the morning, and answers are long at night. */
const WEIGHTS: Record<keyof Use, (hour: number) => number> = {
  input: (hour) => 30 + ((hour * 7) % 24),
  cache_read: (hour) => (hour < 12 ? 90 - hour : 15 + (hour % 5)),
  output: (hour) => 8 + hour * 4 + (hour % 3),
};

/** Whole tokens of the day by hour, which add up to it. */
function byHour(tokenClass: keyof Use, at: number): bigint[] {
  const weights = HOURS.map(WEIGHTS[tokenClass]);
  const all = weights.reduce((sum, one) => sum + one, 0);
  const counts = weights.map((one) => BigInt(Math.floor((useOf(at)[tokenClass] * one) / all)));
  const rest = BigInt(useOf(at)[tokenClass]) - counts.reduce((sum, one) => sum + one, 0n);
  return counts.map((count, hour) => (hour === 0 ? count + rest : count));
}

/** Tokens in the hours of the mistake: the one in which it begins or ends has a third of them wrong. */
function wrongOf(tokenClass: keyof Use, at: number): bigint {
  const share = (hour: number): bigint => {
    if (at === FIRST) return hour > BEGIN ? 3n : hour === BEGIN ? 1n : 0n;
    if (at === LAST) return hour < END ? 3n : hour === END ? 1n : 0n;
    return 0n;
  };
  return byHour(tokenClass, at).reduce((sum, count, hour) => sum + (count * share(hour)) / 3n, 0n);
}

const CLASSES = ['input', 'cache_read', 'output'] as const;

const changed = (lines: Lines, change: (tokenClass: keyof Use) => Lines['input']): Lines => ({
  ...lines,
  ...Object.fromEntries(CLASSES.map((name) => [name, change(name)])),
});

/** Calls by hour instead of by day. */
const callsOfHours = (input: DayInput, at: number): ObservedCell[] =>
  HOURS.map((hour) => {
    const [day] = input.observed;
    const use = Object.fromEntries(CLASSES.map((name) => [name, Number(byHour(name, at)[hour])]));
    return observedOf(input.day, use as unknown as Use, {
      ...(day && { serviceTier: day.serviceTier }),
      calls: 40,
      hourMicros: microsOfDay(input.day) + BigInt(hour) * HOUR_MICROS,
    });
  });

const usageOfHours = (input: DayInput, at: number, width: 'hour' | 'day') =>
  CLASSES.flatMap((tokenClass) => {
    const counts = byHour(tokenClass, at);
    const cell = (count: bigint, hourMicros: bigint | null) =>
      aUsageCell({ tokenClass, quantity: count * QUANTITY_ONE, hourMicros, longContext: false });
    return width === 'day'
      ? [cell(BigInt(useOf(at)[tokenClass]), null)]
      : counts.map((count, hour) => cell(count, microsOfDay(input.day) + BigInt(hour) * HOUR_MICROS));
  });

/** Dollars of the tokens in these hours at their own rates. */
const worthOf = (at: number): bigint =>
  CLASSES.reduce((sum, name) => sum + chargeFor(name, wrongOf(name, at)), 0n);

function ofDays(findings: readonly Finding[]): string[] {
  return findings.map(({ kind, variant, grade, days }) => {
    const at = days.map(({ day }) => Number(day.slice(8)) - 5);
    return `${grade} ${kind}/${variant} ${at.join(' ')}`;
  });
}

/** The claimed amount of each day over its excess is one within a thousandth. */
function expectExact({ days }: Finding, tooMuch: (at: number) => bigint): void {
  for (const [place, { impactPico }] of days.entries()) {
    const right = tooMuch(FIRST + place);
    expect(Number(impactPico - right)).toBeLessThanOrEqual(Number(right) / 1_000);
    expect(Number(right - impactPico)).toBeLessThanOrEqual(Number(right) / 1_000);
  }
}

/** Cached tokens and others at twice their price in the hours of the mistake. */
const dearer = (lines: Lines, at: number): Lines =>
  changed(lines, (name) => ({
    ...lines[name],
    amountPico: lines[name].amountPico + chargeFor(name, wrongOf(name, at)),
  }));

const doubled = (lines: Lines, at: number): Lines =>
  changed(lines, (name) => ({
    quantity: lines[name].quantity + wrongOf(name, at) * QUANTITY_ONE,
    amountPico: lines[name].amountPico + chargeFor(name, wrongOf(name, at)),
  }));

const found = (shape: SeriesShape): Finding[] => findingsOf(shape);

describe('a rate that is wrong from some hour of one day to some hour of the next', () => {
  const shapeOf = (withHours: boolean): SeriesShape => ({
    bill: dearer,
    input: (input, at) => ({ ...input, observed: withHours ? callsOfHours(input, at) : input.observed }),
  });

  it('is HIGH where the hours of the calls give each line its part, and claims these parts', () => {
    const findings = found(shapeOf(true));
    expect(ofDays(findings)).toEqual(['HIGH service_tier_rate_misapplied/tier:standard as priority 9 10']);
    for (const one of findings) expectExact(one, worthOf);
  });

  it('is not certain where no hours are known', () => {
    expect(found(shapeOf(false)).filter(({ grade }) => grade === 'HIGH')).toEqual([]);
  });
});

describe('hours that are charged twice', () => {
  const shapeOf = (width: 'hour' | 'day', bill: SeriesShape['bill']): SeriesShape => ({
    bill: bill ?? ((lines) => lines),
    input: (input, at) => ({
      ...input,
      usage: usageOfHours(input, at, width),
      observed: callsOfHours(input, at),
    }),
  });

  it.each(['hour', 'day'] as const)(
    'are HIGH beside a usage report by the %s, and claimed as often as they are charged too often',
    (width) => {
      const findings = found(shapeOf(width, doubled));
      expect(ofDays(findings)).toEqual(['HIGH duplicate_charge/hours_twice 9 10']);
      for (const one of findings) expectExact(one, worthOf);
    },
  );

  it('are found in amounts alone where the usage report has the counts', () => {
    const shape = shapeOf('hour', dearer);
    const withoutCounts = (input: DayInput): DayInput => ({
      ...input,
      billed: input.billed.map((cell) => ({ ...cell, quantity: null })),
    });
    const findings = found({
      ...shape,
      input: (input, at) => withoutCounts(shape.input?.(input, at) ?? input),
    });
    expect(ofDays(findings)[0]).toMatch(/duplicate_charge\/amounts_twice 9 10$/);
    for (const one of findings) expectExact(one, worthOf);
  });

  it('are not concluded from use that no hours of the day had in such a mixture', () => {
    const other = (lines: Lines, at: number): Lines =>
      changed(lines, (name) => {
        const wrong = name === 'output' ? wrongOf(name, at) / 4n : wrongOf(name, at);
        return {
          quantity: lines[name].quantity + wrong * QUANTITY_ONE,
          amountPico: lines[name].amountPico + chargeFor(name, wrong),
        };
      });
    const findings = found(shapeOf('hour', other));
    expect(findings.filter(({ grade }) => grade === 'HIGH')).toEqual([]);
    expect(findings.map(({ variant }) => variant)).not.toContain('hours_twice');
  });
});
