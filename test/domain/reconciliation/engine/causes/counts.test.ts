import { describe, expect, it } from 'vitest';
import { batchDiscountQuantity } from '../../../../../domain/reconciliation/engine/causes/batchAndTiers.js';
import {
  cacheWriteQuantity,
  doubleMetered,
} from '../../../../../domain/reconciliation/engine/causes/cache.js';
import { clientCounts } from '../../../../../domain/reconciliation/engine/causes/client.js';
import {
  countInflation,
  cutStreams,
  failedRequests,
} from '../../../../../domain/reconciliation/engine/causes/counts.js';
import {
  longContextEpisode,
  longContextQuantity,
} from '../../../../../domain/reconciliation/engine/causes/longContext.js';
import {
  lateUsage,
  periodDoubleCount,
  timingShift,
} from '../../../../../domain/reconciliation/engine/causes/neighbourDays.js';
import { modalityQuantity } from '../../../../../domain/reconciliation/engine/causes/otherRates.js';
import {
  againstReport,
  duplicateAmounts,
  duplicatePart,
  duplicateQuantity,
  reportOfPart,
  unobservedUsage,
} from '../../../../../domain/reconciliation/engine/causes/repeats.js';

import { type Counts, calls, dayOf, expectExplained, lines, seriesOf, usage } from './support.js';

const PLAIN = { input: 3_000_000, output: 500_000 };
const CACHED = { input: 2_000_000, cache_read: 9_000_000, cache_write_5m: 800_000, output: 300_000 };
const SONNET = { provider: 'anthropic', model: 'claude-sonnet-5' } as const;

const plus = (...all: Counts[]): Counts => {
  const sums: Record<string, number> = {};
  for (const counts of all)
    for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count;
  return sums;
};
const times = (counts: Counts, factor: number): Counts =>
  Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, Math.round(count * factor)]));

describe('use on another meter', () => {
  const batch = { input: 700_000, output: 90_000 };

  it('batch calls counted as standard calls; the other way round they may not have been flagged', () => {
    const observed = [calls(PLAIN), calls(batch, { isBatch: true })];
    expectExplained(batchDiscountQuantity, dayOf({ billed: lines(plus(PLAIN, batch)), observed }), [
      'in_standard_meter',
    ]);
    const all = dayOf({ billed: lines(plus(PLAIN, batch), { isBatch: true }), observed });
    expectExplained(batchDiscountQuantity, all, []);
    expectExplained(clientCounts, all, ['batch_not_flagged']);
  });

  it('ordinary requests counted as long ones; the other way round events may count too much input', () => {
    const long = { input: 900_000, output: 20_000 };
    const observed = [calls(PLAIN), calls(long, { contextBand: 272_000 })];
    const over = lines(plus(PLAIN, long), { longContext: true });
    expectExplained(longContextQuantity, dayOf({ billed: over, observed }), [
      'in_long_meter',
      'part_in_long_meter',
    ]);
    const some = { input: 500_000, output: 30_000 };
    const part = [
      ...lines(plus(long, some), { longContext: true }),
      ...lines({ input: 2_500_000, output: 470_000 }, { longContext: false }),
    ];
    expectExplained(longContextQuantity, dayOf({ billed: part, observed }), ['part_in_long_meter']);
    const under = dayOf({ billed: lines(plus(PLAIN, long), { longContext: false }), observed });
    expectExplained(longContextEpisode, under, ['in_ordinary_meter']);
    expectExplained(clientCounts, under, ['length_miscounted']);
    const context = { ...under.context, firstDay: '2026-09-01', lastDay: '2026-10-31' };
    const fits = (firstDay: string, lastDay: string) =>
      longContextEpisode.fits?.({ firstDay, lastDay }, context);
    expect(fits('2026-09-10', '2026-09-16')).toBe(true);
    expect(fits('2026-09-10', '2026-09-12')).toBe(false);
    expect(fits('2026-09-10', '2026-10-31')).toBe(false);
  });

  it('cache writes of one lifetime counted as the other; short as long only where clients report lifetimes', () => {
    const short = { input: 100_000, cache_write_5m: 600_000, output: 50_000 };
    const long = { cache_write_1h: 200_000 };
    const observed = [calls(plus(short, long), {}, SONNET)];
    const asLong = { input: 100_000, cache_write_1h: 800_000, output: 50_000 };
    expectExplained(cacheWriteQuantity, dayOf({ billed: lines(asLong, {}, {}, SONNET), observed }, SONNET), [
      'in_1h_meter',
    ]);
    const untold = dayOf(
      {
        billed: lines({ ...asLong, cache_write_1h: 600_000 }, {}, {}, SONNET),
        observed: [calls(short, {}, SONNET)],
      },
      SONNET,
    );
    expectExplained(cacheWriteQuantity, untold, []);
  });
});

describe('audio and text', () => {
  const model = { model: 'gpt-audio', provider: 'openai' } as const;
  const used = { input: 500_000, input_audio: 700_000, output: 90_000, output_audio: 40_000 };
  const of = (counts: Counts) =>
    dayOf({ billed: lines(counts, {}, {}, model), observed: [calls(used, {}, model)] }, model);

  it('counted as text are on its meter, and text on that of audio', () => {
    const asText = { input: 1_200_000, input_audio: 0, output: 130_000, output_audio: 0 };
    expectExplained(modalityQuantity, of(asText), ['in_text_meter']);
    const asAudio = { input: 0, input_audio: 1_200_000, output: 0, output_audio: 130_000 };
    expectExplained(modalityQuantity, of(asAudio), ['in_audio_meter']);
  });

  it('of which one direction alone is on the other meter are no such mistake, nor is a right bill', () => {
    expectExplained(modalityQuantity, of({ ...used, input: 600_000, input_audio: 650_000 }), []);
    expectExplained(modalityQuantity, of(used), []);
  });
});

describe('cached tokens', () => {
  it('counted as fresh input on top', () => {
    const billed = lines({ ...CACHED, input: 2_000_000 + 9_000_000 + 800_000 });
    expectExplained(doubleMetered, dayOf({ billed, observed: [calls(CACHED)] }), ['reads_and_writes']);
    const read = { input: 2_000_000, cache_read: 9_000_000, output: 300_000 };
    const reads = lines({ ...read, input: 2_000_000 + 9_000_000 });
    expectExplained(doubleMetered, dayOf({ billed: reads, observed: [calls(read)] }), ['reads']);
    const part = lines({ ...CACHED, input: 2_000_000 + 9_000_000 });
    expectExplained(doubleMetered, dayOf({ billed: part, observed: [calls(CACHED)] }), []);
  });

  it('not counted at all is the undercharge', () => {
    const billed = lines({ input: CACHED.input, output: CACHED.output });
    expectExplained(doubleMetered, dayOf({ billed, observed: [calls(CACHED)] }), ['cached_not_metered']);
  });
});

describe('more than was used', () => {
  it('failed attempts, whole or their input alone', () => {
    const failed = { input: 250_000, output: 1_000 };
    const observed = [calls(PLAIN), calls(failed, { status: 'error' })];
    expectExplained(failedRequests, dayOf({ billed: lines(plus(PLAIN, failed)), observed }), ['all']);
    const input = lines(plus(PLAIN, { input: 250_000 }));
    expectExplained(failedRequests, dayOf({ billed: input, observed }), ['input_only']);
    expectExplained(failedRequests, dayOf({ billed: lines(PLAIN), observed }), []);
  });

  it('twice the use is no duplicate without side evidence', () => {
    const billed = lines(times(PLAIN, 2));
    expectExplained(duplicateQuantity, dayOf({ billed, observed: [calls(PLAIN)] }), []);
  });

  it('a charge beyond the provider’s own usage report is one, whole or in part, and below it an undercharge', () => {
    const day = (factor: number) =>
      dayOf({ billed: lines(times(PLAIN, factor)), usage: usage(PLAIN), observed: [calls(PLAIN)] });
    expectExplained(duplicateQuantity, day(2), ['beyond_usage_report']);
    expectExplained(duplicateQuantity, day(3), ['beyond_usage_report']);
    expectExplained(duplicateQuantity, day(1.3), []);
    expectExplained(duplicatePart, day(1.3), ['partly_beyond_usage_report']);
    expectExplained(reportOfPart, day(1.3), ['report_of_a_part']);
    expectExplained(duplicatePart, day(2), []);
    expectExplained(duplicateQuantity, day(0.5), ['below_usage_report']);
  });

  it('a line with the very count of its calls has no part in what is beyond the report', () => {
    const long = { input: 800_000, output: 4_000 };
    const { day } = dayOf({
      billed: [...lines(times(PLAIN, 1.5)), ...lines(long, { longContext: true })],
      usage: usage(plus(PLAIN, long), { longContext: null }),
      observed: [calls(PLAIN), calls(long, { contextBand: 272_000 })],
    });
    const right = againstReport(day)?.right;
    const rightOf = (isLong: boolean) =>
      day.meters
        .filter(({ meter }) => meter.longContext === isLong)
        .map(({ tokenClass, index }) => [tokenClass, Number(right?.get(index)) / 1e12]);
    expect(rightOf(true)).toEqual(Object.entries(long));
    expect(rightOf(false)).toEqual(Object.entries(PLAIN));
  });

  it('amounts of twice what the usage report counts', () => {
    const billed = lines(PLAIN).map((cell) => ({
      ...cell,
      quantity: null,
      amountPico: cell.amountPico * 2n,
    }));
    expectExplained(duplicateAmounts, dayOf({ billed, usage: usage(PLAIN), observed: [calls(PLAIN)] }), [
      'amounts_twice',
    ]);
  });

  it('answers that were cut off, billed as if whole', () => {
    const whole = { input: 3_000_000, output: 500_000 };
    const cut = { input: 300_000, output: 10_000 };
    const observed = [calls(whole, { calls: 10 }), calls(cut, { calls: 1, status: 'cancelled' })];
    const billed = lines({ input: 3_300_000, output: 550_000 });
    expectExplained(cutStreams, dayOf({ billed, observed }), ['whole_answers', 'more_than_seen']);
    expectExplained(cutStreams, dayOf({ billed: lines(PLAIN), observed: [calls(PLAIN)] }), []);
    const amounts = billed.map((one) => ({ ...one, quantity: null }));
    const { day, context } = dayOf({ billed: amounts, observed });
    expect(cutStreams.variants(day, context)).toEqual([]);
  });

  it('one class alone counts otherwise', () => {
    const billed = lines({ input: 3_000_000, output: 560_000 });
    expectExplained(countInflation, dayOf({ billed, observed: [calls(PLAIN)] }), ['class:output']);
  });

  it('less input than was seen beside cached tokens may be some clients’ way to count, and is no class of its own', () => {
    const seen = { input: 3_000_000, cache_read: 2_000_000, output: 500_000 };
    const day = dayOf({ billed: lines({ ...seen, input: 2_300_000 }), observed: [calls(seen)] });
    expectExplained(countInflation, day, []);
  });

  it('one class off while the others are not of one share either is no class of its own', () => {
    const seen = { input: 3_000_000, cache_read: 2_000_000, output: 500_000 };
    const billed = lines({ input: 3_000_000, cache_read: 4_000_000, output: 900_000 });
    expectExplained(countInflation, dayOf({ billed, observed: [calls(seen)] }), []);
  });

  it('more of everything in another mix is unobserved use', () => {
    const billed = lines({ input: 4_100_000, output: 530_000 });
    expectExplained(unobservedUsage, dayOf({ billed, observed: [calls(PLAIN)] }), ['unseen_calls']);
    const less = lines({ input: 4_100_000, output: 400_000 });
    expectExplained(unobservedUsage, dayOf({ billed: less, observed: [calls(PLAIN)] }), []);
  });
});

describe('days side by side', () => {
  const late = { input: 800_000, output: 40_000 };
  const on = (day: string) => ({ day });

  it('use that was billed a day later is no mistake on either day', () => {
    const { days, context } = seriesOf([
      { day: '2026-10-05', billed: lines(PLAIN), observed: [calls(plus(PLAIN, late))] },
      {
        day: '2026-10-06',
        billed: lines(plus(PLAIN, late), {}, {}, on('2026-10-06')),
        observed: [calls(PLAIN, {}, on('2026-10-06'))],
      },
    ]);
    const [first, second] = days;
    if (!first || !second) throw new Error('two days');
    expectExplained(timingShift, { day: first, context }, ['to_next']);
    expectExplained(timingShift, { day: second, context }, ['from_before']);
  });

  it('the last day of a month again on the first of the next is counted twice', () => {
    const last = { input: 900_000, output: 70_000 };
    const { days, context } = seriesOf([
      {
        day: '2026-10-31',
        billed: lines(last, {}, {}, on('2026-10-31')),
        observed: [calls(last, {}, on('2026-10-31'))],
      },
      {
        day: '2026-11-01',
        billed: lines(plus(PLAIN, last), {}, {}, on('2026-11-01')),
        observed: [calls(PLAIN, {}, on('2026-11-01'))],
      },
    ]);
    const [, second] = days;
    if (!second) throw new Error('two days');
    expectExplained(periodDoubleCount, { day: second, context }, ['previous_day_again']);
  });

  it('less than was seen, on a day that may still be restated, is late', () => {
    const closed = dayOf({ billed: lines(times(PLAIN, 0.7)), observed: [calls(PLAIN)] });
    expectExplained(lateUsage, closed, []);
    const open = { ...closed.day, evidence: { ...closed.day.evidence, provisional: true } };
    expectExplained(lateUsage, { day: open, context: closed.context }, ['still_rising']);
  });
});
