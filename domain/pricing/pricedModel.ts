import { microsOfDay } from '../period.js';
import { findProvider, type Provider } from '../providers.js';
import type { PriceStatement } from './priceStatement.js';
import { isDisputed, type PriceAgreement, type PriceVersion, type RecordedPriceModel } from './prices.js';
import { cardsOf, type PeriodCards } from './rateCards.js';

/** How an id led to its entry: as listed, by the base of a fine-tuned model, or by its family having one price. */
export type MatchedBy = 'exact' | 'fine_tuned' | 'family';

/** A price in force: the entry, its period, and the rates worked out from it. */
export interface PricedModel {
  readonly entry: RecordedPriceModel;
  readonly version: PriceVersion;
  readonly matchedBy: MatchedBy;
  readonly cards: PeriodCards;
  /** First microsecond at which it holds; null: as far back as is known. */
  readonly fromMicros: bigint | null;
  /** First microsecond at which it no longer holds; null: in force. */
  readonly toMicros: bigint | null;
  /** How far its sources agree, or whose own price it is. */
  readonly agreement: PriceAgreement;
  /** A source contradicts it: no claim that counts as certain may rest on it. */
  readonly disputed: boolean;
  /** What was laid over the listed price to make it: an import, an override or a contract; undefined for a listed one. */
  readonly laid?: LaidPrice;
}

/** A statement in force, and the price before it; null where there was none. */
export interface LaidPrice {
  readonly statement: PriceStatement;
  readonly base: PricedModel | null;
}

/** An entry with its periods, oldest first. */
export interface EnteredModel {
  readonly entry: RecordedPriceModel;
  readonly periods: readonly PricedModel[];
}

/** The price of a stored period. */
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

/** Prices as an id that is not listed itself finds them. */
export function matchedAs(priced: readonly PricedModel[], matchedBy: MatchedBy): PricedModel[] {
  return priced.map((one) => ({ ...one, matchedBy }));
}

/** Whether a price is in force at a time. */
export function holdsAt(priced: PricedModel, atMicros: bigint): boolean {
  return (
    (priced.fromMicros === null || atMicros >= priced.fromMicros) &&
    (priced.toMicros === null || atMicros < priced.toMicros)
  );
}

/** Two entries have one price when every rate of every period is the same. */
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
 * What surrounds a model's name in the ids that clients and providers use: resource paths, fine-tuning suffixes,
 * regions, vendors, versions and dates. Rules of data/README.md, "Finding a price".
 */

/** Ids longer than this name no model; it also bounds the work below. */
const MODEL_ID_CHARS_MAX = 512;

/** Bedrock's inference profiles: the region group that a request may be served from. */
const REGION_PREFIX = /^(?:us-gov|us|eu|apac|au|jp|in|ca|sa|global)\./;
/** Bedrock's ids name the maker before a dot. */
const VENDOR_PREFIX = /^[a-z0-9]+\.(?=[a-z])/;
const BEDROCK_SUFFIXES = [/:\d+(?::\d+k)?$/, /-v\d+$/];
const AZURE_GPT_35 = /^gpt-35-/;

/** Dates at the end of an id, by the habits of the providers; only those that can be a date. */
const DATE_SUFFIXES = [
  /@(?:default|latest|\d{8})$/,
  /-latest$/,
  /-20\d{2}-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01])$/,
  // month and day, or year and month
  /-(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])$/,
  /-(?:2[3-9]|3\d)(?:0[1-9]|1[0-2])$/,
  /-(?:0[1-9]|1[0-2])-20\d{2}$/,
];
/** Google numbers the stable versions of a model. */
const GOOGLE_VERSION = /-00\d$/;

/**
 * The ids under which an exact price is looked for, best first: as it came, in lower case, and without the path or
 * the prefix that names this very provider (`models/…`, `publishers/…/models/…`, an ARN, `openai/…`).
 */
export function exactIds(provider: Provider, modelId: string): string[] {
  if (modelId.length > MODEL_ID_CHARS_MAX) return [];
  const trimmed = modelId.trim();
  const bare = withoutPath(provider, trimmed);
  return [...new Set([trimmed, trimmed.toLowerCase(), bare, bare.toLowerCase()])];
}

/**
 * The base of a fine-tuned model: `ft:gpt-4o-2024-08-06:org::x` → `ft:gpt-4o-2024-08-06`; undefined for other ids.
 */
export function fineTunedBase(modelId: string): string | undefined {
  const [kind, base, ...rest] = modelId.split(':');
  if (kind?.toLowerCase() !== 'ft' || !base || rest.length === 0) return undefined;
  return `ft:${base.toLowerCase()}`;
}

/**
 * The names that an id may have as a family, from the least to the most stripped: region, vendor, version and date go
 * one after the other. The first that is a known family of the provider is meant.
 */
export function familyNames(provider: Provider, modelId: string): string[] {
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

/** The provider that a `word/model` id names in front, as gateways write it; undefined without one. */
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
