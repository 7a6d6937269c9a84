import { divideHalfEven, type Pico } from '../../money.js';
import { microsOfDay } from '../../period.js';
import type { Provider } from '../../providers.js';
import type { ImportedEntry } from '../importedPrices.js';
import type { PriceBook } from '../priceBook.js';
import {
  familyNames,
  newFamily,
  type PricedModel,
  type PriceTier,
  RATE_CLASSES,
  type RateClass,
  type Rates,
} from '../pricedModel.js';
import { listedRate, sourceKey } from '../priceStatement.js';
import { BATCH_TIER, STANDARD_TIER } from '../rateCards.js';
import type { ListedCollection, ListedModel } from './collection.js';

/** A rate in a collection that differs from the prices in force. */
export interface RateDifference {
  /** `standard`, `batch`, `standard above 200000`, … */
  readonly tier: string;
  readonly rateClass: RateClass;
  /** Pico-dollars per million tokens; null: the rate was unknown. */
  readonly before: Pico | null;
  readonly after: Pico;
}

export interface ModelDifference {
  readonly listed: ListedModel;
  readonly kind: 'new' | 'changed';
  readonly rates: readonly RateDifference[];
  /** Some rate is more than twice or less than half the previous one. */
  readonly isJump: boolean;
  /** Reasons to doubt the different rates. */
  readonly suspicions: readonly Suspicion[];
  /** The entry that an import of it creates. */
  readonly news: {
    readonly rates: Readonly<Partial<Record<RateClass, Pico>>>;
    readonly tiers: readonly PriceTier[];
    readonly batchMultiplier: bigint | null;
  };
  readonly entry: ImportedEntry;
}

export interface CollectionDifferences {
  readonly models: readonly ModelDifference[];
  /** Entries whose ids have different prices in the collection, so that the right one is unknown. */
  readonly divided: readonly { provider: Provider; model: string; ids: readonly string[] }[];
  /** Models with a price now that the file lacks; an import never removes a price. */
  readonly missing: readonly { provider: Provider; model: string }[];
  /** Models with different prices in a file that is older than the known price. */
  readonly older: readonly ListedModel[];
  readonly sameModels: number;
  /** Number of rates with the same difference as when the shipped list was made; they were considered then. */
  readonly weighedRates: number;
  /** All doubtful rates of the file, whether they differ or not. */
  readonly suspicions: readonly Suspicion[];
}

export interface ComparisonOptions {
  /** First UTC day of the new prices. */
  readonly day: string;
  /** The day on which the file was fetched. */
  readonly retrievedOn: string;
  readonly provider: Provider | undefined;
  /** The day for which the model's price is known; undefined: it has none. */
  knownAsOf(provider: Provider, model: string): string | undefined;
}

const JUMP = 2n;

export function compareCollection(
  collection: ListedCollection,
  book: PriceBook,
  options: ComparisonOptions,
): CollectionDifferences {
  const wanted = collection.models.filter(
    (model) => options.provider === undefined || model.provider === options.provider,
  );
  const suspicions = findSuspicions(wanted);
  const compared = wanted
    .filter((model) => model.region === null)
    .map((listed) => compareModel(collection, listed, book, options, suspicions));
  const byEntry = new Map<string, Compared[]>();
  for (const one of compared) {
    const group = byEntry.get(one.entryKey);
    if (group) group.push(one);
    else byEntry.set(one.entryKey, [one]);
  }
  const groups = [...byEntry.values()];
  const whole = groups.filter((group) => new Set(group.map(newsText)).size === 1);
  const differing = whole.flatMap((group) => group[0] ?? []).filter(({ rates }) => rates.length > 0);
  return {
    models: differing.filter((one) => !one.isOlder).map(presentDifference),
    divided: groups
      .filter((group) => !whole.includes(group))
      .map((group) => ({
        provider: (group[0] as Compared).listed.provider,
        model: (group[0] as Compared).entryModel,
        ids: group.map(({ listed }) => listed.model),
      })),
    missing: missingModels(book, wanted, options),
    older: differing.filter((one) => one.isOlder).map(({ listed }) => listed),
    sameModels: whole.filter((group) => group[0]?.rates.length === 0).length,
    weighedRates: compared.reduce((sum, one) => sum + one.weighed, 0),
    suspicions,
  };
}

interface Compared extends ModelDifference {
  readonly entryKey: string;
  readonly entryModel: string;
  readonly weighed: number;
  readonly isOlder: boolean;
}

function presentDifference({
  entryKey: _,
  entryModel: __,
  weighed: ___,
  isOlder: ____,
  ...difference
}: Compared) {
  return difference;
}

function newsText({ news, kind }: Compared): string {
  return JSON.stringify([kind, news], (_, value: unknown) =>
    typeof value === 'bigint' ? value.toString() : value,
  );
}

function compareModel(
  collection: ListedCollection,
  listed: ListedModel,
  book: PriceBook,
  options: ComparisonOptions,
  suspicions: readonly Suspicion[],
): Compared {
  const { provider, model } = listed;
  const named = book.entryNamed(provider, model);
  const found = book.find(provider, model, microsOfDay(options.day));
  // An id needs no separate entry if its family has the file's price.
  const familiar = !named && found && differencesOf(collection, listed, found).rates.length === 0;
  const before = named || familiar ? found : undefined;
  const { rates, weighed, news } = differencesOf(collection, listed, before);
  const entryModel = named?.entry.model ?? model;
  const knownAsOf = options.knownAsOf(provider, entryModel);
  return {
    listed,
    kind: named || familiar ? 'changed' : 'new',
    rates,
    isJump: rates.some(isJump),
    suspicions: suspicions.filter(
      (one) =>
        one.listed === listed &&
        rates.some((rate) => rate.tier === one.tier && rate.rateClass === one.rateClass),
    ),
    news,
    entry: entryOf(book, listed),
    entryKey: `${provider}\n${entryModel}`,
    entryModel,
    weighed,
    isOlder: knownAsOf !== undefined && knownAsOf > options.retrievedOn,
  };
}

function isJump({ before, after }: RateDifference): boolean {
  return before !== null && (after > before * JUMP || after * JUMP < before);
}

function differencesOf(collection: ListedCollection, listed: ListedModel, before: PricedModel | undefined) {
  const rates: RateDifference[] = [];
  let weighed = 0;
  const compare = (tier: string, key: string, now: Rates, was: Rates | undefined) => {
    const news: Partial<Record<RateClass, Pico>> = {};
    for (const rateClass of RATE_CLASSES) {
      const after = now[rateClass];
      const known = was?.[rateClass] ?? null;
      if (after === null || after === known) continue;
      if (wasWeighed(collection, before, key, rateClass, after)) weighed += 1;
      else {
        news[rateClass] = after;
        rates.push({ tier, rateClass, before: known, after });
      }
    }
    return news;
  };
  const standard = compare(STANDARD_TIER, '', listed.rates, before?.version.rates);
  const tiers = listed.tiers.flatMap((tier) => {
    const was = before?.version.tiers.find(
      (one) => one.serviceTier === tier.serviceTier && one.aboveInputTokens === tier.aboveInputTokens,
    );
    const key = sourceKey(tier.serviceTier ?? STANDARD_TIER, tier.aboveInputTokens ?? 0);
    const news = compare(tierName(tier), key, tier.rates, was?.rates);
    if (Object.keys(news).length === 0) return [];
    return [{ ...tier, rates: { ...(was?.rates ?? tier.rates), ...news } }];
  });
  return {
    rates,
    weighed,
    news: { rates: standard, tiers, batchMultiplier: keptFactor(listed, standard, before) },
  };
}

/** If the file has no batch rates, they follow a changed standard rate by the known factor. */
function keptFactor(
  listed: ListedModel,
  standard: Readonly<Partial<Record<RateClass, Pico>>>,
  before: PricedModel | undefined,
): bigint | null {
  const isChanged = standard.input !== undefined || standard.output !== undefined;
  if (!isChanged || listed.tiers.some((tier) => tier.serviceTier === BATCH_TIER)) return null;
  return before?.version.batchMultiplier ?? null;
}

/** Whether the collection listed this rate when the shipped list was made, which did not adopt it. */
function wasWeighed(
  collection: ListedCollection,
  before: PricedModel | undefined,
  key: string,
  rateClass: RateClass,
  rate: Pico,
): boolean {
  const sources = before?.entry.facts.sources ?? {};
  return Object.entries(sources).some(
    ([name, source]) => name.startsWith(collection.source) && listedRate(source, key, rateClass) === rate,
  );
}

function missingModels(
  book: PriceBook,
  wanted: readonly ListedModel[],
  options: ComparisonOptions,
): { provider: Provider; model: string }[] {
  const providers = new Set(wanted.map(({ provider }) => provider));
  const listed = new Set(
    wanted.flatMap(({ provider, model }) => {
      const entry = book.entryNamed(provider, model)?.entry;
      return entry ? [`${provider}\n${entry.model}`] : [];
    }),
  );
  const atMicros = microsOfDay(options.day);
  return book.models
    .filter(
      ({ provider, model }) =>
        providers.has(provider) &&
        !listed.has(`${provider}\n${model}`) &&
        book.find(provider, model, atMicros) !== undefined,
    )
    .map(({ provider, model }) => ({ provider, model }));
}

function entryOf(book: PriceBook, { provider, model, mode, contextWindow }: ListedModel): ImportedEntry {
  const families = new Set(book.entriesOf(provider).map(({ entry }) => entry.canonicalFamily));
  const names = familyNames(provider, model);
  return {
    canonicalFamily: names.find((name) => families.has(name)) ?? newFamily(provider, model),
    mode,
    firstParty: isMaker(provider, model),
    contextWindow,
  };
}

/** Whether the provider makes the model. Clouds sell other makers' models, and Vertex AI sells both. */
function isMaker(provider: Provider, model: string): boolean {
  if (provider === 'azure_openai' || provider === 'aws_bedrock') return false;
  return provider !== 'google' || /^(?:gemini|gemma|learnlm|text-embedding|embedding)/.test(model);
}

/** A rate that the provider probably does not charge. */
export interface Suspicion {
  readonly listed: ListedModel;
  /** `standard`, `batch`, …, with the request length if the tier has one. */
  readonly tier: string;
  readonly rateClass: RateClass;
  /** A sentence with the relevant numbers. */
  readonly because: string;
}

/** Usual factors of cache writes on the input rate, in hundredths. */
const WRITE_FACTORS: ReadonlySet<bigint> = new Set([100n, 125n, 200n]);
/** Lower and upper factor of service tiers on the standard rate, in hundredths. */
const TIER_FACTORS: Readonly<Record<string, readonly [bigint, bigint]>> = {
  flex: [25n, 100n],
  priority: [100n, 400n],
};
const HUNDRED = 100n;

/** The name of a tier, as differences and suspicions show it. */
export function tierName({
  serviceTier,
  aboveInputTokens,
}: Pick<PriceTier, 'serviceTier' | 'aboveInputTokens'>): string {
  const service = serviceTier ?? STANDARD_TIER;
  return aboveInputTokens === null ? service : `${service} above ${aboveInputTokens}`;
}

/** All rates in a collection that a person should check, whether they differ or not. */
export function findSuspicions(models: readonly ListedModel[]): Suspicion[] {
  const makers = makersWithWrites(models);
  return models.flatMap((listed) => [
    ...ratesSuspicions(listed, STANDARD_TIER, listed.rates),
    ...listed.tiers.flatMap((tier) => tierSuspicions(listed, tier)),
    ...missingWrite(listed, makers),
  ]);
}

function ratesSuspicions(listed: ListedModel, tier: string, rates: Rates): Suspicion[] {
  const { input, output } = rates;
  if (input === null || input === 0n) return [];
  const found: Suspicion[] = [];
  const say = (rateClass: RateClass, because: string) => found.push({ listed, tier, rateClass, because });
  if (output !== null && output < input && listed.mode !== 'embedding')
    say('output', 'output is below input');
  if (rates.cache_read !== null && rates.cache_read > input)
    say('cache_read', 'reading the cache costs more than input');
  for (const name of ['cache_write_5m', 'cache_write_1h'] as const) {
    const write = rates[name];
    if (write === null || WRITE_FACTORS.has(hundredths(write, input))) continue;
    say(name, `writing the cache costs ${factorText(write, input)} × input, not 1, 1.25 or 2`);
  }
  return found;
}

function tierSuspicions(listed: ListedModel, tier: PriceTier): Suspicion[] {
  const name = tierName(tier);
  const found = ratesSuspicions(listed, name, tier.rates);
  const standard = standardOf(listed, tier);
  for (const rateClass of ['input', 'output'] as const) {
    const [rate, base] = [tier.rates[rateClass], standard[rateClass]];
    if (rate === null || base === null || base === 0n) continue;
    const factor = hundredths(rate, base);
    const range = TIER_FACTORS[tier.serviceTier ?? ''];
    if (tier.serviceTier === BATCH_TIER && rate * 2n !== base) {
      found.push({
        listed,
        tier: name,
        rateClass,
        because: `batch costs ${factorText(rate, base)} × standard, not 0.5`,
      });
    } else if (range && (factor < range[0] || factor > range[1])) {
      found.push({
        listed,
        tier: name,
        rateClass,
        because: `${name} costs ${factorText(rate, base)} × standard`,
      });
    }
  }
  return found;
}

/** The standard rates for requests of the tier's length, if they are listed. */
function standardOf(listed: ListedModel, { aboveInputTokens }: PriceTier): Rates {
  const long = listed.tiers.find(
    (tier) => tier.serviceTier === null && tier.aboveInputTokens === aboveInputTokens,
  );
  return aboveInputTokens === null ? listed.rates : (long?.rates ?? listed.rates);
}

/** Families whose maker lists a cache write; a reseller without one has probably omitted it. */
function makersWithWrites(models: readonly ListedModel[]): ReadonlyMap<string, ListedModel> {
  const makers = models.filter(
    ({ provider, rates }) =>
      (provider === 'openai' || provider === 'anthropic') && rates.cache_write_5m !== null,
  );
  return new Map(makers.map((model) => [familyOf(model), model]));
}

function missingWrite(listed: ListedModel, makers: ReadonlyMap<string, ListedModel>): Suspicion[] {
  if (listed.rates.cache_write_5m !== null || listed.rates.cache_read === null) return [];
  const maker = makers.get(familyOf(listed));
  if (!maker || maker === listed) return [];
  const because = `it has no rate for writing the cache, and ${maker.key} has one`;
  return [{ listed, tier: STANDARD_TIER, rateClass: 'cache_write_5m', because }];
}

function familyOf({ provider, model }: ListedModel): string {
  return newFamily(provider, model);
}

function hundredths(rate: Pico, base: Pico): bigint {
  return divideHalfEven(rate * HUNDRED, base);
}

/** A factor with at most two decimals. */
export function factorText(rate: Pico, base: Pico): string {
  const factor = hundredths(rate, base);
  const fraction = (factor % HUNDRED).toString().padStart(2, '0').replace(/0+$/, '');
  return `${factor / HUNDRED}${fraction === '' ? '' : `.${fraction}`}`;
}
