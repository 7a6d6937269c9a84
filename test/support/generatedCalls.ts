/** The models, rates and calls behind the generated bills. It shares no code with the product. */
import type { TokenClass } from '../../lab/bills/results.js';

export type { TokenClass };

export const DAY_SECONDS = 86_400;
export const HOUR_SECONDS = 3_600;

export type GeneratedProvider = 'openai' | 'anthropic';

/** Pico-dollars per token: all rates here are whole. */
export type Rates = Partial<Record<TokenClass, bigint>>;

export interface ModelPlan {
  provider: GeneratedProvider;
  /** As the bill names it, and as half of the clients do. */
  billed: string;
  asked: string;
  rates: Rates;
  batchShare: number;
  priority?: Rates;
  long?: { above: number; rates: Rates };
  input: [number, number];
  output: [number, number];
}

/** List prices of 2026-11, dollars per million tokens → pico-dollars per token (× 1e6). */
const usdPerMtok = (rates: Record<string, number>): Rates =>
  Object.fromEntries(Object.entries(rates).map(([name, usd]) => [name, BigInt(Math.round(usd * 1_000_000))]));

export const MODELS: readonly ModelPlan[] = [
  {
    provider: 'openai',
    billed: 'gpt-6-sol',
    asked: 'gpt-6-sol',
    rates: usdPerMtok({ input: 2, cache_read: 0.2, cache_write_5m: 2.5, output: 10 }),
    priority: usdPerMtok({ input: 4, cache_read: 0.4, cache_write_5m: 5, output: 20 }),
    long: { above: 272_000, rates: usdPerMtok({ input: 4, cache_read: 0.4, cache_write_5m: 5, output: 15 }) },
    batchShare: 0,
    input: [40_000, 200_000],
    output: [500, 9_000],
  },
  {
    provider: 'openai',
    billed: 'gpt-5-mini-2025-08-07',
    asked: 'gpt-5-mini',
    rates: usdPerMtok({ input: 0.25, cache_read: 0.025, output: 2 }),
    batchShare: 0.3,
    input: [300_000, 700_000],
    output: [10_000, 40_000],
  },
  {
    provider: 'openai',
    billed: 'gpt-4o-2024-11-20',
    asked: 'gpt-4o',
    rates: usdPerMtok({ input: 2.5, cache_read: 1.25, output: 10 }),
    batchShare: 0,
    input: [20_000, 110_000],
    output: [500, 9_000],
  },
  {
    provider: 'anthropic',
    billed: 'claude-opus-5',
    asked: 'claude-opus-5',
    rates: usdPerMtok({ input: 5, cache_read: 0.5, cache_write_5m: 6.25, cache_write_1h: 10, output: 25 }),
    batchShare: 0,
    input: [10_000, 80_000],
    output: [1_000, 12_000],
  },
  {
    provider: 'anthropic',
    billed: 'claude-sonnet-5-5',
    asked: 'claude-sonnet-5-5',
    rates: usdPerMtok({ input: 2, cache_read: 0.1, cache_write_5m: 2.5, cache_write_1h: 4, output: 10 }),
    batchShare: 0.25,
    input: [20_000, 150_000],
    output: [1_000, 12_000],
  },
  {
    provider: 'anthropic',
    billed: 'claude-haiku-4-5-20251001',
    asked: 'claude-haiku-4-5',
    rates: usdPerMtok({ input: 1, cache_read: 0.1, cache_write_5m: 1.25, cache_write_1h: 2, output: 5 }),
    batchShare: 0,
    input: [20_000, 150_000],
    output: [1_000, 12_000],
  },
];

/** One call as it happened. */
export interface GeneratedCall {
  provider: GeneratedProvider;
  billedModel: string;
  askedModel: string;
  project: string | null;
  startSeconds: number;
  endSeconds: number;
  isBatch: boolean;
  tier: 'standard' | 'priority';
  isLong: boolean;
  tokens: Record<TokenClass, number>;
  /** Its cost at list prices. */
  pico: bigint;
  /** False for a call of the window in which the SDK was missing. */
  seen: boolean;
}
export const dayText = (day: number) => new Date(day * DAY_SECONDS * 1_000).toISOString().slice(0, 10);
export const dayOfCall = (call: GeneratedCall) => Math.floor(call.endSeconds / DAY_SECONDS);
