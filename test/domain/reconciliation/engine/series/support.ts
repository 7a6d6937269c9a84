/** Series of days, made by hand: a model's calls, the bill that they should give, and what is changed in it. */
import { QUANTITY_ONE } from '../../../../../domain/billing/billedRow.js';
import type { TokenClass } from '../../../../../domain/events/event.js';
import { microsOfDay, shiftDay } from '../../../../../domain/period.js';
import type { Provider } from '../../../../../domain/providers.js';
import type { Finding } from '../../../../../domain/reconciliation/engine/series/finding.js';

import type {
  BilledCell,
  DayInput,
  ObservedCell,
} from '../../../../../domain/reconciliation/matching/cells.js';
import { type Reconciled, reconcileDays } from '../../../../../domain/reconciliation/reconcileDays.js';
import { DEFAULT_WEIGHTS } from '../../../../../domain/reconciliation/weights/weightSet.js';
import { ACCOUNT, aBilledCell, aCoveredAccount, aDay, anObservedCell, BOOK, DAY } from '../../support.js';

export const MODEL = 'gpt-6-sol';
/** Dollars a million of gpt-6-sol's ordinary rates, as the shipped list has them. */
export const RATES = { input: 2n, cache_read: 0.2, output: 10n } as const;

export interface Use {
  input: number;
  cache_read: number;
  output: number;
}

/** The day's use: large enough that a thousandth matters, and never the same on two days. */
export function useOf(at: number): Use {
  return {
    input: 40_000_000 + ((at * 7_919) % 13) * 1_300_000,
    cache_read: 90_000_000 + ((at * 104_729) % 11) * 2_100_000,
    output: 9_000_000 + ((at * 31) % 7) * 410_000,
  };
}

export interface Line {
  quantity: bigint;
  amountPico: bigint;
}
export type Lines = Record<keyof Use, Line>;

/** Pico-dollars for a million tokens. */
export const PER_MILLION: Record<keyof Use, bigint> = {
  input: 2_000_000_000_000n,
  cache_read: 200_000_000_000n,
  output: 10_000_000_000_000n,
};

export const chargeFor = (tokenClass: keyof Use, count: bigint): bigint =>
  (count * PER_MILLION[tokenClass]) / 1_000_000n;

export function linesFor(use: Use): Lines {
  const line = (tokenClass: keyof Use): Line => ({
    quantity: BigInt(use[tokenClass]) * QUANTITY_ONE,
    amountPico: chargeFor(tokenClass, BigInt(use[tokenClass])),
  });
  return { input: line('input'), cache_read: line('cache_read'), output: line('output') };
}

export interface SeriesShape {
  days?: number;
  /** Overrides of the day's bill. */
  bill?: (lines: Lines, at: number, use: Use) => Lines;
  /** Replaces the observed usage of the day. */
  seen?: (use: Use, at: number) => Use;
  input?: (input: DayInput, at: number) => DayInput;
}

export function seriesOf(shape: SeriesShape): DayInput[] {
  return Array.from({ length: shape.days ?? 20 }, (_, at): DayInput => {
    const day = shiftDay(DAY, at);
    const use = useOf(at);
    const lines = shape.bill?.(linesFor(use), at, use) ?? linesFor(use);
    const seen = shape.seen?.(use, at) ?? use;
    const input = aDay({
      day,
      nowMicros: microsOfDay(day) + 90n * 86_400_000_000n,
      billed: billedOf(lines),
      observed: [observedOf(day, seen)],
      covered: [aCoveredAccount({ fetchedAtMicros: microsOfDay(day) + 80n * 86_400_000_000n })],
    });
    return shape.input?.(input, at) ?? input;
  });
}

export function billedOf(lines: Lines): BilledCell[] {
  return (Object.entries(lines) as [keyof Use, Line][]).map(([tokenClass, line]) =>
    aBilledCell({ tokenClass, isBatch: false, ...line }),
  );
}

export function observedOf(day: string, use: Use, over: Partial<ObservedCell> = {}): ObservedCell {
  const tokens = Object.fromEntries(
    (Object.entries(use) as [TokenClass, number][]).map(([name, count]) => [name, BigInt(Math.round(count))]),
  );
  const cost = (Object.entries(use) as [keyof Use, number][]).reduce(
    (total, [name, count]) => total + chargeFor(name, BigInt(Math.round(count))),
    0n,
  );
  return anObservedCell({
    hourMicros: microsOfDay(day),
    calls: 1000,
    serviceTier: 'default',
    computedCostPico: cost,
    ...over,
    tokens,
  });
}

export const reconciled = (shape: SeriesShape): Reconciled =>
  reconcileDays('openai', seriesOf(shape), { agreed: BOOK, list: BOOK }, DEFAULT_WEIGHTS, []);

export const findingsOf = (shape: SeriesShape): Finding[] => reconciled(shape).findings;

export const isBetween = (at: number, first: number, last: number): boolean => at >= first && at <= last;

/** The lines with these classes' amounts multiplied; all classes where none is named. */
export function scale(lines: Lines, numerator: bigint, denominator: bigint, only?: (keyof Lines)[]): Lines {
  const times = (tokenClass: keyof Lines): Line => {
    const line = lines[tokenClass];
    if (only && !only.includes(tokenClass)) return line;
    return { ...line, amountPico: (line.amountPico * numerator) / denominator };
  };
  return { input: times('input'), cache_read: times('cache_read'), output: times('output') };
}

/** The part of a use that was seen, each class with a separate scatter if one is given. */
export function part(use: Use, share: number, scatter: (place: number) => number = () => 0): Use {
  const of = (count: number, place: number) => Math.round(count * share * (1 + scatter(place)));
  return { input: of(use.input, 1), cache_read: of(use.cache_read, 2), output: of(use.output, 3) };
}

/** A bill of amounts by class: quantities are taken out of it. */
export const asClasses = (input: DayInput): DayInput => ({
  ...input,
  billed: input.billed.map((cell) => ({ ...cell, quantity: null })),
});

/** A bill of one amount a day. */
export function asTotal(input: DayInput): DayInput {
  const [first] = input.billed;
  if (!first) return input;
  const amountPico = input.billed.reduce((total, cell) => total + cell.amountPico, 0n);
  return { ...input, billed: [{ ...first, tokenClass: 'other', quantity: null, amountPico }] };
}

/** Days that are long closed, with the shape that the function returns for each. */
export function daysOf(
  count: number,
  contentOf: (at: number, day: string) => Partial<DayInput>,
  firstDay = DAY,
): DayInput[] {
  return Array.from({ length: count }, (_, at) => {
    const day = shiftDay(firstDay, at);
    const late = microsOfDay(day) + 90n * 86_400_000_000n;
    return aDay({
      day,
      nowMicros: late,
      covered: [aCoveredAccount({ fetchedAtMicros: late - 86_400_000_000n })],
      observedSince: new Map([[ACCOUNT, microsOfDay(firstDay) - 86_400_000_000n]]),
      ...contentOf(at, day),
    });
  });
}

export const findingsOfDays = (days: readonly DayInput[], provider: Provider = 'openai'): Finding[] =>
  reconcileDays(provider, days, { agreed: BOOK, list: BOOK }, DEFAULT_WEIGHTS, []).findings;

/** The only finding there is. */
export function theFinding(findings: readonly Finding[]): Finding {
  const [only, more] = findings;
  if (!only || more)
    throw new Error(`expected one finding, got ${findings.map((one) => one.kind).join(', ') || 'none'}`);
  return only;
}
