import { describe, expect, it } from 'vitest';
import {
  batchDiscountRate,
  regionUplift,
  serviceTierRate,
} from '../../../../../domain/reconciliation/engine/causes/batchAndTiers.js';
import { cacheReadRate, cacheWriteRate } from '../../../../../domain/reconciliation/engine/causes/cache.js';
import { longContextRate } from '../../../../../domain/reconciliation/engine/causes/longContext.js';
import { modalityRate } from '../../../../../domain/reconciliation/engine/causes/otherRates.js';

import { calls, dayOf, expectExplained, explaining, lines, usage } from './support.js';

const PLAIN = { input: 3_000_000, output: 500_000 };
const CACHED = { ...PLAIN, cache_read: 8_000_000 };
const ANTHROPIC = { provider: 'anthropic', model: 'claude-sonnet-5' } as const;
const WRITTEN = { input: 2_000_000, cache_write_5m: 1_500_000, output: 400_000 };

describe('batch', () => {
  const observed = [calls(PLAIN, { isBatch: true })];

  it('batch calls at the standard rate are distinguished from standard calls', () => {
    const billed = lines(PLAIN, { isBatch: true }, { circumstances: { isBatch: false } });
    expectExplained(batchDiscountRate, dayOf({ billed, observed }), ['standard_rate']);
  });

  it('standard calls at the batch rate, and a discount taken twice, are undercharges of it', () => {
    const under = lines(PLAIN, {}, { circumstances: { isBatch: true } });
    expectExplained(batchDiscountRate, dayOf({ billed: under, observed: [calls(PLAIN)] }), ['batch_rate']);
    const twice = lines(PLAIN, { isBatch: true }).map((cell) => ({
      ...cell,
      amountPico: cell.amountPico / 2n,
    }));
    expectExplained(batchDiscountRate, dayOf({ billed: twice, observed }), ['discount_twice']);
  });

  it('where the bill does not show batch, the usage report does', () => {
    const billed = lines(PLAIN, { isBatch: null });
    const told = dayOf({ billed, observed, usage: usage(PLAIN, { isBatch: true }) });
    expectExplained(batchDiscountRate, told, ['standard_rate']);
  });

  it('a right bill is explained by no variant', () => {
    const right = dayOf({ billed: lines(PLAIN, { isBatch: true }), observed });
    expectExplained(batchDiscountRate, right, []);
  });
});

describe('the cache', () => {
  const right = () => lines(CACHED);
  const withRead = (as: Parameters<typeof lines>[2]) => [
    ...lines(PLAIN),
    ...lines({ cache_read: CACHED.cache_read }, {}, as),
  ];

  it('reads at the input rate', () => {
    const billed = withRead({ tokenClass: 'input' });
    expect(explaining(cacheReadRate, dayOf({ billed, observed: [calls(CACHED)] }))).toEqual(['input_rate']);
  });

  it('reads at the share of the input rate that other models have', () => {
    const billed = right().map((cell) =>
      cell.tokenClass === 'cache_read' ? { ...cell, amountPico: cell.amountPico * 5n } : cell,
    );
    expectExplained(cacheReadRate, dayOf({ billed, observed: [calls(CACHED)] }), ['input_share:1/2']);
  });

  it('reads with the discount taken twice are an undercharge', () => {
    const billed = right().map((cell) =>
      cell.tokenClass === 'cache_read' ? { ...cell, amountPico: cell.amountPico / 10n } : cell,
    );
    expectExplained(cacheReadRate, dayOf({ billed, observed: [calls(CACHED)] }), ['discount_twice']);
  });

  it('five-minute writes at the rate of one hour, of plain input, and long ones at that of five minutes', () => {
    const write = (as: Parameters<typeof lines>[2]) => [
      ...lines({ input: WRITTEN.input, output: WRITTEN.output }, {}, {}, ANTHROPIC),
      ...lines({ cache_write_5m: WRITTEN.cache_write_5m }, {}, as, ANTHROPIC),
    ];
    const observed = [calls(WRITTEN, {}, ANTHROPIC)];
    const day = (as: Parameters<typeof lines>[2]) => dayOf({ billed: write(as), observed }, ANTHROPIC);
    expectExplained(cacheWriteRate, day({ tokenClass: 'cache_write_1h' }), ['at_1h_rate']);
    expectExplained(cacheWriteRate, day({ tokenClass: 'input' }), ['short_as_input']);
    const long = { cache_write_1h: 900_000 };
    const under = dayOf(
      {
        billed: lines(long, {}, { tokenClass: 'cache_write_5m' }, ANTHROPIC),
        observed: [calls(long, {}, ANTHROPIC)],
      },
      ANTHROPIC,
    );
    expectExplained(cacheWriteRate, under, ['at_5m_rate']);
  });
});

describe('length, tier, place and kind', () => {
  it('ordinary requests at the rates of long ones, and the other way round', () => {
    const over = lines(CACHED, {}, { circumstances: { longContext: true } });
    expectExplained(longContextRate, dayOf({ billed: over, observed: [calls(CACHED)] }), [
      'long_rate_on_ordinary',
    ]);
    const under = lines(CACHED, { longContext: true }, { circumstances: { longContext: false } });
    const observed = [calls(CACHED, { contextBand: 272_000 })];
    expectExplained(longContextRate, dayOf({ billed: under, observed }), ['ordinary_rate_on_long']);
  });

  it('the rates of long requests on the standard part of a line that holds batch as well', () => {
    const batch = { input: 1_000_000, output: 60_000 };
    const long = lines(PLAIN, { isBatch: null }, { circumstances: { longContext: true } });
    const rest = lines(batch, { isBatch: null }, { circumstances: { isBatch: true } });
    const billed = long.map((cell, at) => ({
      ...cell,
      quantity: (cell.quantity ?? 0n) + (rest[at]?.quantity ?? 0n),
      amountPico: cell.amountPico + (rest[at]?.amountPico ?? 0n),
    }));
    const observed = [calls(PLAIN), calls(batch, { isBatch: true })];
    const reported = [...usage(PLAIN), ...usage(batch, { isBatch: true })];
    expectExplained(longContextRate, dayOf({ billed, observed, usage: reported }), ['long_rate_on_standard']);
  });

  it('each other tier of the model is a variant of its own, where an answer or the usage report contains the tier', () => {
    for (const [tier, expected] of [
      ['priority', 'tier:standard as priority'],
      ['flex', 'tier:standard as flex'],
    ] as const) {
      const billed = lines(PLAIN, {}, { circumstances: { serviceTier: tier } });
      const told = [calls(PLAIN, { serviceTier: 'default' })];
      expectExplained(serviceTierRate, dayOf({ billed, observed: told }), [expected]);
      const reported = dayOf({ billed, observed: [calls(PLAIN)], usage: usage(PLAIN) });
      expectExplained(serviceTierRate, reported, [expected]);
      expectExplained(serviceTierRate, dayOf({ billed, observed: [calls(PLAIN)] }), []);
    }
    const flex = lines(PLAIN, { serviceTier: 'flex' }, { circumstances: { serviceTier: 'standard' } });
    const observed = [calls(PLAIN, { serviceTier: 'flex' })];
    expectExplained(serviceTierRate, dayOf({ billed: flex, observed }), ['tier:flex as standard']);
  });

  it('the addition for a place on calls of no place, and its lack', () => {
    const observed = [calls(WRITTEN, {}, ANTHROPIC)];
    const over = lines(WRITTEN, {}, { circumstances: { region: 'us' } }, ANTHROPIC);
    expectExplained(regionUplift, dayOf({ billed: over, observed }, ANTHROPIC), ['uplift:us']);
    const under = lines(WRITTEN, { region: 'us' }, { circumstances: { region: null } }, ANTHROPIC);
    expectExplained(regionUplift, dayOf({ billed: under, observed }, ANTHROPIC), ['no_uplift']);
  });

  it('of another inference profile, and not of another model', () => {
    const bedrock = { provider: 'aws_bedrock', model: 'global.anthropic.claude-opus-5' } as const;
    const counts = { input: 3_000_000, output: 500_000 };
    const billed = lines(counts, {}, { model: 'us.anthropic.claude-opus-5' }, bedrock);
    const day = dayOf({ billed, observed: [calls(counts, {}, bedrock)] }, bedrock);
    expect(explaining(regionUplift, day)).toContain('profile:us');
  });

  it('audio at the rate of text', () => {
    const audio = { model: 'gpt-audio', provider: 'openai' } as const;
    const used = { input: 500_000, input_audio: 700_000, output: 90_000 };
    const billed = [
      ...lines({ input: 500_000, output: 90_000 }, {}, {}, audio),
      ...lines({ input_audio: 700_000 }, {}, { tokenClass: 'input' }, audio),
    ];
    expectExplained(modalityRate, dayOf({ billed, observed: [calls(used, {}, audio)] }, audio), [
      'audio_at_text_rate',
    ]);
  });
});
