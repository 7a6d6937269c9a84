import { expect } from 'vitest';
import { QUANTITY_ONE } from '../../../../../domain/billing/billedRow.js';
import type { TokenClass } from '../../../../../domain/events/event.js';
import { divideHalfEven } from '../../../../../domain/money.js';
import { microsOfDay } from '../../../../../domain/period.js';
import type { PriceBook } from '../../../../../domain/pricing/priceBook.js';
import type { Provider } from '../../../../../domain/providers.js';
import { type Circumstances, DayRates } from '../../../../../domain/reconciliation/audit/dayRates.js';
import {
  canLast,
  type Hypothesis,
  type Run,
  type SeriesContext,
  type SeriesDay,
  seriesContextOf,
  type Variant,
} from '../../../../../domain/reconciliation/engine/causes/cause.js';
import { seriesDaysOf } from '../../../../../domain/reconciliation/engine/series/seriesDays.js';

import type { BilledCell, DayInput, UsageCell } from '../../../../../domain/reconciliation/matching/cells.js';
import { matchDay } from '../../../../../domain/reconciliation/matching/matchDay.js';
import {
  aBilledCell,
  aCoveredAccount,
  aDay,
  anObservedCell,
  aUsageCell,
  BOOK,
  DAY,
  DAY_MICROS,
  HOUR,
  tokens,
} from '../../support.js';

export type Counts = Partial<Record<TokenClass, number>>;
type Use = Partial<Omit<Parameters<typeof anObservedCell>[0] & object, 'tokens'>>;

export interface Bill {
  provider?: Provider;
  model?: string;
  day?: string;
  book?: PriceBook;
}

/** Calls of one kind: tokens by class, and what else is known of them. */
export function calls(counts: Counts, use: Use = {}, bill: Bill = {}) {
  const day = bill.day ?? DAY;
  return anObservedCell({
    model: bill.model ?? 'gpt-6-sol',
    hourMicros: microsOfDay(day) + HOUR,
    ...use,
    tokens: Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, BigInt(count)])),
  });
}

/** Lines of a bill, at the rates that hold for `as` (by default for the line's own fields). */
export function lines(
  counts: Counts,
  line: Partial<BilledCell> = {},
  as: { circumstances?: Partial<Circumstances>; tokenClass?: TokenClass; day?: string; model?: string } = {},
  bill: Bill = {},
): BilledCell[] {
  const model = bill.model ?? 'gpt-6-sol';
  const rates = new DayRates(
    bill.book ?? BOOK,
    bill.provider ?? 'openai',
    microsOfDay(as.day ?? bill.day ?? DAY),
  );
  return Object.entries(counts).map(([name, count]) => {
    const cell = aBilledCell({
      isBatch: false,
      longContext: false,
      ...line,
      model,
      tokenClass: name as TokenClass,
      quantity: tokens(count),
    });
    const rate = rates.rate(as.model ?? model, as.tokenClass ?? (name as TokenClass), {
      serviceTier: rates.tier(cell.serviceTier),
      isBatch: cell.isBatch ?? false,
      longContext: cell.longContext ?? false,
      contextBand: 0,
      region: cell.region,
      ...as.circumstances,
    });
    if (!rate) throw new Error(`no rate for ${name} of ${model}`);
    return {
      ...cell,
      amountPico: divideHalfEven(tokens(count) * rate.rate, QUANTITY_ONE * 1_000_000n),
    };
  });
}

/** The provider's usage report of the day. */
export function usage(counts: Counts, over: Partial<UsageCell> = {}, bill: Bill = {}): UsageCell[] {
  return Object.entries(counts).map(([name, count]) =>
    aUsageCell({
      model: bill.model ?? 'gpt-6-sol',
      tokenClass: name as TokenClass,
      quantity: tokens(count),
      longContext: false,
      ...over,
    }),
  );
}

export interface World {
  days: SeriesDay[];
  context: SeriesContext;
}

/** The series that these days make, as hypotheses see it. */
export function seriesOf(inputs: readonly (Partial<DayInput> & { day?: string })[], bill: Bill = {}): World {
  const book = bill.book ?? BOOK;
  const provider = bill.provider ?? 'openai';
  const evidence = inputs.flatMap((input) => {
    const day = input.day ?? DAY;
    const late = microsOfDay(day) + 60n * 24n * HOUR;
    return matchDay(
      book,
      provider,
      aDay({
        nowMicros: late,
        covered: [aCoveredAccount({ fetchedAtMicros: late })],
        observedSince: new Map([['acct', DAY_MICROS - 400n * 24n * HOUR]]),
        ...input,
        day,
      }),
    ).evidence;
  });
  const context = seriesContextOf(evidence, book !== book.list);
  return { days: seriesDaysOf(provider, evidence, { agreed: book, list: book.list }, context), context };
}

/** One day alone. */
export function dayOf(input: Partial<DayInput>, bill: Bill = {}): { day: SeriesDay; context: SeriesContext } {
  const { days, context } = seriesOf([{ ...input, ...(bill.day ? { day: bill.day } : {}) }], bill);
  const [day] = days;
  if (!day) throw new Error('the day has no series');
  return { day, context };
}

/** Names of the variants that give the bill of a day exactly: every amount and every quantity. */
export function explaining(
  hypothesis: Hypothesis,
  { day, context }: { day: SeriesDay; context: SeriesContext },
): string[] {
  return hypothesis
    .variants(day, context)
    .filter((variant) => explains(variant, day) && day.meters.some((meter) => variant.touches(meter)))
    .map((variant) => variant.name);
}

/** Whether the variant of this name can be what a run of days shows. */
export function lastsAs(
  hypothesis: Hypothesis,
  name: string,
  { day, context }: { day: SeriesDay; context: SeriesContext },
  run: Run,
  all: Run = context,
): boolean {
  const variant = hypothesis.variants(day, context).find((one) => one.name === name);
  if (!variant) throw new Error(`there is no variant ${name}`);
  return canLast(hypothesis, variant, run, { ...context, ...all });
}

function explains(variant: Variant, day: SeriesDay): boolean {
  return day.meters.every((meter) => {
    const billed = meter.meter.quantity;
    const quantity = variant.quantityOf(meter);
    if (billed === null) {
      const amount = quantity === null ? null : variant.amountOf(meter, quantity);
      return amount !== null && isNear(amount, meter.meter.amountPico, meter.meter.roundingPico);
    }
    const amount = variant.amountOf(meter, billed);
    const isRightAmount = amount !== null && isNear(amount, meter.meter.amountPico, meter.meter.roundingPico);
    return isRightAmount && (quantity === null || isNear(quantity, billed, billed / 1_000n));
  });
}

function isNear(a: bigint, b: bigint, slack: bigint): boolean {
  return (a > b ? a - b : b - a) <= slack + 2n;
}

/** The bill of the day is explained by exactly these variants of the hypothesis. */
export function expectExplained(
  hypothesis: Hypothesis,
  world: { day: SeriesDay; context: SeriesContext },
  variants: readonly string[],
): void {
  expect(explaining(hypothesis, world)).toEqual(variants);
}
