import type { Pico } from '../money.js';
import { microsOfDay } from '../period.js';
import { findProvider, type Provider } from '../providers.js';
import type { PriceBook } from './priceBook.js';
import type { PriceStatement } from './priceStatement.js';
import { cardsOf, type PeriodCards, STANDARD_TIER } from './rateCards.js';

/** The way from an id to its entry: as listed, by the base of a fine-tuned model, or by its family having one price. */
export type MatchedBy = 'exact' | 'fine_tuned' | 'family';

/** A price in force: the entry, its period, and the computed rates. */
export interface PricedModel {
  readonly entry: RecordedPriceModel;
  readonly version: PriceVersion;
  readonly matchedBy: MatchedBy;
  readonly cards: PeriodCards;
  /** Start of the price, microseconds; null: unknown. */
  readonly fromMicros: bigint | null;
  /** First microsecond after the price; null: it is in force. */
  readonly toMicros: bigint | null;
  /** The agreement of its sources, or the kind of own price. */
  readonly agreement: PriceAgreement;
  /** A source contradicts it, so no certain claim may depend on it. */
  readonly disputed: boolean;
  /** The import, override or contract over the list price; undefined: the price is a list price. */
  readonly laid?: LaidPrice;
}

/** A statement in force, and the price below it; null: there was none. */
export interface LaidPrice {
  readonly statement: PriceStatement;
  readonly base: PricedModel | null;
}

export interface EnteredModel {
  readonly entry: RecordedPriceModel;
  readonly periods: readonly PricedModel[];
}

export function priceWith(entry: RecordedPriceModel, version: PriceVersion): PricedModel {
  return {
    entry,
    version,
    matchedBy: 'exact',
    cards: cardsOf(entry.provider, version),
    fromMicros: version.effectiveFrom === null ? null : microsOfDay(version.effectiveFrom),
    toMicros: version.effectiveTo === null ? null : microsOfDay(version.effectiveTo),
    agreement: entry.agreement,
    disputed: isDisputed(entry),
  };
}

/** The prices as found for an id that is not listed itself. */
export function matchedAs(priced: readonly PricedModel[], matchedBy: MatchedBy): PricedModel[] {
  return priced.map((one) => ({ ...one, matchedBy }));
}

export function holdsAt(priced: PricedModel, atMicros: bigint): boolean {
  return (
    (priced.fromMicros === null || atMicros >= priced.fromMicros) &&
    (priced.toMicros === null || atMicros < priced.toMicros)
  );
}

/** Two entries have one price if every rate of every period is equal. */
export function samePrice(left: readonly PricedModel[], right: readonly PricedModel[]): boolean {
  return (
    left.length === right.length && left.every((one, index) => priceText(one) === priceText(right[index]))
  );
}

function priceText(priced: PricedModel | undefined): string {
  if (!priced) return '';
  const { effectiveFrom, effectiveTo, rates, batchMultiplier, tiers } = priced.version;
  const plain = [
    effectiveFrom,
    effectiveTo,
    rates,
    batchMultiplier,
    tiers.map(({ checkedOn: _, ...tier }) => tier),
  ];
  return JSON.stringify(plain, (_, value: unknown) => (typeof value === 'bigint' ? value.toString() : value));
}

/**
 * Parts around a model's name in ids: paths, fine-tuning, regions, vendors, dates (data/README.md, "Finding a
 * price").
 */

/** Longer ids are never models; the limit also bounds the work below. */
const MODEL_ID_CHARS_MAX = 512;

/** The region group of a Bedrock inference profile, which may serve the request. */
const REGION_PREFIX = /^(?:us-gov|us|eu|apac|au|jp|in|ca|sa|global)\./;
/** The maker before the first dot of a Bedrock id. */
const VENDOR_PREFIX = /^[a-z0-9]+\.(?=[a-z])/;
const BEDROCK_SUFFIXES = [/:\d+(?::\d+k)?$/, /-v\d+$/];
const AZURE_GPT_35 = /^gpt-35-/;

/** Dates at the end of an id in the providers' notations; only digits that can be a date match. */
const DATE_SUFFIXES = [
  /@(?:default|latest|\d{8})$/,
  /-latest$/,
  /-20\d{2}-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])$/,
  // month and day, or year and month
  /-(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])$/,
  /-(?:2[3-9]|3\d)(?:0[1-9]|1[0-2])$/,
  /-(?:0[1-9]|1[0-2])-20\d{2}$/,
];
/** Google's version numbers of stable models. */
const GOOGLE_VERSION = /-00\d$/;

/** Ids to look up, best first: as received, in lower case, without this provider's path or prefix. */
export function exactIds(provider: Provider, modelId: string): string[] {
  if (modelId.length > MODEL_ID_CHARS_MAX) return [];
  const trimmed = modelId.trim();
  const bare = withoutPath(provider, trimmed);
  return [...new Set([trimmed, trimmed.toLowerCase(), bare, bare.toLowerCase()])];
}

/** `ft:gpt-4o-2024-08-06:org::x` → `ft:gpt-4o-2024-08-06`; undefined for other ids. */
export function fineTunedBase(modelId: string): string | undefined {
  const [kind, base, ...rest] = modelId.split(':');
  if (kind?.toLowerCase() !== 'ft' || !base || rest.length === 0) return undefined;
  return `ft:${base.toLowerCase()}`;
}

/** Gateways write `claude-sonnet-4.5` where the maker writes `claude-sonnet-4-5`, and the other way round. */
const VERSION_DOTS = /(?<=\d)\.(?=\d)/g;
const VERSION_DASHES = /(?<=\d)-(?=\d)/g;

/**
 * Possible family names, without region, vendor, version and date in turn; last with the other sign between the digits
 * of a version.
 */
export function familyNames(provider: Provider, modelId: string): string[] {
  const names = new Set(strippedNames(provider, modelId));
  for (const one of [...names]) {
    names.add(one.replace(VERSION_DOTS, '-'));
    names.add(one.replace(VERSION_DASHES, '.'));
  }
  return [...names];
}

/** The family of a model that no family of the price list names: its id without all of that; an id too long is its own. */
export function newFamily(provider: Provider, modelId: string): string {
  return strippedNames(provider, modelId).at(-1) ?? modelId;
}

/** The id, then the id without region, vendor, version and date in turn. */
function strippedNames(provider: Provider, modelId: string): string[] {
  if (modelId.length > MODEL_ID_CHARS_MAX) return [];
  const id = modelId.trim();
  let name = fineTunedBase(id) ?? withoutPath(provider, id).toLowerCase();
  const names = new Set([name]);
  const strip = (pattern: RegExp, by = ''): void => {
    name = name.replace(pattern, by);
    if (name !== '') names.add(name);
  };
  if (provider === 'azure_openai') strip(AZURE_GPT_35, 'gpt-3.5-');
  if (provider === 'aws_bedrock') {
    strip(REGION_PREFIX);
    strip(VENDOR_PREFIX);
    for (const suffix of BEDROCK_SUFFIXES) strip(suffix);
  }
  if (provider === 'google') strip(GOOGLE_VERSION);
  for (const suffix of DATE_SUFFIXES) strip(suffix);
  return [...names];
}

/** The provider before the slash of a gateway's `word/model` id; undefined: it has none. */
export function prefixProvider(modelId: string): { provider: Provider; bareId: string } | undefined {
  const slash = modelId.indexOf('/');
  if (slash <= 0) return undefined;
  const provider = findProvider(modelId.slice(0, slash));
  return provider ? { provider, bareId: modelId.slice(slash + 1) } : undefined;
}

function withoutPath(provider: Provider, id: string): string {
  const slash = id.lastIndexOf('/');
  if (slash < 0) return id;
  const last = id.slice(slash + 1);
  if (provider === 'aws_bedrock' && id.startsWith('arn:')) return last;
  if (/(?:^|\/)models\/[^/]+$/.test(id)) return last;
  const prefix = prefixProvider(id);
  return prefix?.provider === provider ? prefix.bareId : id;
}

/** Entries and price periods. Rates are pico-dollars per million tokens; null means unknown, never free. */

/** Every class with a rate in price lists. The last two are stored and shown, but no call is priced by them. */
export const RATE_CLASSES = [
  'input',
  'output',
  'cache_read',
  'cache_write_5m',
  'cache_write_1h',
  'input_audio',
  'output_audio',
  'cache_write_12h',
  'cache_read_audio',
] as const;
export type RateClass = (typeof RATE_CLASSES)[number];

/** Maximum accepted rate: the maximum tokens of an event at this rate can still be stored. */
export const RATE_PER_MTOK_USD_MAX = 100_000;

export type Rates = Readonly<Record<RateClass, Pico | null>>;

/** The agreement of a price's sources (data/README.md). */
export const AGREEMENTS = ['agree', 'single_source', 'disagree'] as const;
export type Agreement = (typeof AGREEMENTS)[number];

/** The agreement values of own prices, which need no source to agree. */
export const OWN_AGREEMENTS = ['override', 'contract'] as const;
export type PriceAgreement = Agreement | (typeof OWN_AGREEMENTS)[number];

export const PRICE_MODES = ['chat', 'embedding'] as const;
export type PriceMode = (typeof PRICE_MODES)[number];

/** Rates of one period for a service tier, for long requests, or for both. */
export interface PriceTier {
  /** null: the standard service. */
  readonly serviceTier: string | null;
  /** The tier applies to requests with a larger whole input, tokens; null: to any length. */
  readonly aboveInputTokens: number | null;
  readonly rates: Rates;
  /** The day on which a source had this tier's rates, `YYYY-MM-DD`; it is no price change. */
  readonly checkedOn: string | null;
}

/** A price period before it has an id and a recording time. */
export interface PricePeriod {
  /** First UTC day, inclusive, `YYYY-MM-DD`; null: the oldest known price, whose start is unknown. */
  readonly effectiveFrom: string | null;
  /** First UTC day after the period; null: in force. */
  readonly effectiveTo: string | null;
  readonly rates: Rates;
  /** Batch rate ÷ standard rate of the sources, scaled by 1e12; null: none lists batch rates. */
  readonly batchMultiplier: bigint | null;
  readonly tiers: readonly PriceTier[];
  /** The keys of the sources that list these rates, separated by a comma and a space. */
  readonly source: string;
}

/** A recorded price period. Periods are append-only, so that the prices known at a time can be shown later. */
export interface PriceVersion extends PricePeriod {
  /** uuid */
  readonly id: string;
  readonly provider: Provider;
  readonly model: string;
  readonly recordedAtMicros: bigint;
}

export interface PriceModel {
  readonly provider: Provider;
  readonly model: string;
  /** The id without date, region and vendor; the same at every provider. */
  readonly canonicalFamily: string;
  /** Other ids of the same provider with the same price. */
  readonly aliases: readonly string[];
  readonly mode: PriceMode;
  /** The provider makes the model or runs it under its own list. */
  readonly firstParty: boolean;
  /** Tokens; null: unknown. */
  readonly contextWindow: number | null;
  readonly agreement: Agreement;
  readonly facts: PriceFacts;
}

export interface RecordedPriceModel extends PriceModel {
  /** The last change of anything but the rates. */
  readonly updatedAtMicros: bigint;
}

/** Other facts of the price data about an entry, which are shown with a price but not used to compute costs. */
export interface PriceFacts {
  /** The day of the facts, `YYYY-MM-DD`; `sources` contains each source's listing on that day. */
  readonly asOf: string;
  /** Sources that contradict the majority's price. */
  readonly dissent: readonly string[];
  /** Other classes on which consistent sources differ by more than 1 %. */
  readonly conflicts: readonly string[];
  readonly notes: readonly string[];
  readonly regionalMultipliers: Readonly<Record<string, number>>;
  readonly variants: Readonly<Record<string, unknown>>;
  /** By source key: rates in USD per million tokens, and tiers under keys like `batch` or `above_200000`. */
  readonly sources: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** Whether a source contradicts the price, so that no certain claim may depend on it. */
export function isDisputed(model: PriceModel): boolean {
  return model.agreement === 'disagree' || model.facts.dissent.length > 0;
}

/** One price for each model family, for estimates by client wrappers. */

/** Cache rates that may be assumed, by their names in the table. */
export type TableCacheRate = 'cache_read' | 'cache_creation';

export interface TableRow {
  readonly family: string;
  readonly priced: PricedModel;
  /** Pico-dollars per million tokens; always known. */
  readonly input: Pico;
  readonly output: Pico;
  readonly cacheRead: Pico;
  /** The ordinary (5-minute) write. */
  readonly cacheCreation: Pico;
  /** Rates that no source lists, for which the input rate is used. */
  readonly assumed: readonly TableCacheRate[];
}

/** A date in an id: a day, or a two-digit month and a year. */
const DAY_IN_ID = /(20\d{2})-?(0[1-9]|1[0-2])-?(0[1-9]|[12]\d|3[01])(?!\d)/;
const MONTH_IN_ID = /(?<!\d)(2[3-9]|3\d)(0[1-9]|1[0-2])(?!\d)/;

export function priceTable(book: PriceBook, atMicros: bigint): TableRow[] {
  const byFamily = new Map<string, PricedModel[]>();
  for (const priced of book.periods()) {
    if (!holdsAt(priced, atMicros)) continue;
    const family = priced.entry.canonicalFamily;
    const members = byFamily.get(family);
    if (members) members.push(priced);
    else byFamily.set(family, [priced]);
  }
  return [...byFamily]
    .sort(([left], [right]) => (left < right ? -1 : 1))
    .map(([family, members]) => rowOf(family, speakerOf(family, members)));
}

/**
 * The entry that represents a family: the maker's own, the newest dated, an alias, the maker's first, else the
 * first.
 */
function speakerOf(family: string, members: readonly PricedModel[]): PricedModel {
  const own = members.filter(({ entry }) => entry.firstParty);
  const dated = own
    .map((priced) => ({ priced, date: dateInId(priced.entry.model) }))
    .filter(({ date }) => date !== '')
    .sort((left, right) => (left.date < right.date ? 1 : left.date > right.date ? -1 : 0));
  const speaker =
    own.find(({ entry }) => entry.model === family) ??
    dated[0]?.priced ??
    own.find(({ entry }) => entry.aliases.includes(family)) ??
    own[0] ??
    members[0];
  if (!speaker) throw new RangeError('a family has a member');
  return speaker;
}

/** `YYYYMM` or `YYYYMMDD`, so that texts compare as dates; '': no date. */
function dateInId(model: string): string {
  const day = DAY_IN_ID.exec(model);
  if (day) return day.slice(1).join('');
  const month = MONTH_IN_ID.exec(model);
  return month ? `20${month.slice(1).join('')}` : '';
}

function rowOf(family: string, priced: PricedModel): TableRow {
  const card = priced.cards.get(STANDARD_TIER)?.flat;
  if (!card) throw new RangeError('a price period has standard rates');
  const { classes } = card;
  const assumed: TableCacheRate[] = [];
  if (classes.cache_read.gap !== undefined) assumed.push('cache_read');
  if (classes.cache_write_5m.gap !== undefined) assumed.push('cache_creation');
  return {
    family,
    priced,
    input: classes.input.rate,
    output: classes.output.rate,
    cacheRead: classes.cache_read.rate,
    cacheCreation: classes.cache_write_5m.rate,
    assumed,
  };
}
