/** Reads data/prices.json (data/README.md). A fault throws with the entry's place, since the installation is broken. */
import { picoFromNumber } from '../money.js';
import { isoFromMicros, parseInstant } from '../period.js';
import { isProvider } from '../providers.js';
import {
  AGREEMENTS,
  PRICE_MODES,
  type PriceFacts,
  type PriceModel,
  type PricePeriod,
  type PriceTier,
  RATE_CLASSES,
  type RateClass,
  type Rates,
} from './pricedModel.js';

/** The supported layout of the file. */
const SCHEMA_VERSION = 1;

/** The only source with dated prices; every period except the one in force comes from it. */
const DATED_SOURCE = 'genai_prices';

export interface PriceEntry {
  readonly model: PriceModel;
  /** Oldest first, without gaps. */
  readonly periods: readonly PricePeriod[];
}

export interface PriceFile {
  /** The day that the list describes, `YYYY-MM-DD`. */
  readonly asOf: string;
  readonly entries: readonly PriceEntry[];
}

type Obj = Record<string, unknown>;

/** Parsed JSON → entries, numbers as shortest decimals. @throws RangeError with the place of the first fault. */
export function readPriceFile(json: unknown): PriceFile {
  const file = asObject(json, 'the price list');
  if (file.schema_version !== SCHEMA_VERSION) {
    throw new RangeError(`schema_version ${String(file.schema_version)} is not ${SCHEMA_VERSION}`);
  }
  const asOf = asDay(file.as_of, 'as_of') ?? fault('as_of', 'is missing');
  const entries = asArray(file.models, 'models').map((item, index) =>
    readEntry(item, `models[${index}]`, asOf),
  );
  refuseDuplicateIds(entries);
  return { asOf, entries };
}

function readEntry(item: unknown, place: string, asOf: string): PriceEntry {
  const entry = asObject(item, place);
  const provider = asText(entry.provider, `${place}.provider`);
  if (!isProvider(provider)) return fault(`${place}.provider`, `${provider} is not a provider`);
  const model = asText(entry.model, `${place}.model`);
  const where = `${provider} ${model}`;
  const facts = readFacts(entry, where, asOf);
  return {
    model: {
      provider,
      model,
      canonicalFamily: asText(entry.canonical_family, `${where}.canonical_family`),
      aliases: asArray(entry.aliases, `${where}.aliases`).map((alias) => asText(alias, `${where}.aliases`)),
      mode: asOneOf(PRICE_MODES, entry.mode, `${where}.mode`),
      firstParty: entry.first_party === true,
      contextWindow: asTokens(entry.context_window, `${where}.context_window`),
      agreement: asOneOf(AGREEMENTS, entry.agreement, `${where}.agreement`),
      facts,
    },
    periods: readPeriods(entry.rates, where, facts),
  };
}

function readFacts(entry: Obj, where: string, asOf: string): PriceFacts {
  const list = (name: string) =>
    asArray(entry[name] ?? [], `${where}.${name}`).map((item) => asText(item, `${where}.${name}`));
  return {
    asOf,
    dissent: list('dissent'),
    conflicts: list('conflicts'),
    notes: list('notes'),
    regionalMultipliers: asObject(
      entry.regional_multipliers ?? {},
      `${where}.regional_multipliers`,
    ) as Record<string, number>,
    variants: asObject(entry.variants ?? {}, `${where}.variants`),
    sources: asObject(entry.sources, `${where}.sources`) as Record<string, Obj>,
  };
}

function readPeriods(value: unknown, where: string, facts: PriceFacts): PricePeriod[] {
  const periods = asArray(value, `${where}.rates`).map((item, index) =>
    readPeriod(asObject(item, `${where}.rates[${index}]`), `${where}.rates[${index}]`, facts),
  );
  if (periods.length === 0) fault(`${where}.rates`, 'has no period');
  periods.forEach((period, index) => {
    const next = periods[index + 1];
    if (next && period.effectiveTo !== next.effectiveFrom)
      fault(`${where}.rates[${index}]`, 'leaves a gap or overlaps');
  });
  return periods;
}

function readPeriod(period: Obj, where: string, facts: PriceFacts): PricePeriod {
  const effectiveFrom = asDay(period.effective_from, `${where}.effective_from`);
  const effectiveTo = asDay(period.effective_to, `${where}.effective_to`);
  const rates = readRates(period, where);
  if (rates.input === null || rates.output === null) fault(where, 'lacks the input or the output rate');
  const current =
    (effectiveFrom === null || effectiveFrom <= facts.asOf) &&
    (effectiveTo === null || effectiveTo > facts.asOf);
  return {
    effectiveFrom,
    effectiveTo,
    rates,
    batchMultiplier: asRate(period.batch_multiplier, `${where}.batch_multiplier`),
    tiers: asArray(period.tiers, `${where}.tiers`).map((tier, index) =>
      readTier(asObject(tier, `${where}.tiers[${index}]`), `${where}.tiers[${index}]`),
    ),
    source: current ? sourcesOfRates(facts, rates).join(', ') : DATED_SOURCE,
  };
}

/** The sources that list the input and output rate of the period in force; the dated source if none does. */
function sourcesOfRates(facts: PriceFacts, rates: Rates): string[] {
  const names = Object.keys(facts.sources).filter((name) => {
    const listed = facts.sources[name] ?? {};
    return asRate(listed.input, name) === rates.input && (asRate(listed.output, name) ?? 0n) === rates.output;
  });
  return names.length > 0 ? names.sort() : [DATED_SOURCE];
}

function readTier(tier: Obj, where: string): PriceTier {
  const rates = readRates(tier, where);
  if (rates.input === null || rates.output === null) fault(where, 'lacks the input or the output rate');
  return {
    serviceTier: tier.service_tier == null ? null : asText(tier.service_tier, `${where}.service_tier`),
    aboveInputTokens: asTokens(tier.above_input_tokens, `${where}.above_input_tokens`),
    rates,
    checkedOn: asDay(tier.checked_on, `${where}.checked_on`),
  };
}

function readRates(source: Obj, where: string): Rates {
  const rates = {} as Record<RateClass, bigint | null>;
  for (const name of RATE_CLASSES) rates[name] = asRate(source[name], `${where}.${name}`);
  return rates;
}

/** An id must belong to one entry of a provider, else its price would depend on the order of the file. */
function refuseDuplicateIds(entries: readonly PriceEntry[]): void {
  const seen = new Set<string>();
  for (const { model } of entries) {
    for (const id of [model.model, ...model.aliases]) {
      const key = `${model.provider} ${id}`;
      if (seen.has(key)) fault(key, 'is listed twice');
      seen.add(key);
    }
  }
}

function fault(place: string, what: string): never {
  throw new RangeError(`price list: ${place} ${what}`);
}

function asObject(value: unknown, place: string): Obj {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return fault(place, 'is not an object');
  return value as Obj;
}

function asArray(value: unknown, place: string): unknown[] {
  return Array.isArray(value) ? value : fault(place, 'is not an array');
}

function asText(value: unknown, place: string): string {
  return typeof value === 'string' && value !== '' ? value : fault(place, 'is not a text');
}

function asOneOf<T extends string>(allowed: readonly T[], value: unknown, place: string): T {
  const found = allowed.find((name) => name === value);
  return found ?? fault(place, `is none of ${allowed.join(', ')}`);
}

/** USD as a JSON number → scaled by 1e12; absent and null: unknown. */
function asRate(value: unknown, place: string): bigint | null {
  if (value === undefined || value === null) return null;
  const rate = typeof value === 'number' && value >= 0 ? picoFromNumber(value) : undefined;
  return rate ?? fault(place, 'is not a rate');
}

function asTokens(value: unknown, place: string): number | null {
  if (value === undefined || value === null) return null;
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0
    ? value
    : fault(place, 'is not a number of tokens');
}

function asDay(value: unknown, place: string): string | null {
  if (value === undefined || value === null) return null;
  return typeof value === 'string' && parseInstant(value)?.dateOnly ? value : fault(place, 'is not a day');
}

/** Hex digits of the content hash in a version name. */
const HASH_DIGITS = 8;

/** `YYYYMMDDTHHMMSSffffffZ-<8 hex of the content hash>`. */
export function priceVersionName(updatedAtMicros: bigint, contentHash: string): string {
  const [whole = '', fraction = ''] = isoFromMicros(updatedAtMicros).replace('Z', '').split('.');
  const time = whole.replaceAll('-', '').replaceAll(':', '');
  return `${time}${fraction.padEnd(6, '0')}Z-${contentHash.slice(0, HASH_DIGITS)}`;
}
