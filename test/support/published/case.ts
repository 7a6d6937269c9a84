/**
 * A mistake that users of a provider published, as calls and a bill: the published numbers and rates, with separate
 * arithmetic. It shares nothing with the product, so that the two can be compared.
 */

export const CLASSES = ['input', 'cache_read', 'cache_write_5m', 'cache_write_1h', 'output'] as const;
export type Class = (typeof CLASSES)[number];

/** Dollars per million tokens, as price lists print them. */
export type Rates = Partial<Record<Class, string>>;

/** The prices of a day. */
export interface DayPrices {
  ordinary: Rates;
  /** For requests above the boundary; absent where the model has none. */
  long?: Rates;
}

/** Equal calls. */
export interface Calls {
  count: number;
  each: Partial<Record<Class, number>>;
  isBatch?: boolean;
  isLong?: boolean;
}

export interface Day {
  day: string;
  /** The usage. */
  calls: readonly Calls[];
  prices: DayPrices;
}

/** Tokens of one class under one set of circumstances; the rate in pico-dollars a token. */
export interface Line {
  tokenClass: Class;
  isBatch: boolean;
  isLong: boolean;
  quantity: bigint;
  rate: bigint;
}

/** The change of a bill's right lines that makes the mistake. */
export interface Fault {
  kind: string;
  /** The first word of the way in which it was made, where the product is to name one. */
  way?: string;
  direction: 'overcharge' | 'undercharge';
  blame: 'provider' | 'own';
  days: readonly string[];
  bill(lines: readonly Line[], day: Day): Line[];
}

export type Format =
  | 'openai_pages'
  | 'anthropic_pages'
  | 'plain_csv'
  | 'aws_cur2'
  | 'aws_ce_pages'
  | 'azure_cost_details'
  | 'azure_query_pages';

/** An entry of a price list under another name, or with other days or rates than the shipped one. */
export interface PriceChange {
  provider: string;
  /** The shipped entry that it is derived from. */
  from: string;
  model: string;
  shiftDays: number;
}

/** Rates that the user entered, because the list of the time has others. */
export interface Override {
  model: string;
  rates: Rates;
  fromDay: string;
}

export interface PublishedCase {
  name: string;
  /** The publication, and its numbers. */
  source: string;
  provider: 'openai' | 'anthropic' | 'azure_openai' | 'aws_bedrock';
  format: Format;
  model: string;
  /** Another model that the format can name, where it cannot name any. */
  otherModel?: string;
  days: readonly Day[];
  fault: Fault;
  /** The same mistake to the provider's disadvantage; a sentence where none exists. */
  mirror: Fault | string;
  /** The client's report of its calls, where it differs from their usage. */
  told?(calls: Calls): Calls['each'];
  prices?: PriceChange;
  override?: Override;
  /** The file rounds amounts to the cent. */
  toTheCent?: boolean;
}

const TOKENS_PER_RATE = 1_000_000n;

/** `6.25` dollars per million tokens → 6_250_000 pico-dollars a token. */
export function perToken(usdPerMtok: string): bigint {
  const [whole = '0', fraction = ''] = usdPerMtok.split('.');
  return BigInt(whole) * TOKENS_PER_RATE + BigInt(fraction.padEnd(6, '0'));
}

/** The lines of a bill without a mistake. */
export function rightLines(day: Day): Line[] {
  const lines = new Map<string, Line>();
  for (const { count, each, isBatch = false, isLong = false } of day.calls) {
    for (const tokenClass of CLASSES) {
      const tokens = each[tokenClass] ?? 0;
      if (tokens === 0) continue;
      const key = `${tokenClass} ${isBatch} ${isLong}`;
      const line = lines.get(key) ?? {
        tokenClass,
        isBatch,
        isLong,
        quantity: 0n,
        rate: rateOf(day.prices, tokenClass, { isBatch, isLong }),
      };
      line.quantity += BigInt(tokens) * BigInt(count);
      lines.set(key, line);
    }
  }
  return [...lines.values()];
}

/** A batch costs half of everything. */
export function rateOf(
  prices: DayPrices,
  tokenClass: Class,
  under: { isBatch: boolean; isLong: boolean },
): bigint {
  const rates = under.isLong ? prices.long : prices.ordinary;
  const text = rates?.[tokenClass];
  if (text === undefined) throw new RangeError(`no rate for ${tokenClass}`);
  return under.isBatch ? perToken(text) / 2n : perToken(text);
}

export function billedLines(one: PublishedCase, day: Day): Line[] {
  const right = rightLines(day);
  return one.fault.days.includes(day.day) ? one.fault.bill(right, day) : right;
}

export const amountOf = (lines: readonly Line[]): bigint =>
  lines.reduce((sum, line) => sum + line.quantity * line.rate, 0n);

/** Billed minus right, by day; days without a difference are absent. */
export function excessByDay(one: PublishedCase): Map<string, bigint> {
  return new Map(
    one.days
      .map((day): [string, bigint] => [day.day, amountOf(billedLines(one, day)) - amountOf(rightLines(day))])
      .filter(([, excess]) => excess !== 0n),
  );
}

const DAY_MS = 86_400_000;

export function shiftDay(day: string, by: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + by * DAY_MS).toISOString().slice(0, 10);
}

/** `count` days from `first` on. */
export function daysFrom(first: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => shiftDay(first, index));
}
