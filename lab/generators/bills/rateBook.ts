/** The generators' own rates, computed from the facts of rateFacts.ts. */
import { dayNumber } from '../support/days.js';
import { ratePerToken } from '../support/money.js';
import { ANTHROPIC, OPENAI, OTHERS } from './rateFacts.js';

/** The order of every vector of tokens and rates. */
export const CLASSES = ['input', 'cache_read', 'cache_write_5m', 'cache_write_1h', 'output'] as const;
export type TokenClass = (typeof CLASSES)[number];
export const [INPUT, READ, WRITE_5M, WRITE_1H, OUTPUT] = [0, 1, 2, 3, 4] as const;

/** Dollars per million tokens in the order of CLASSES; null: the provider has no such meter. */
export type ListRates = readonly [number, number, number | null, number | null, number];

/** A price with its period. */
export interface BookPeriod {
  /** First day, inclusive; null: unlimited. */
  from: string | null;
  standard: ListRates;
  batch?: ListRates;
  flex?: ListRates;
  /** A more expensive service that the call requests: `priority` at OpenAI, `fast` at Anthropic. */
  priority?: ListRates;
  fast?: ListRates;
  /** Rates of all tokens of a request whose whole input exceeds `above`. */
  long?: { above: number; standard: ListRates; batch?: ListRates };
}

export interface BookModel {
  provider: string;
  /** The requested name. */
  model: string;
  /** The name on the bill. */
  billed: string;
  /** Oldest first. */
  periods: readonly BookPeriod[];
  /** Factor for inference in the US only, per mille. */
  usPerMille?: number;
  contextTokens: number;
}

export const RATE_BOOK: readonly BookModel[] = [...OPENAI, ...ANTHROPIC, ...OTHERS];

/** Femto-dollars per token in the order of CLASSES; zero: the provider has no such meter. */
export type Rates = readonly bigint[];

const converted = new Map<ListRates, Rates>();

/** A list price as femto-dollars per token. */
export function ratesOf(list: ListRates): Rates {
  const known = converted.get(list);
  if (known) return known;
  const rates = list.map((rate) => (rate === null ? 0n : ratePerToken(rate)));
  converted.set(list, rates);
  return rates;
}

const scalings = new WeakMap<Rates, Map<number, Rates>>();

/** Each rate × `perMille` ÷ 1,000. Equal rates give the same object, so that equal charges share it. */
export function scaled(rates: Rates, perMille: number): Rates {
  if (perMille === 1_000) return rates;
  const known = scalings.get(rates) ?? new Map<number, Rates>();
  scalings.set(rates, known);
  let result = known.get(perMille);
  if (!result) {
    result = rates.map((rate) => (rate * BigInt(perMille)) / 1_000n);
    known.set(perMille, result);
  }
  return result;
}

/** The period in force on a day (days since 1970). */
export function periodAt(model: BookModel, day: number): BookPeriod {
  const periods = model.periods.filter((period) => period.from === null || dayNumber(period.from) <= day);
  return (periods.at(-1) ?? model.periods[0]) as BookPeriod;
}

/** The requested options on which the price depends. */
export interface Asked {
  isBatch: boolean;
  isLong: boolean;
  tier: 'standard' | 'flex' | 'priority' | 'fast';
  geo: 'global' | 'us';
}

/** The documented rates of a request within a period of its model. */
export function listRates(model: BookModel, period: BookPeriod, asked: Asked): Rates {
  const list = chosen(period, asked);
  if (!list) throw new Error(`${model.model} has no rate for ${JSON.stringify(asked)}`);
  const rates = ratesOf(list);
  return asked.geo === 'us' && model.usPerMille !== undefined ? scaled(rates, model.usPerMille) : rates;
}

function chosen(period: BookPeriod, asked: Asked): ListRates | undefined {
  if (asked.isLong) return asked.isBatch ? period.long?.batch : period.long?.standard;
  if (asked.isBatch) return period.batch;
  return period[asked.tier];
}
