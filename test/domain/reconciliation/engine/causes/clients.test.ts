import { describe, expect, it } from 'vitest';
import { doubleMetered } from '../../../../../domain/reconciliation/engine/causes/cache.js';
import { clientAmounts, clientCounts } from '../../../../../domain/reconciliation/engine/causes/client.js';

import { longContextQuantity } from '../../../../../domain/reconciliation/engine/causes/longContext.js';
import { type Counts, calls, dayOf, expectExplained, explaining, lastsAs, lines, usage } from './support.js';

const PLAIN = { input: 3_000_000, output: 500_000 };
const CACHED = { input: 2_000_000, cache_read: 9_000_000, cache_write_5m: 800_000, output: 300_000 };
const SONNET = { provider: 'anthropic', model: 'claude-sonnet-5' } as const;

const day = (billed: Counts, observed: Counts) =>
  dayOf({ billed: lines(billed), observed: [calls(observed)] });

describe('a counting mistake of clients is found for', () => {
  it('input that holds the cached tokens too', () => {
    const whole = { ...CACHED, input: 2_000_000 + 9_000_000 + 800_000 };
    expectExplained(clientCounts, day(CACHED, whole), ['input_includes_cached']);
    expectExplained(clientCounts, day(CACHED, { ...CACHED, input: 11_000_000 }), ['input_includes_reads']);
  });

  it('cached tokens that are reported as fresh input', () => {
    const told = { input: 11_800_000, output: 300_000 };
    expect(explaining(clientCounts, day(CACHED, told))).toContain('cache_not_told');
  });

  it('a class that is lacking as a whole', () => {
    const found = explaining(clientCounts, day({ ...PLAIN, cache_read: 4_000_000 }, PLAIN));
    expect(found).toEqual(['class_missing:cache_read']);
  });

  it('lifetimes of cache writes, of clients that never report them', () => {
    const world = dayOf(
      {
        billed: lines({ input: 100_000, cache_write_5m: 300_000, cache_write_1h: 500_000 }, {}, {}, SONNET),
        observed: [calls({ input: 100_000, cache_write_5m: 800_000 }, {}, SONNET)],
      },
      SONNET,
    );
    expect(explaining(clientCounts, world)).toContain('lifetimes_missing');
  });

  it('reasoning left out of the output, or added on top', () => {
    expectExplained(clientCounts, day({ ...PLAIN, output: 1_400_000 }, PLAIN), ['reasoning_missing']);
    expectExplained(clientCounts, day(PLAIN, { ...PLAIN, output: 1_400_000 }), ['reasoning_twice']);
    const all = { firstDay: '2026-08-01', lastDay: '2026-09-30' };
    const world = day({ ...PLAIN, output: 1_400_000 }, PLAIN);
    const fits = (firstDay: string, lastDay: string) =>
      lastsAs(clientCounts, 'reasoning_missing', world, { firstDay, lastDay }, all);
    expect(fits('2026-08-01', '2026-09-30')).toBe(true);
    expect(fits('2026-08-10', '2026-08-20')).toBe(false);
  });

  it('batch calls without a flag, where the bill shows them', () => {
    const billed = [
      ...lines({ input: 2_000_000, output: 300_000 }),
      ...lines({ input: 1_000_000, output: 200_000 }, { isBatch: true }),
    ];
    expectExplained(clientCounts, dayOf({ billed, observed: [calls(PLAIN)] }), ['batch_not_flagged']);
    const flagged = dayOf({
      billed,
      observed: [
        calls({ input: 2_000_000, output: 300_000 }),
        calls({ input: 1_000_000, output: 200_000 }, { isBatch: true }),
      ],
    });
    expectExplained(clientCounts, flagged, []);
  });

  it('every call sent twice', () => {
    expect(explaining(clientCounts, day(PLAIN, { input: 6_000_000, output: 1_000_000 }))).toContain(
      'sent_twice',
    );
  });

  it('input that includes them is no double metering; input that lacks them shows the same as one', () => {
    const whole = { ...CACHED, input: 11_800_000 };
    expectExplained(doubleMetered, day(CACHED, whole), []);
    expectExplained(clientCounts, day(whole, CACHED), ['cached_taken_off_twice']);
  });
});

describe('a mistake in amounts is found for', () => {
  const scaled = (numerator: bigint, denominator: bigint) =>
    dayOf({
      billed: lines(PLAIN).map((cell) => ({
        ...cell,
        amountPico: (cell.amountPico * numerator) / denominator,
      })),
      observed: [calls(PLAIN)],
    });

  it('cents taken for dollars, and dollars for cents', () => {
    expectExplained(clientAmounts, scaled(100n, 1n), ['cents_as_dollars']);
    expectExplained(clientAmounts, scaled(1n, 100n), ['dollars_as_cents']);
  });

  it('amounts of batch calls or of a tier without a report', () => {
    const billed = (circumstances: object) =>
      lines(PLAIN, { isBatch: null }, { circumstances }).map((cell) => cell);
    const batch = dayOf({ billed: billed({ isBatch: true }), observed: [calls(PLAIN)] });
    expect(explaining(clientAmounts, batch)).toContain('batch_not_flagged');
    const priority = dayOf({ billed: billed({ serviceTier: 'priority' }), observed: [calls(PLAIN)] });
    expectExplained(clientAmounts, priority, ['tier_not_told:priority']);
    const told = dayOf({
      billed: billed({ serviceTier: 'priority' }),
      observed: [calls(PLAIN, { serviceTier: 'default' })],
    });
    expectExplained(clientAmounts, told, []);
  });
});

describe('a tier that clients asked for and did not get', () => {
  const asked = (told: { ordinary: number; priority: number; long: number }) =>
    dayOf({
      billed: [
        ...lines({ input: 700_000 }),
        ...lines({ input: 500_000 }, { longContext: true }),
        ...lines({ input: 200_000 }, { serviceTier: 'priority' }),
      ],
      observed: [
        calls({ input: told.ordinary }),
        calls({ input: told.long }, { contextBand: 1 }),
        calls({ input: told.priority }, { serviceTier: 'priority' }),
      ],
    });

  it('is found for calls of one length', () => {
    const world = asked({ ordinary: 600_000, priority: 300_000, long: 500_000 });
    expectExplained(clientCounts, world, ['tier_as_requested']);
  });

  it('makes no request longer or shorter, so it is no rival of the boundary of long requests', () => {
    const world = asked({ ordinary: 990_000, priority: 210_000, long: 200_000 });
    expect(explaining(clientCounts, world)).not.toContain('tier_as_requested');
    const moved = asked({ ordinary: 1_000_000, priority: 200_000, long: 200_000 });
    expect(explaining(clientCounts, moved)).not.toContain('tier_as_requested');
    expect(explaining(longContextQuantity, moved)).toContain('part_in_long_meter');
  });

  it('shows no length where its price has none: who asked for it may have sent the long requests on the bill', () => {
    // Its priority tier has no rates for long requests, and lines that do not state batch hold every tier.
    const bill = { model: 'gpt-5.5' };
    const line = (longContext: boolean) => ({ isBatch: null, longContext });
    const served = (serviceTier: string) =>
      dayOf({
        billed: [
          ...lines({ input: 700_000 }, line(false), {}, bill),
          ...lines({ input: 500_000 }, line(true), {}, bill),
        ],
        // The usage report counts all of it at the standard tier, and has no lengths.
        usage: usage({ input: 1_200_000 }, { longContext: null }, bill),
        observed: [calls({ input: 700_000 }, {}, bill), calls({ input: 500_000 }, { serviceTier }, bill)],
      });
    const namesOf = ({ day, context }: ReturnType<typeof served>) =>
      longContextQuantity.variants(day, context).map(({ name }) => name);
    expect(namesOf(served('priority'))).not.toContain('part_in_long_meter');
    expect(namesOf(served('default'))).toContain('part_in_long_meter');
  });

  it('is none where calls and bill agree on the tiers', () => {
    const { day, context } = asked({ ordinary: 699_500, priority: 200_500, long: 500_000 });
    const names = clientCounts.variants(day, context).map(({ name }) => name);
    expect(names).not.toContain('tier_as_requested');
  });
});

describe('advice', () => {
  it('names the services whose clients cannot report the value, else all of them', () => {
    const sources = [
      { serviceName: 'search', calls: 100, callsWithoutCache: 0 },
      { serviceName: 'chat', calls: 50, callsWithoutCache: 50 },
    ];
    expect(clientCounts.advise?.('cache_not_told', sources)).toEqual([
      'Your events of service chat lack cache tokens: send cache_read and cache_creation of the provider’s usage with every call.',
    ]);
    expect(clientCounts.advise?.('batch_not_flagged', sources)).toEqual([
      'Your events of services chat and search do not flag batch calls: send is_batch and batch_id.',
    ]);
  });
});
