import type { BilledClass } from '../../billing/billedRow.js';
import { TOKEN_CLASSES, type TokenClass } from '../../events/event.js';
import { divideHalfEven, type Pico } from '../../money.js';
import { type ExpectedRates, expectedRatesOf } from '../../pricing/cost.js';
import type { PriceBook } from '../../pricing/priceBook.js';
import type { PricedModel, PriceModel } from '../../pricing/pricedModel.js';
import { givesRate, listedRate, sourceKey } from '../../pricing/priceStatement.js';
import { BATCH_TIER, normaliseServiceTier, STANDARD_TIER } from '../../pricing/rateCards.js';
import type { Provider } from '../../providers.js';

/** The circumstances of a quantity's usage on which its price depends. */
export interface Circumstances {
  serviceTier: string;
  isBatch: boolean;
  longContext: boolean;
  /** Boundary of the observed cell; 0: only `longContext` is known. */
  contextBand: number;
  region: string | null;
}

/** Requests to the standard service without anything of their own. */
export const ORDINARY: Circumstances = {
  serviceTier: STANDARD_TIER,
  isBatch: false,
  longContext: false,
  contextBand: 0,
  region: null,
};

export interface ExpectedRate {
  /** Pico-dollars per million tokens. */
  rate: Pico;
  /** No source lists a rate for these circumstances, so no certain finding may depend on it. */
  assumed: boolean;
}

/** A price period of a model, as seen on another day. */
export interface PeriodView {
  readonly rates: DayRates;
  /** First day, and below the first day after it; null: unlimited. */
  readonly fromDay: string | null;
  readonly toDay: string | null;
  /** The contract with the price; null: a list price or an override. */
  readonly contractId: string | null;
}

const FACTOR_SCALE = 1_000_000n;

export function isTokenClass(name: BilledClass): name is TokenClass {
  return (TOKEN_CLASSES as readonly string[]).includes(name);
}

export class DayRates {
  readonly #book: PriceBook;
  readonly #provider: Provider;
  readonly #atMicros: bigint;
  /** null: the id has no price. */
  readonly #found = new Map<string, PricedModel | null>();

  constructor(book: PriceBook, provider: Provider, dayMicros: bigint) {
    this.#book = book;
    this.#provider = provider;
    this.#atMicros = dayMicros;
  }

  /** Equal for ids of one model: the key of its price entry, else the family with a prefix that no entry has. */
  entryKey(model: string): string {
    return this.#find(model)?.entry.model ?? `~${this.family(model)}`;
  }

  nameOf(entryKey: string): string {
    return entryKey.startsWith('~') ? entryKey.slice(1) : entryKey;
  }

  family(model: string): string {
    return this.#book.canonicalModel(this.#provider, model);
  }

  /** Maps the tier words of bills and clients to one vocabulary. */
  tier(word: string): string {
    return normaliseServiceTier(this.#provider, word === '' ? null : word);
  }

  /** Undefined: the model has no price on that day. */
  rate(model: string, tokenClass: TokenClass, circumstances: Circumstances): ExpectedRate | undefined {
    const priced = this.#find(model);
    if (!priced) return undefined;
    const { rates, bases, assumed } = ratesUnder(priced, circumstances);
    const basis = bases[tokenClass];
    const unsupported =
      basis === 'input_rate' || basis === 'output_rate' || basis === 'half' || basis === 'scaled';
    const factor = regionFactor(priced, circumstances.region);
    return {
      rate:
        factor === undefined ? rates[tokenClass] : divideHalfEven(rates[tokenClass] * factor, FACTOR_SCALE),
      assumed:
        unsupported ||
        assumed.includes('service_tier') ||
        (circumstances.region !== null && factor === undefined),
    };
  }

  /** Whether two ids have the same rates for ordinary requests. */
  samePrice(a: string, b: string): boolean {
    return TOKEN_CLASSES.every(
      (name) => this.rate(a, name, ORDINARY)?.rate === this.rate(b, name, ORDINARY)?.rate,
    );
  }

  /** The service tiers in the list for a model, without batch. */
  tiersOf(model: string): string[] {
    return [...(this.#find(model)?.cards.keys() ?? [])].filter((name) => name !== BATCH_TIER);
  }

  /** Input tokens above which a request of a model costs more; undefined: length does not matter. */
  longAbove(model: string): number | undefined {
    const cards = [...(this.#find(model)?.cards.values() ?? [])].flatMap(({ bands }) => bands);
    const boundaries = cards.flatMap(({ band }) => (band > 0 ? [band] : []));
    return boundaries.length > 0 ? Math.min(...boundaries) : undefined;
  }

  /** Whether a tier of a model has rates for long requests of its own. */
  hasLongRates(model: string, tier: string): boolean {
    return (
      this.#find(model)
        ?.cards.get(tier)
        ?.bands.some(({ band }) => band > 0) ?? false
    );
  }

  /** The places with another than the ordinary price, one for each price. */
  regionsOf(model: string): string[] {
    const priced = this.#find(model);
    if (!priced) return [];
    const hasZones = dearerPlacesFactor(priced) !== undefined;
    return [...Object.keys(priced.entry.facts.regionalMultipliers), ...(hasZones ? ['data_zone'] : [])];
  }

  /** The rates of the model's other price periods, earlier and later ones. */
  otherPeriodsOf(model: string): DayRates[] {
    const found = this.#find(model);
    if (!found) return [];
    return this.#book
      .periodsOf(found.entry.provider, found.entry.model)
      .filter((period) => period.fromMicros !== found.fromMicros)
      .flatMap(({ fromMicros, toMicros }) => {
        const atMicros = fromMicros ?? (toMicros === null ? null : toMicros - 1n);
        return atMicros === null ? [] : [new DayRates(this.#book, this.#provider, atMicros)];
      });
  }

  /** The model's price periods in order, and the index of the day's period; undefined: it has no price. */
  periodsOf(model: string): { periods: readonly PeriodView[]; now: number } | undefined {
    const found = this.#find(model);
    if (!found) return undefined;
    const all = this.#book.periodsOf(found.entry.provider, found.entry.model);
    const now = all.findIndex((period) => period.fromMicros === found.fromMicros);
    return now < 0 ? undefined : { periods: all.map((period) => this.#viewOf(period)), now };
  }

  #viewOf({ fromMicros, toMicros, version, laid }: PricedModel): PeriodView {
    const atMicros = fromMicros ?? (toMicros === null ? this.#atMicros : toMicros - 1n);
    return {
      rates: new DayRates(this.#book, this.#provider, atMicros),
      fromDay: version.effectiveFrom,
      toDay: version.effectiveTo,
      contractId: laid?.statement.kind === 'contract' ? laid.statement.id : null,
    };
  }

  /** The provider's other models with a price on the day, by id. */
  otherModelsOf(model: string): string[] {
    const own = this.#find(model)?.entry.model;
    return this.#book
      .entriesOf(this.#provider)
      .map(({ entry }) => entry.model)
      .filter((name) => name !== own && this.#find(name) !== undefined);
  }

  /** The public price collections that list the model, if its price is a list price. */
  priceSourcesOf(model: string): string[] {
    const priced = this.#describedOf(model);
    return priced ? Object.keys(priced.entry.facts.sources).sort() : [];
  }

  /** The rate of a class in one public collection; undefined: it has none for these circumstances. */
  rateOfSource(
    model: string,
    source: string,
    tokenClass: TokenClass,
    circumstances: Circumstances,
  ): Pico | undefined {
    const priced = this.#describedOf(model);
    if (!priced || circumstances.region !== null) return undefined;
    const { serviceTier, contextBand } = expectedRatesOf(priced, circumstances);
    return listedRate(
      priced.entry.facts.sources[source] ?? {},
      sourceKey(serviceTier, contextBand),
      tokenClass,
    );
  }

  /**
   * The list price that the collections describe, if it applies on the day; each collection's prices are known for
   * that period only.
   */
  #describedOf(model: string): PricedModel | undefined {
    const priced = this.#find(model);
    if (!priced || priced.laid) return undefined;
    const { effectiveFrom, effectiveTo } = priced.version;
    const { asOf } = priced.entry.facts;
    const isDescribed =
      (effectiveFrom === null || effectiveFrom <= asOf) && (effectiveTo === null || effectiveTo > asOf);
    return isDescribed ? priced : undefined;
  }

  /** Classes with list rates on which the public collections differ; none of those that a document sets. */
  contestedClasses(model: string): readonly string[] {
    const priced = this.#find(model);
    if (!priced || priced.agreement === 'contract') return [];
    const { conflicts } = priced.entry.facts;
    const terms = hasDocument(priced) ? priced.laid?.statement.terms : undefined;
    return terms ? conflicts.filter((name) => !givesRate(terms, name as TokenClass)) : conflicts;
  }

  /** Whether a document sets the price: a contract, or an own price that names the document with its rates. */
  isDocumented(model: string): boolean {
    const priced = this.#find(model);
    if (!priced) return false;
    const terms = hasDocument(priced) ? priced.laid?.statement.terms : undefined;
    return (
      priced.agreement === 'contract' ||
      (terms !== undefined && givesRate(terms, 'input') && givesRate(terms, 'output'))
    );
  }

  /** Whether the price belongs to a related id because the list lacks this one. */
  isBorrowed(model: string): boolean {
    const priced = this.#find(model);
    return priced !== undefined && priced.matchedBy !== 'exact';
  }

  /** The source of the price, and whether a source contradicts it. */
  provenance(model: string): { priceSource: string; agreement: string; disputed: boolean } {
    const priced = this.#find(model);
    if (!priced) return { priceSource: '', agreement: 'unknown', disputed: true };
    return {
      priceSource: priced.version.source,
      agreement: priced.agreement,
      disputed: priced.disputed,
    };
  }

  /** The applicable price of an id with its sources; undefined: it has none. */
  priceOf(model: string): PricedModel | undefined {
    return this.#find(model);
  }

  #find(model: string): PricedModel | undefined {
    const known = this.#found.get(model);
    if (known !== undefined) return known ?? undefined;
    const found = this.#book.find(this.#provider, model, this.#atMicros);
    this.#found.set(model, found ?? null);
    return found;
  }
}

/** Caches the rates of a price by tier and the rest: a price never changes, and searches request its rates often. */
const REMEMBERED = new WeakMap<PricedModel, Map<string, Map<number, ExpectedRates>>>();

function ratesUnder(priced: PricedModel, circumstances: Circumstances): ExpectedRates {
  const { serviceTier, isBatch, longContext, contextBand } = circumstances;
  const tiers = REMEMBERED.get(priced) ?? new Map<string, Map<number, ExpectedRates>>();
  const known = tiers.get(serviceTier) ?? new Map<number, ExpectedRates>();
  const key = contextBand * 4 + (isBatch ? 2 : 0) + (longContext ? 1 : 0);
  let rates = known.get(key);
  if (!rates) {
    rates = expectedRatesOf(priced, circumstances);
    REMEMBERED.set(priced, tiers.set(serviceTier, known.set(key, rates)));
  }
  return rates;
}

const hasDocument = ({ laid }: PricedModel): boolean =>
  laid?.statement.kind === 'override' && laid.statement.proof !== null;

/** Factor on every rate for a place, scaled by 1e6; undefined: the price data has none. */
function regionFactor(priced: PricedModel, region: string | null): bigint | undefined {
  if (region === null) return undefined;
  const listed = priced.entry.facts.regionalMultipliers[region];
  const factor = listed ?? (AZURE_PLACES.has(region) ? dearerPlacesFactor(priced) : undefined);
  return factor === undefined ? undefined : BigInt(Math.round(factor * Number(FACTOR_SCALE)));
}

/** Places of Azure's meters outside the global deployment, with one price (Azure OpenAI pricing: a tenth more). */
const AZURE_PLACES: ReadonlySet<string> = new Set(['data_zone', 'regional']);
/** The collections list the data zones of the US and of the EU; both must have one factor. */
const ZONES = ['us', 'eu'] as const;
const FACTORS = new WeakMap<PriceModel, { factor: number | undefined }>();

/**
 * Price in a data zone ÷ global price, where the variants of an Azure model have one factor on input and output; undefined:
 * they have not.
 */
function dearerPlacesFactor({ entry }: PricedModel): number | undefined {
  if (entry.provider !== 'azure_openai') return undefined;
  let known = FACTORS.get(entry);
  if (!known) {
    known = { factor: zonesFactor(entry) };
    FACTORS.set(entry, known);
  }
  return known.factor;
}

function zonesFactor({ facts }: PriceModel): number | undefined {
  const global = Object.values(facts.sources)[0] ?? {};
  const factors = ZONES.flatMap((zone) => {
    const variant = facts.variants[zone];
    if (typeof variant !== 'object' || variant === null) return [];
    return (['input', 'output'] as const).map(
      (name) => Number((variant as Record<string, unknown>)[name]) / Number(global[name]),
    );
  });
  const [first] = factors;
  const isOne = first !== undefined && factors.every((one) => Math.abs(one - first) < FACTOR_TOLERANCE);
  return isOne ? Number(first.toFixed(6)) : undefined;
}

/** Prices are listed with few digits, so equal factors may differ by this. */
const FACTOR_TOLERANCE = 1e-3;

const HALVES = 200n;

/** The prices of a provider's day, reduced by an unentered discount, in half percents. */
export class DiscountedRates extends DayRates {
  readonly #left: bigint;

  constructor(book: PriceBook, provider: Provider, dayMicros: bigint, percent: number) {
    super(book, provider, dayMicros);
    this.#left = HALVES - BigInt(Math.round(percent * 2));
  }

  override rate(...asked: Parameters<DayRates['rate']>): ReturnType<DayRates['rate']> {
    const found = super.rate(...asked);
    return found && { ...found, rate: divideHalfEven(found.rate * this.#left, HALVES) };
  }
}
