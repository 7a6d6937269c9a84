/**
 * The expected cost of a call, from an independent implementation that shares no code with the product: a separate
 * parser of data/prices.json and separate exact decimals. Rules: data/README.md ("A rate period", "Finding a price",
 * "Choosing a tier") and, for a cache rate that no source has, the input rate.
 */
import { readFileSync } from 'node:fs';

/** Token counts by price class; all disjoint. */
export interface PricedTokens {
  input: number;
  cacheRead: number;
  cacheWrite5m: number;
  cacheWrite1h: number;
  output: number;
}

/** The inputs of a call's price. */
export interface PricedCall {
  provider: string;
  model: string;
  /** Milliseconds since 1970-01-01Z. */
  atMillis: number;
  tokens: PricedTokens;
  isBatch?: boolean;
  /** Absent: the ordinary tier. */
  serviceTier?: string;
}

export interface CalculatedCost {
  /** Dollars with up to twelve decimals, no trailing zeros; "0" for a model without a price. */
  usd: string;
  isPriced: boolean;
  /** Classes with tokens and no rate in any source; they cost the input rate. */
  assumedClasses: string[];
}

/** An exact decimal: `digits` × 10^-`places`. */
interface Decimal {
  digits: bigint;
  places: number;
}

type Rates = Record<string, unknown>;

interface Entry {
  provider: string;
  model: string;
  canonical_family: string;
  aliases: string[];
  rates: Rates[];
}

const RESULT_PLACES = 12;
const CLASS_RATES: readonly [keyof PricedTokens, string][] = [
  ['input', 'input'],
  ['cacheRead', 'cache_read'],
  ['cacheWrite5m', 'cache_write_5m'],
  ['cacheWrite1h', 'cache_write_1h'],
  ['output', 'output'],
];
const STRING_OR_NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** A calculator over the price file at `path`. */
export class CostCalculator {
  private readonly entries: Entry[];

  constructor(path: string | URL) {
    // Every number becomes a string before JSON is read, so that no rate ever passes through a binary fraction.
    const quoted = readFileSync(path, 'utf8').replace(STRING_OR_NUMBER, (text) =>
      text.startsWith('"') ? text : `"${text}"`,
    );
    this.entries = (JSON.parse(quoted) as { models: Entry[] }).models;
  }

  /** The cost of a call; exact, rounded half to even once, at the twelfth decimal. */
  cost(call: PricedCall): CalculatedCost {
    const entry = this.findEntry(call.provider, call.model);
    const period = entry?.rates.find((rates) => isInForce(rates, call.atMillis));
    if (period === undefined) return { usd: '0', isPriced: false, assumedClasses: [] };
    const rates = ratesFor(period, call);
    const assumedClasses: string[] = [];
    let sum: Decimal = { digits: 0n, places: 0 };
    for (const [tokenClass, name] of CLASS_RATES) {
      const tokens = call.tokens[tokenClass];
      if (tokens === 0) continue;
      const listed = rates[name] ?? period[name];
      if (typeof listed !== 'string') assumedClasses.push(name);
      const rate = decimal(typeof listed === 'string' ? listed : String(rates.input ?? period.input));
      sum = add(sum, { digits: rate.digits * BigInt(tokens), places: rate.places });
    }
    // Rates are per million tokens; a batch call costs half.
    const whole = { digits: sum.digits * (call.isBatch ? 5n : 10n), places: sum.places + 7 };
    return { usd: format(whole), isPriced: true, assumedClasses };
  }

  private findEntry(provider: string, model: string): Entry | undefined {
    const own = this.entries.filter((entry) => entry.provider === provider);
    const base = model.startsWith('ft:') ? model.split(':').slice(0, 2).join(':') : model;
    for (const id of [model, base]) {
      const exact = own.find((entry) => entry.model === id || entry.aliases.includes(id));
      if (exact) return exact;
    }
    const family = own.filter((entry) => entry.canonical_family === familyOf(base));
    const prices = new Set(family.map((entry) => JSON.stringify(entry.rates)));
    return prices.size === 1 ? family[0] : undefined;
  }
}

/** The exact sum of amounts of `cost`. */
export function sumUsd(amounts: readonly string[]): string {
  return format(amounts.map(decimal).reduce(add, { digits: 0n, places: 0 }));
}

function familyOf(model: string): string {
  return model.replace(/-(?:\d{4}-\d{2}-\d{2}|\d{8})$/, '');
}

function isInForce(rates: Rates, atMillis: number): boolean {
  const from = rates.effective_from;
  const to = rates.effective_to;
  const isBegun = typeof from !== 'string' || Date.parse(`${from}T00:00:00Z`) <= atMillis;
  return isBegun && (typeof to !== 'string' || atMillis < Date.parse(`${to}T00:00:00Z`));
}

/** The period's own rates, or those of the tier that the call's service tier and whole input ask for. */
function ratesFor(period: Rates, call: PricedCall): Rates {
  const { input, cacheRead, cacheWrite5m, cacheWrite1h } = call.tokens;
  const whole = input + cacheRead + cacheWrite5m + cacheWrite1h;
  const tiers = (period.tiers as Rates[]).filter((tier) => tier.service_tier === call.serviceTier);
  const boundary = (tier: Rates): number => Number(tier.above_input_tokens ?? -1);
  const exceeded = tiers.filter((tier) => whole > boundary(tier));
  exceeded.sort((a, b) => boundary(b) - boundary(a));
  return exceeded[0] ?? period;
}

function decimal(text: string): Decimal {
  const match = /^(-?\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text);
  if (!match) throw new Error(`not a decimal: ${text}`);
  const fraction = match[2] ?? '';
  const places = fraction.length - Number(match[3] ?? 0);
  const digits = BigInt(`${match[1]}${fraction}`);
  return places < 0 ? { digits: digits * 10n ** BigInt(-places), places: 0 } : { digits, places };
}

function add(a: Decimal, b: Decimal): Decimal {
  const places = Math.max(a.places, b.places);
  const scaled = ({ digits, places: own }: Decimal): bigint => digits * 10n ** BigInt(places - own);
  return { digits: scaled(a) + scaled(b), places };
}

/** A non-negative decimal as text, rounded half to even at the twelfth place. */
function format({ digits, places }: Decimal): string {
  let rounded = places <= RESULT_PLACES ? digits * 10n ** BigInt(RESULT_PLACES - places) : 0n;
  if (places > RESULT_PLACES) {
    const unit = 10n ** BigInt(places - RESULT_PLACES);
    rounded = digits / unit;
    const twice = (digits % unit) * 2n;
    if (twice > unit || (twice === unit && rounded % 2n === 1n)) rounded += 1n;
  }
  const text = rounded.toString().padStart(RESULT_PLACES + 1, '0');
  const fraction = text.slice(-RESULT_PLACES).replace(/0+$/, '');
  return `${text.slice(0, -RESULT_PLACES)}${fraction === '' ? '' : `.${fraction}`}`;
}
