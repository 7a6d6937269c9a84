/**
 * A second, direct implementation of the rules of data/README.md, over plain fractions and the raw JSON of the list. It
 * shares no code with the product: equal results are right unless both misread the rules.
 */
import type { PeriodJson, RatesJson } from './support.js';

/** numerator / denominator, denominator positive. */
export interface Fraction {
  n: bigint;
  d: bigint;
}

export function fraction(decimal: number): Fraction {
  let text = decimal.toString();
  let exponent = 0;
  const e = text.indexOf('e');
  if (e >= 0) {
    exponent = Number(text.slice(e + 1));
    text = text.slice(0, e);
  }
  const [whole = '0', digits = ''] = text.split('.');
  const places = digits.length - exponent;
  const n = BigInt(whole + digits);
  return places >= 0 ? { n, d: 10n ** BigInt(places) } : { n: n * 10n ** BigInt(-places), d: 1n };
}

export function times(a: Fraction, b: Fraction): Fraction {
  return { n: a.n * b.n, d: a.d * b.d };
}

export function plus(a: Fraction, b: Fraction): Fraction {
  return { n: a.n * b.d + b.n * a.d, d: a.d * b.d };
}

export function over(a: Fraction, b: Fraction): Fraction {
  return { n: a.n * b.d, d: a.d * b.n };
}

export function equal(a: Fraction, b: Fraction): boolean {
  return a.n * b.d === b.n * a.d;
}

/** To a whole number, half to even. */
export function round(a: Fraction): bigint {
  const low = a.n / a.d;
  const twice = (a.n - low * a.d) * 2n;
  if (twice > a.d || (twice === a.d && low % 2n === 1n)) return low + 1n;
  return low;
}

export const CLASSES = [
  'input',
  'cache_read',
  'cache_write_5m',
  'cache_write_1h',
  'output',
  'input_audio',
  'output_audio',
] as const;
export type ClassName = (typeof CLASSES)[number];
export type Tokens = Record<ClassName, number>;

export interface PlainPrice {
  /** Per million tokens, in dollars. */
  rates: Record<ClassName, Fraction>;
  band: number;
  /** Assumptions for any call, and for calls that use a class. */
  always: string[];
  gaps: Partial<Record<ClassName, string>>;
}

/** All that is assumed, or all that matters to a call with these tokens. */
export function gapNames(price: PlainPrice, tokens?: Tokens): string[] {
  const used = CLASSES.filter((name) => tokens === undefined || tokens[name] > 0);
  const named = used.flatMap((name) => price.gaps[name] ?? []);
  return [...new Set([...price.always, ...named])].sort();
}

type Known = Partial<Record<ClassName, Fraction>>;

function known(rates: RatesJson): Known {
  const out: Known = {};
  for (const name of CLASSES) {
    const value = rates[name];
    if (typeof value === 'number') out[name] = fraction(value);
  }
  return out;
}

function tiersOf(period: PeriodJson, service: string | undefined): { above: number; rates: Known }[] {
  return period.tiers
    .filter((tier) => (tier.service_tier ?? undefined) === service)
    .map((tier) => ({ above: Number(tier.above_input_tokens ?? 0), rates: known(tier) }));
}

/** Standard rates for a whole input, before unknown classes are filled. */
function standard(period: PeriodJson, whole: number): { rates: Known; band: number } {
  const flat = known(period);
  const exceeded = tiersOf(period, undefined)
    .filter((tier) => tier.above > 0 && whole > tier.above)
    .sort((a, b) => b.above - a.above)[0];
  return exceeded
    ? { rates: { ...flat, ...exceeded.rates }, band: exceeded.above }
    : { rates: flat, band: 0 };
}

/** Derived rates are kept to 12 decimals, like every rate. */
function kept(rate: Fraction): Fraction {
  return { n: round({ n: rate.n * 10n ** 12n, d: rate.d }), d: 10n ** 12n };
}

/** `priorityIsFlat`: OpenAI's and Azure's priority, where it lists no rate for long requests. */
export function plainPrice(
  period: PeriodJson,
  tier: string,
  tokens: Tokens,
  priorityIsFlat: boolean,
): PlainPrice {
  const whole =
    tokens.input + tokens.input_audio + tokens.cache_read + tokens.cache_write_5m + tokens.cache_write_1h;
  const ordinary = standard(period, whole);
  if (tier === 'standard') return fill(ordinary.rates, ordinary.band);
  const offered = tiersOf(period, tier);
  if (offered.length === 0 && tier !== 'batch') return fill(ordinary.rates, ordinary.band, ['service_tier']);
  if (offered.length === 0) {
    const factor = fraction(period.batch_multiplier ?? 0.5);
    const rates: Known = {};
    for (const name of CLASSES) {
      const rate = ordinary.rates[name];
      if (rate) rates[name] = kept(times(rate, factor));
    }
    return fill(rates, ordinary.band, [], period.batch_multiplier === null ? 'batch' : undefined);
  }
  const base = offered.find((one) => one.above === 0);
  const flatHolds = tier === 'priority' && priorityIsFlat;
  const long = offered
    .filter((one) => one.above > 0 && whole > one.above)
    .sort((a, b) => b.above - a.above)[0];
  if (long && (flatHolds || long.above >= ordinary.band)) {
    return fill({ ...standard(period, long.above + 1).rates, ...long.rates }, long.above);
  }
  const flatRates: Known = { ...known(period), ...(base?.rates ?? {}) };
  if (ordinary.band === 0 || flatHolds) return fill(flatRates, 0);
  const raised: Known = {};
  for (const name of CLASSES) {
    const from = known(period)[name];
    const to = ordinary.rates[name];
    const own = flatRates[name];
    if (from && to && own) raised[name] = kept(over(times(own, to), from));
  }
  return fill(raised, ordinary.band, [], tier === 'batch' ? undefined : 'long_context');
}

/** `knownGap`: the assumption about every class that has a rate. */
function fill(rates: Known, band: number, always: string[] = [], knownGap?: string): PlainPrice {
  const full = {} as Record<ClassName, Fraction>;
  const gaps: PlainPrice['gaps'] = {};
  for (const name of CLASSES) {
    const stand = name === 'output' || name === 'output_audio' ? rates.output : rates.input;
    const rate = rates[name] ?? stand;
    if (!rate) throw new Error('no input or output rate');
    if (!rates[name]) gaps[name] = name;
    else if (knownGap !== undefined) gaps[name] = knownGap;
    full[name] = rate;
  }
  return { rates: full, band, always, gaps };
}

/** Dollars × 1e12, unrounded. */
export function plainCost(price: PlainPrice, tokens: Tokens, share: Fraction): Fraction {
  let sum: Fraction = { n: 0n, d: 1n };
  for (const name of CLASSES) {
    sum = plus(sum, times({ n: BigInt(tokens[name]), d: 1n }, price.rates[name]));
  }
  return times(times(sum, share), { n: 1_000_000n, d: 1n });
}
