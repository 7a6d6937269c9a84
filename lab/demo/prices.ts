import type { TokenClass } from '../bills/results.js';

/**
 * The demo's own price table, a second copy of the providers' list prices, so that the answer key does not depend
 * on the product's prices. A test compares both for the days of the demo.
 */
export type DemoProvider = 'openai' | 'anthropic';

/** Pico-dollars per token; every rate here is a whole number of them. */
export type Rates = Partial<Record<TokenClass, bigint>>;

export interface ModelPrice {
  provider: DemoProvider;
  /** The model's name on bills. */
  model: string;
  /** The name in Trueup's buckets: the alias that clients request. */
  alias: string;
  standard: Rates;
  /** Rates of requests with more input than `above`. */
  long?: { above: number; rates: Rates };
}

/** US dollars per million tokens → pico-dollars per token. */
const perMtok = (usd: Partial<Record<TokenClass, number>>): Rates =>
  Object.fromEntries(
    Object.entries(usd).map(([name, dollars]) => [name, BigInt(Math.round(dollars * 1_000_000))]),
  );

export const MODEL_PRICES: readonly ModelPrice[] = [
  {
    provider: 'openai',
    model: 'gpt-6-sol',
    alias: 'gpt-6-sol',
    standard: perMtok({ input: 2, cache_read: 0.2, cache_write_5m: 2.5, output: 10 }),
    long: {
      above: 272_000,
      rates: perMtok({ input: 4, cache_read: 0.4, cache_write_5m: 5, output: 15 }),
    },
  },
  {
    provider: 'openai',
    model: 'gpt-5.6-terra',
    alias: 'gpt-5.6-terra',
    standard: perMtok({ input: 2, cache_read: 0.2, cache_write_5m: 2.5, output: 12 }),
  },
  {
    provider: 'openai',
    model: 'gpt-5-mini-2025-08-07',
    alias: 'gpt-5-mini',
    standard: perMtok({ input: 0.25, cache_read: 0.025, output: 2 }),
  },
  {
    provider: 'openai',
    model: 'gpt-4o-2024-11-20',
    alias: 'gpt-4o',
    standard: perMtok({ input: 2.5, cache_read: 1.25, output: 10 }),
  },
  {
    provider: 'anthropic',
    model: 'claude-opus-5',
    alias: 'claude-opus-5',
    standard: perMtok({ input: 5, cache_read: 0.5, cache_write_5m: 6.25, cache_write_1h: 10, output: 25 }),
  },
  {
    provider: 'anthropic',
    model: 'claude-sonnet-5-5',
    alias: 'claude-sonnet-5-5',
    standard: perMtok({ input: 2, cache_read: 0.1, cache_write_5m: 2.5, cache_write_1h: 4, output: 10 }),
  },
  {
    provider: 'anthropic',
    model: 'claude-haiku-4-5-20251001',
    alias: 'claude-haiku-4-5',
    standard: perMtok({ input: 1, cache_read: 0.1, cache_write_5m: 1.25, cache_write_1h: 2, output: 5 }),
  },
];

/** Prices of gpt-5.6-terra until 2026-07-30, which one of the planted faults uses again. */
export const TERRA_BEFORE: Rates = perMtok({
  input: 2.5,
  cache_read: 0.25,
  cache_write_5m: 3.125,
  output: 15,
});

/** Batch costs half of every class for these models. */
export const BATCH_DIVISOR = 2n;

export function priceOf(model: string): ModelPrice {
  const found = MODEL_PRICES.find((price) => price.model === model);
  if (!found) throw new RangeError(`the demo has no price for ${model}`);
  return found;
}
