/**
 * List prices in US dollars per million tokens, typed from the providers' pricing pages (November 2026) and, where a
 * cloud dates its prices, from its announcements: fresh input, cached read, write for five minutes, write for an
 * hour, output. test/lab/thirdGenerator.slow.test.ts compares them with data/prices.json.
 */
import { numberOfDay } from './calendar.js';

export const FRESH = 0;
export const READ = 1;
export const KEEP_SHORT = 2;
export const KEEP_LONG = 3;
export const OUT = 4;

/** The order of every list of counts and rates. */
export const METERS = ['input', 'cache_read', 'cache_write_5m', 'cache_write_1h', 'output'] as const;

export type Listed = readonly [number, number, number, number, number];
export type Tier = 'standard' | 'flex' | 'priority';

/** A price; 0: the provider has no such meter. */
export interface Step {
  /** First day, `YYYY-MM-DD`; '': always. */
  from: string;
  standard: Listed;
  batch?: Listed;
  flex?: Listed;
  priority?: Listed;
  long?: Listed;
}

export interface Tariff {
  provider: string;
  /** The id that calls name, and below the id on the bill. */
  told: string;
  billed: string;
  /** Words of the cloud's meters. */
  meterName: string;
  /** Requests with a larger whole input have the prices `long`. */
  longAbove: number;
  largest: number;
  /** Per mille of the ordinary price in the dearer place; 1,000: there is no such place. */
  elsewhere: number;
  /** Oldest first. */
  steps: readonly Step[];
  /** Two public sources of prices agree on it. */
  isAgreed: boolean;
  /** The list has only the last step: an earlier one is known from a document of the company alone. */
  isDocumented: boolean;
}

const NO_LONG = Number.POSITIVE_INFINITY;

function tariff(provider: string, told: string, steps: readonly Step[], more: Partial<Tariff> = {}): Tariff {
  return {
    provider,
    told,
    billed: told,
    meterName: '',
    longAbove: NO_LONG,
    largest: 180_000,
    elsewhere: 1_000,
    steps,
    isAgreed: true,
    isDocumented: false,
    ...more,
  };
}

export const TARIFFS: readonly Tariff[] = [
  tariff(
    'openai',
    'gpt-5.4',
    [
      {
        from: '',
        standard: [2.5, 0.25, 0, 0, 15],
        batch: [1.25, 0.13, 0, 0, 7.5],
        flex: [1.25, 0.13, 0, 0, 7.5],
        priority: [5, 0.5, 0, 0, 30],
        long: [5, 0.5, 0, 0, 22.5],
      },
    ],
    { billed: 'gpt-5.4-2026-03-05', longAbove: 272_000, largest: 600_000 },
  ),
  tariff(
    'openai',
    'gpt-5.2',
    [
      {
        from: '',
        standard: [1.75, 0.175, 0, 0, 14],
        batch: [0.875, 0.0875, 0, 0, 7],
        flex: [0.875, 0.0875, 0, 0, 7],
        priority: [3.5, 0.35, 0, 0, 28],
      },
    ],
    { billed: 'gpt-5.2-2025-12-11' },
  ),
  tariff(
    'openai',
    'gpt-5.4-mini',
    [
      {
        from: '',
        standard: [0.75, 0.075, 0, 0, 4.5],
        batch: [0.375, 0.0375, 0, 0, 2.25],
        flex: [0.375, 0.0375, 0, 0, 2.25],
        priority: [1.5, 0.15, 0, 0, 9],
      },
    ],
    { billed: 'gpt-5.4-mini-2026-03-17' },
  ),
  tariff(
    'openai',
    'o3',
    [
      {
        from: '',
        standard: [2, 0.5, 0, 0, 8],
        batch: [1, 0.5, 0, 0, 4],
        flex: [1, 0.25, 0, 0, 4],
        priority: [3.5, 0.875, 0, 0, 14],
      },
    ],
    { billed: 'o3-2025-04-16' },
  ),
  tariff(
    'openai',
    'gpt-5.6-terra',
    [
      { from: '', standard: [2.5, 0.25, 3.125, 0, 15], long: [5, 0.5, 6.25, 0, 22.5] },
      {
        from: '2026-07-30',
        standard: [2, 0.2, 2.5, 0, 12],
        batch: [1, 0.1, 1.25, 0, 6],
        flex: [1, 0.1, 1.25, 0, 6],
        priority: [4, 0.4, 5, 0, 24],
        long: [4, 0.4, 5, 0, 18],
      },
    ],
    { longAbove: 272_000, largest: 500_000 },
  ),
  tariff(
    'anthropic',
    'claude-opus-5',
    [{ from: '', standard: [5, 0.5, 6.25, 10, 25], batch: [2.5, 0.25, 3.125, 5, 12.5] }],
    { elsewhere: 1_100 },
  ),
  tariff(
    'anthropic',
    'claude-sonnet-5',
    [{ from: '', standard: [2, 0.2, 2.5, 4, 10], batch: [1, 0.1, 1.25, 2, 5] }],
    { elsewhere: 1_100 },
  ),
  tariff(
    'anthropic',
    'claude-sonnet-4-5',
    [
      {
        from: '',
        standard: [3, 0.3, 3.75, 6, 15],
        batch: [1.5, 0.15, 1.875, 3, 7.5],
        long: [6, 0.6, 7.5, 12, 22.5],
      },
    ],
    { billed: 'claude-sonnet-4-5-20250929', longAbove: 200_000, largest: 700_000 },
  ),
  tariff(
    'anthropic',
    'claude-haiku-4-5',
    [{ from: '', standard: [1, 0.1, 1.25, 2, 5], batch: [0.5, 0.05, 0.625, 1, 2.5] }],
    { billed: 'claude-haiku-4-5-20251001' },
  ),
  tariff(
    'aws_bedrock',
    'amazon.nova-pro-v1:0',
    [
      {
        from: '',
        standard: [0.8, 0.2, 0, 0, 3.2],
        flex: [0.4, 0.1, 0, 0, 1.6],
        priority: [1.4, 0.35, 0, 0, 5.6],
      },
    ],
    { meterName: 'NovaPro' },
  ),
  // The global profile has the ordinary price, the profile of a region a tenth more.
  tariff('aws_bedrock', 'anthropic.claude-opus-5', [{ from: '', standard: [5, 0.5, 6.25, 10, 25] }], {
    meterName: 'ClaudeOpus5',
    elsewhere: 1_100,
  }),
  tariff('aws_bedrock', 'anthropic.claude-sonnet-4-6', [{ from: '', standard: [3, 0.3, 3.75, 6, 15] }], {
    meterName: 'Claude4.6Sonnet',
    elsewhere: 1_100,
  }),
  tariff(
    'azure_openai',
    'gpt-5.1',
    [
      {
        from: '',
        standard: [1.25, 0.125, 0, 0, 10],
        batch: [0.625, 0.0625, 0, 0, 5],
        priority: [2.5, 0.25, 0, 0, 20],
      },
    ],
    { meterName: '5.1', elsewhere: 1_100 },
  ),
  tariff(
    'azure_openai',
    'gpt-4.1',
    [{ from: '', standard: [2, 0.5, 0, 0, 8], priority: [3.5, 0.875, 0, 0, 14] }],
    { meterName: 'gpt 4.1', elsewhere: 1_100 },
  ),
  // A promotion from September on; the list has only its price.
  tariff(
    'azure_openai',
    'gpt-5.6-sol',
    [
      { from: '', standard: [5, 0.5, 6.25, 0, 30] },
      { from: '2026-09-01', standard: [4, 0.4, 5, 0, 20] },
    ],
    { meterName: '5.6 sol', elsewhere: 1_100, isAgreed: false, isDocumented: true },
  ),
];

/** Dollars of 1e-15 per token, by meter. */
export type Prices = readonly bigint[];

const FEMTO_PER_TOKEN = 1e9;
const known = new Map<Listed, Prices>();

function pricesOf(listed: Listed): Prices {
  let prices = known.get(listed);
  if (!prices) {
    prices = listed.map((dollars) => BigInt(Math.round(dollars * FEMTO_PER_TOKEN)));
    known.set(listed, prices);
  }
  return prices;
}

const products = new Map<Prices, Map<number, Prices>>();

/** Each price × `perMille` ÷ 1,000; equal arguments give the same object. */
export function times(prices: Prices, perMille: number): Prices {
  if (perMille === 1_000) return prices;
  const made = products.get(prices) ?? new Map<number, Prices>();
  products.set(prices, made);
  let product = made.get(perMille);
  if (!product) {
    product = prices.map((price) => (price * BigInt(perMille)) / 1_000n);
    made.set(perMille, product);
  }
  return product;
}

/** The position of the step that holds on a day. */
export function stepOn({ steps }: Tariff, day: number): number {
  let at = 0;
  while (at + 1 < steps.length && numberOfDay((steps[at + 1] as Step).from) <= day) at += 1;
  return at;
}

/** The circumstances that determine a price. */
export interface Use {
  isBatch: boolean;
  isLong: boolean;
  tier: Tier;
  isElsewhere: boolean;
}

/** The list price of a use at a step; undefined: there is none. */
export function listPrices(tariff: Tariff, step: number, use: Use): Prices | undefined {
  const at = tariff.steps[step];
  const listed = use.isBatch ? (use.isLong ? undefined : at?.batch) : use.isLong ? at?.long : at?.[use.tier];
  return listed && times(pricesOf(listed), use.isElsewhere ? tariff.elsewhere : 1_000);
}
