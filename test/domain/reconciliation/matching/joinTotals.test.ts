/** Lines and usage report agree in the sum of a class and not in its division: tokens are moved, never made or lost. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TokenClass } from '../../../../domain/events/event.js';
import { DayRates } from '../../../../domain/reconciliation/audit/dayRates.js';
import type { BilledCell, UsageCell } from '../../../../domain/reconciliation/matching/cells.js';
import {
  chargeProduct,
  picoFromChargeProduct,
} from '../../../../domain/reconciliation/matching/classLines.js';
import { buildMeters, type Meter } from '../../../../domain/reconciliation/matching/meters.js';
import { aBilledCell, aUsageCell, BOOK, DAY_MICROS, tokens } from '../support.js';

const CLAUDE = 'claude-sonnet-5';
const OPENAI = 'gpt-6-sol';

interface Use {
  tokenClass?: TokenClass;
  serviceTier?: string;
  isBatch?: boolean | null;
  longContext?: boolean | null;
  region?: string | null;
}

const ratesOf = (provider: 'openai' | 'anthropic') => new DayRates(BOOK, provider, DAY_MICROS);

/** A line of Anthropic's cost report, which has amounts alone. */
function charged(count: number, use: Use = {}): BilledCell {
  const { tokenClass = 'input', isBatch = false, longContext = false, region = null } = use;
  const circumstances = {
    serviceTier: 'standard',
    isBatch: isBatch ?? false,
    longContext: longContext ?? false,
    contextBand: 0,
    region,
  };
  const rate = ratesOf('anthropic').rate(CLAUDE, tokenClass, circumstances)?.rate ?? 0n;
  return aBilledCell({
    model: CLAUDE,
    tokenClass,
    isBatch,
    longContext,
    region,
    quantity: null,
    amountPico: picoFromChargeProduct(chargeProduct(tokens(count), rate)),
    roundingPico: 50_000n,
  });
}

const counted = (count: number, use: Use = {}): UsageCell =>
  aUsageCell({ model: CLAUDE, serviceTier: 'standard', longContext: false, ...use, quantity: tokens(count) });

const metersOf = (billed: readonly BilledCell[], usage: readonly UsageCell[]) =>
  buildMeters(billed, usage, [], ratesOf('anthropic'), CLAUDE);

/** The circumstances that a line names, its tokens, and those of the report. */
const brief = ({ region, longContext, tokenClass, quantity, parts, crossed }: Meter) => ({
  line: [tokenClass, region, longContext ? 'long' : 'short'].join(' '),
  holds: quantity === null ? null : Number(quantity / tokens(1)),
  of: parts.map(
    ({ circumstances: at, quantity: count, tokenClass: used = tokenClass }) =>
      `${used} ${at.region} ${at.longContext ? 'long' : 'short'}: ${count / tokens(1)}`,
  ),
  crossed: crossed === true,
});

describe('amounts joined with a report that counts some of the use elsewhere', () => {
  it('give a place’s line the calls that the report counts at another place', () => {
    const billed = [charged(600_000), charged(500_000, { region: 'us' })];
    const usage = [counted(1_000_000), counted(100_000, { region: 'us' })];
    expect(metersOf(billed, usage).map(brief)).toEqual([
      { line: 'input  short', holds: 600_000, of: ['input null short: 600000'], crossed: false },
      {
        line: 'input us short',
        holds: 500_000,
        of: ['input us short: 100000', 'input null short: 400000'],
        crossed: true,
      },
    ]);
  });

  it('give it all of them where the report has none of the line’s own', () => {
    const meters = metersOf([charged(500_000, { region: 'us' })], [counted(500_000)]);
    expect(meters.map(brief)).toEqual([
      { line: 'input us short', holds: 500_000, of: ['input null short: 500000'], crossed: true },
    ]);
  });

  it('give the line of long requests ordinary ones, and that of an hour writes of five minutes', () => {
    const model = 'claude-sonnet-4-5';
    const rates = ratesOf('anthropic');
    const long = { serviceTier: 'standard', isBatch: false, longContext: true, contextBand: 0, region: null };
    const rate = rates.rate(model, 'input', long)?.rate ?? 0n;
    const line = {
      ...charged(0, { longContext: true }),
      model,
      amountPico: picoFromChargeProduct(chargeProduct(tokens(300_000), rate)),
    };
    const usage = [counted(290_000), counted(10_000, { longContext: true })].map((one) => ({
      ...one,
      model,
    }));
    expect(buildMeters([line], usage, [], rates, model).map(brief)).toEqual([
      {
        line: 'input  long',
        holds: 300_000,
        of: ['input null long: 10000', 'input null short: 290000'],
        crossed: true,
      },
    ]);
    const written = metersOf(
      [charged(70_000, { tokenClass: 'cache_write_1h' })],
      [counted(70_000, { tokenClass: 'cache_write_5m' })],
    );
    expect(written.map(brief)).toEqual([
      {
        line: 'cache_write_1h  short',
        holds: 70_000,
        of: ['cache_write_5m null short: 70000'],
        crossed: true,
      },
    ]);
  });

  it('cross nothing where the report is not divided by place or length: its lines are what they name', () => {
    const billed = [charged(600_000), charged(500_000, { region: 'us' })];
    const meters = metersOf(billed, [counted(1_100_000, { longContext: null })]);
    expect(meters.map(brief)).toEqual([
      { line: 'input  short', holds: 600_000, of: ['input null short: 600000'], crossed: false },
      { line: 'input us short', holds: 500_000, of: ['input us short: 500000'], crossed: false },
    ]);
  });

  it('stay as they are where the sums differ', () => {
    const billed = [charged(600_000), charged(500_000, { region: 'us' })];
    const [plain, us] = metersOf(billed, [counted(1_000_000), counted(100_100, { region: 'us' })]);
    expect(plain?.quantity).toBe(tokens(1_000_000));
    expect(us?.quantity).toBe(tokens(100_100));
  });
});

describe('counts of a bill joined with a report that counts some of them under another tier', () => {
  const lineOf = (count: number, over: Partial<BilledCell> = {}) =>
    aBilledCell({ model: OPENAI, isBatch: false, quantity: tokens(count), ...over });
  const cellOf = (count: number, over: Partial<UsageCell> = {}) =>
    aUsageCell({ model: OPENAI, quantity: tokens(count), ...over });
  const tiers = ({ serviceTier, parts }: Meter) =>
    `${serviceTier}: ${parts.map((part) => `${part.circumstances.serviceTier} ${part.quantity / tokens(1)}`).join(', ')}`;

  it('leave the tokens the tier of the report, on the line of the bill', () => {
    const billed = [
      lineOf(1_638_516, { serviceTier: 'priority' }),
      lineOf(828_972, { isBatch: null, longContext: true }),
    ];
    const usage = [cellOf(2_116_999), cellOf(350_489, { serviceTier: 'priority' })];
    const meters = buildMeters(billed, usage, [], ratesOf('openai'), OPENAI);
    expect(meters.map(tiers)).toEqual([
      'priority: priority 350489, standard 1288027',
      'standard: standard 828972',
    ]);
  });

  const priced = (count: number, dollarsPerMillion: number, over: Partial<BilledCell> = {}) =>
    lineOf(count, { isBatch: null, amountPico: BigInt(count * dollarsPerMillion) * 1_000_000n, ...over });
  const uses = ({ parts }: Meter) =>
    parts.map(
      ({ circumstances: at, quantity }) =>
        `${at.isBatch ? 'batch' : at.serviceTier}${at.longContext ? ' long' : ''} ${quantity / tokens(1)}`,
    );

  it('are divided into batch and standard where the lines’ amounts confirm it', () => {
    // Dollars a million: 2 for standard calls, 1 for batch, 4 for long requests.
    const line = { ...priced(1_600_000, 2), amountPico: 1_500_000n * 2_000_000n + 100_000n * 1_000_000n };
    const long = priced(300_000, 4, { longContext: true });
    const usage = [cellOf(1_800_000), cellOf(100_000, { isBatch: true })];
    const meters = buildMeters([line, long], usage, [], ratesOf('openai'), OPENAI);
    expect(meters.map(uses)).toEqual([['standard 1500000', 'batch 100000'], ['standard long 300000']]);
    expect(meters.map(({ split }) => split)).toEqual(['usage_report', 'usage_report']);
  });

  it('are divided so where one line alone is right, whatever the lines of long requests were charged', () => {
    const line = { ...priced(1_600_000, 2), amountPico: 1_500_000n * 2_000_000n + 100_000n * 1_000_000n };
    const usage = [cellOf(1_800_000), cellOf(100_000, { isBatch: true })];
    for (const dollars of [1, 2, 7]) {
      const long = priced(300_000, dollars, { longContext: true });
      const meters = buildMeters([line, long], usage, [], ratesOf('openai'), OPENAI);
      expect(meters.map(uses)).toEqual([['standard 1500000', 'batch 100000'], ['standard long 300000']]);
    }
  });

  it('are divided so where all lines were charged at one ratio to what they hold then', () => {
    for (const times of [2n, 10n]) {
      const line = {
        ...priced(1_600_000, 2),
        amountPico: times * (1_500_000n * 2_000_000n + 100_000n * 1_000_000n),
      };
      const long = priced(300_000, 4 * Number(times), { longContext: true });
      const usage = [cellOf(1_800_000), cellOf(100_000, { isBatch: true })];
      const meters = buildMeters([line, long], usage, [], ratesOf('openai'), OPENAI);
      expect(meters.map(uses)).toEqual([['standard 1500000', 'batch 100000'], ['standard long 300000']]);
    }
  });

  it('are not divided where no division gives the amount of a line, or one ratio of all', () => {
    const line = { ...priced(1_600_000, 2), amountPico: 1_500_000n * 2_000_000n + 100_000n * 1_000_001n };
    const long = priced(300_000, 7, { longContext: true });
    const usage = [cellOf(1_800_000), cellOf(100_000, { isBatch: true })];
    const meters = buildMeters([line, long], usage, [], ratesOf('openai'), OPENAI);
    expect(meters.map(({ split }) => split)).not.toContain('usage_report');
  });

  it('leave the rest of a line that lost calls to another tier', () => {
    const line = { ...priced(500_000, 2), amountPico: 400_000n * 2_000_000n + 100_000n * 1_000_000n };
    const usage = [cellOf(900_000), cellOf(100_000, { isBatch: true })];
    const billed = [line, lineOf(500_000, { serviceTier: 'priority' })];
    const meters = buildMeters(billed, usage, [], ratesOf('openai'), OPENAI);
    expect(meters.map(uses)).toEqual([['standard 400000', 'batch 100000'], ['standard 500000']]);
  });

  /** 300,000 and 200,000 fresh tokens of standard and batch calls, and 90,000 and 40,000 cached ones. */
  const CACHED_BESIDE = [
    cellOf(300_000),
    cellOf(200_000, { isBatch: true }),
    cellOf(90_000, { tokenClass: 'cache_read' }),
    cellOf(40_000, { tokenClass: 'cache_read', isBatch: true }),
  ];

  it('divide a line of input on which some cached tokens are once more, all of standard calls', () => {
    // 50,000 of the 90,000 cached ones of standard calls.
    const line = { ...priced(550_000, 2), amountPico: 350_000n * 2_000_000n + 200_000n * 1_000_000n };
    const [input] = buildMeters([line], CACHED_BESIDE, [], ratesOf('openai'), OPENAI);
    expect(input?.split).toBe('usage_report');
    expect(input?.parts.filter((one) => one.circumstances.isBatch).map((one) => one.quantity)).toEqual([
      tokens(200_000),
    ]);
  });

  it('divide a line of input on which cached tokens are once more', () => {
    const line = { ...priced(630_000, 2), amountPico: 390_000n * 2_000_000n + 240_000n * 1_000_000n };
    const [input] = buildMeters([line], CACHED_BESIDE, [], ratesOf('openai'), OPENAI);
    expect(input && uses(input)).toEqual(['standard 390000', 'batch 240000']);
  });

  it('lose and make no token, however many are moved', () => {
    const count = fc.integer({ min: 1_000, max: 50_000_000 });
    fc.assert(
      fc.property(
        count,
        count,
        fc.double({ min: 0.01, max: 1, noNaN: true }),
        (standard, priority, share) => {
          const moved = Math.max(1, Math.floor(standard * share));
          const billed = [
            ...(standard > moved ? [lineOf(standard - moved)] : []),
            lineOf(priority + moved, { serviceTier: 'priority' }),
          ];
          const usage = [cellOf(standard), cellOf(priority, { serviceTier: 'priority' })];
          const meters = buildMeters(billed, usage, [], ratesOf('openai'), OPENAI);
          const held = meters.reduce(
            (sum, { parts }) => sum + parts.reduce((all, part) => all + part.quantity, 0n),
            0n,
          );
          expect(held).toBe(tokens(standard + priority));
          for (const { parts, quantity } of meters)
            expect(parts.reduce((all, part) => all + part.quantity, 0n)).toBe(quantity);
        },
      ),
    );
  });
});
