/** Reasons to drop an explanation once its run is known: cheaper unseen use, and counts that it misses. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type {
  Hypothesis,
  MeterDay,
  Variant,
} from '../../../../../domain/reconciliation/engine/causes/cause.js';
import { isCheaperUse, missesCounts } from '../../../../../domain/reconciliation/engine/series/doubts.js';
import type { RunOfDays } from '../../../../../domain/reconciliation/engine/series/judge.js';
import type { MeterReading } from '../../../../../domain/reconciliation/engine/series/reading.js';

interface Meter {
  billed: number;
  observed: number;
  /** Pico-dollars: charged, and at the agreed rates. */
  amount?: number;
  expected?: number;
  isBatch?: boolean | null;
  /** Units in the explanation. */
  predicted?: number;
  isTouched?: boolean;
}

interface Day {
  meters: Meter[];
  impactPico?: bigint;
  coverage?: number;
  provenOf?: Variant['provenOf'];
}

const DOLLAR = 1e12;

/** A run as far as these two rules read it. */
function runOf(days: readonly Day[], state: Pick<Hypothesis, 'nature' | 'blame'>): RunOfDays {
  const judgedOf = ({ meters, coverage = 1, provenOf }: Day) => {
    const readings = meters.map((one, index) => {
      const of = {
        index,
        expectedPico: BigInt(one.expected ?? DOLLAR),
        meter: { isBatch: one.isBatch ?? null },
      } as unknown as MeterDay;
      return {
        of,
        amount: one.amount ?? DOLLAR,
        billed: one.billed,
        observed: one.observed,
        value: one.expected ?? DOLLAR,
      } as unknown as MeterReading;
    });
    const variant = {
      touches: ({ index }: MeterDay) => meters[index]?.isTouched !== false,
      ...(provenOf ? { provenOf } : {}),
    };
    const quantities = meters.map((one) => one.predicted ?? Number.NaN);
    return {
      work: { reading: { meters: readings } },
      shown: { variant, fit: { coverage }, prediction: { quantities, amounts: [] } },
    };
  };
  return {
    state: { hypothesis: state },
    days: days.map((one) => ({ judged: judgedOf(one), impacts: [], impactPico: one.impactPico ?? -1n })),
  } as unknown as RunOfDays;
}

const RATE = { nature: 'rate', blame: 'provider' } as const;
const COUNT = { nature: 'quantity', blame: 'provider' } as const;

describe('lower rates on a line that does not separate batch', () => {
  /** A share of the line was not seen, and a part of that was of half the price. */
  const line = (unseen: number, cheap: number): Meter => ({
    billed: 1_000_000,
    observed: Math.round(1_000_000 * (1 - unseen)),
    expected: DOLLAR,
    amount: DOLLAR * (1 - unseen * cheap * 0.5),
  });
  const share = fc.double({ min: 0.02, max: 0.9, noNaN: true });

  it('are unseen calls of half the price wherever these can be all that is missing', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(share, share), { minLength: 1, maxLength: 5 }), (days) => {
        const run = runOf(
          days.map(([unseen, cheap]) => ({ meters: [line(unseen, cheap)] })),
          RATE,
        );
        expect(isCheaperUse(run)).toBe(true);
      }),
    );
  });

  it('are none where one day is short of more than half of the unseen calls', () => {
    fc.assert(
      fc.property(share, fc.double({ min: 1.05, max: 1.9, noNaN: true }), (unseen, times) => {
        const days = [{ meters: [line(unseen, 0.5)] }, { meters: [line(unseen, times)] }];
        expect(isCheaperUse(runOf(days, RATE))).toBe(false);
      }),
    );
  });

  it('are none where everything was seen, nothing is short, or the line separates batch', () => {
    expect(isCheaperUse(runOf([{ meters: [line(0, 1)] }], RATE))).toBe(false);
    expect(isCheaperUse(runOf([{ meters: [{ ...line(0.4, 0.5), amount: DOLLAR }] }], RATE))).toBe(false);
    for (const isBatch of [true, false])
      expect(isCheaperUse(runOf([{ meters: [{ ...line(0.4, 0.5), isBatch }] }], RATE))).toBe(false);
  });

  it('are a matter of too little alone, and of a provider’s rates alone', () => {
    const short = { meters: [line(0.4, 0.5)] };
    expect(isCheaperUse(runOf([{ ...short, impactPico: 1n }], RATE))).toBe(false);
    expect(isCheaperUse(runOf([short, { ...short, impactPico: 1n }], RATE))).toBe(false);
    expect(isCheaperUse(runOf([short], COUNT))).toBe(false);
    expect(isCheaperUse(runOf([short], { nature: 'rate', blame: 'own' }))).toBe(false);
  });

  it('are judged by the lines that the explanation speaks about', () => {
    const other: Meter = { billed: 1_000_000, observed: 1_000_000, isBatch: false, isTouched: false };
    expect(isCheaperUse(runOf([{ meters: [line(0.4, 0.5), other] }], RATE))).toBe(true);
  });
});

describe('a mistake of counting over three days or more', () => {
  /** Seen a million, explained as a million more, and billed with a part of that too many or too few. */
  const day = (off: number, more: Partial<Day> = {}): Day => ({
    meters: [{ observed: 1_000_000, predicted: 2_000_000, billed: 2_000_000 + Math.round(1_000_000 * off) }],
    ...more,
  });
  const days = (off: number, count = 3) => Array.from({ length: count }, () => day(off));

  it('is refuted where it misses the bill by more than a quarter of what it is about, to either side', () => {
    fc.assert(
      fc.property(
        fc.double({ min: -0.9, max: 0.9, noNaN: true }),
        fc.integer({ min: 3, max: 9 }),
        (off, count) => {
          fc.pre(Math.abs(Math.abs(off) - 0.25) > 0.01);
          expect(missesCounts(runOf(days(off, count), COUNT))).toBe(Math.abs(off) > 0.25);
        },
      ),
    );
  });

  it('is judged over all days together: one that is far off does not refute it', () => {
    expect(missesCounts(runOf([day(0.6), day(0), day(0)], COUNT))).toBe(false);
    expect(missesCounts(runOf([day(0.6), day(0.3), day(0)], COUNT))).toBe(true);
  });

  it('is not refuted on one day or two, which may be off by scatter', () => {
    for (const count of [1, 2]) expect(missesCounts(runOf(days(0.9, count), COUNT))).toBe(false);
  });

  it('is held against the share of the bill that was seen', () => {
    const half = { meters: [{ observed: 500_000, predicted: 1_000_000, billed: 2_000_000 }], coverage: 0.5 };
    expect(missesCounts(runOf([half, half, half], COUNT))).toBe(false);
    const whole = { ...half, coverage: 1 };
    expect(missesCounts(runOf([whole, whole, whole], COUNT))).toBe(true);
  });

  it('is not refuted by quantities that it leaves free, nor where what it claims rests on none of them', () => {
    const free = { meters: [{ observed: 1_000_000, billed: 9_000_000 }] };
    expect(missesCounts(runOf([free, free, free], COUNT))).toBe(false);
    const proven = day(0.9, { provenOf: () => 1n });
    expect(missesCounts(runOf([proven, proven, proven], COUNT))).toBe(false);
  });

  it('is a matter of the provider’s counts alone', () => {
    expect(missesCounts(runOf(days(0.9), RATE))).toBe(false);
    expect(missesCounts(runOf(days(0.9), { nature: 'quantity', blame: 'own' }))).toBe(false);
  });
});
