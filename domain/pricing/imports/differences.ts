import type { Pico } from '../../money.js';
import { microsOfDay } from '../../period.js';
import type { Provider } from '../../providers.js';
import type { ImportedEntry } from '../importedPrices.js';
import type { PriceBook } from '../priceBook.js';
import { familyNames, type PricedModel } from '../pricedModel.js';
import { type PriceTier, RATE_CLASSES, type RateClass, type Rates } from '../prices.js';
import { BATCH_TIER, STANDARD_TIER } from '../rateCards.js';
import { listedRate, sourceKey } from '../rateSources.js';
import type { ListedCollection, ListedModel } from './collection.js';
import { findSuspicions, type Suspicion, tierName } from './suspicions.js';

/** One rate that a collection gives otherwise than the prices in force. */
export interface RateDifference {
  /** `standard`, `batch`, `standard above 200000`, … */
  readonly tier: string;
  readonly rateClass: RateClass;
  /** Pico-dollars per million tokens; null: no rate was known. */
  readonly before: Pico | null;
  readonly after: Pico;
}

export interface ModelDifference {
  readonly listed: ListedModel;
  readonly kind: 'new' | 'changed';
  readonly rates: readonly RateDifference[];
  /** Some rate is more than twice, or less than half, of what it was. */
  readonly isJump: boolean;
  /** What is hardly right about the rates that differ. */
  readonly suspicions: readonly Suspicion[];
  /** What an import of it says. */
  readonly news: {
    readonly rates: Readonly<Partial<Record<RateClass, Pico>>>;
    readonly tiers: readonly PriceTier[];
    readonly batchMultiplier: bigint | null;
  };
  readonly entry: ImportedEntry;
}

export interface CollectionDifferences {
  readonly models: readonly ModelDifference[];
  /** Entries whose ids the collection gives different prices: which one is meant cannot be told. */
  readonly divided: readonly { provider: Provider; model: string; ids: readonly string[] }[];
  /** Priced now and not in the file; an import never removes a price. */
  readonly missing: readonly { provider: Provider; model: string }[];
  /** Listed otherwise, but by a file that is older than what is known of the model. */
  readonly older: readonly ListedModel[];
  readonly sameModels: number;
  /** Rates that differ as they did when the shipped list was made: weighed then, no news. */
  readonly weighedRates: number;
  /** Everything that looks wrong in the file, whether it is a difference or not. */
  readonly suspicions: readonly Suspicion[];
}

export interface ComparisonOptions {
  /** First UTC day of the new prices. */
  readonly day: string;
  /** The day on which the file was fetched. */
  readonly retrievedOn: string;
  readonly provider: Provider | undefined;
  /** The day as of which the model's price is known; undefined where it has none. */
  knownAsOf(provider: Provider, model: string): string | undefined;
}

const JUMP = 2n;

/** Compares a collection with the prices in force on a day. */
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
  // An id that its family prices as the file does needs no entry of its own.
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

/** Batch rates that the file leaves out follow a changed standard rate by the factor that is known. */
function keptFactor(
  listed: ListedModel,
  standard: Readonly<Partial<Record<RateClass, Pico>>>,
  before: PricedModel | undefined,
): bigint | null {
  const isChanged = standard.input !== undefined || standard.output !== undefined;
  if (!isChanged || listed.tiers.some((tier) => tier.serviceTier === BATCH_TIER)) return null;
  return before?.version.batchMultiplier ?? null;
}

/** True for a rate that the collection listed when the shipped list was made, and that the list did not take. */
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
    canonicalFamily: names.find((name) => families.has(name)) ?? names.at(-1) ?? model,
    mode,
    firstParty: isMaker(provider, model),
    contextWindow,
  };
}

/** The provider makes the model: the clouds sell others', Vertex AI both. */
function isMaker(provider: Provider, model: string): boolean {
  if (provider === 'azure_openai' || provider === 'aws_bedrock') return false;
  return provider !== 'google' || /^(?:gemini|gemma|learnlm|text-embedding|embedding)/.test(model);
}
