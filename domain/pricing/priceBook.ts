/** Immutable list prices in memory; data/README.md, "Finding a price", has the rules. */
import { compare } from '../compare.js';
import { PROVIDERS, type Provider } from '../providers.js';
import {
  type EnteredModel,
  exactIds,
  familyNames,
  fineTunedBase,
  holdsAt,
  matchedAs,
  type PricedModel,
  type PriceVersion,
  prefixProvider,
  priceWith,
  type RecordedPriceModel,
  samePrice,
} from './pricedModel.js';
import { priceVersionName } from './priceFile.js';

/** Reasons why an id has no price. */
export type MissingPrice = 'unknown_model' | 'several_prices' | 'no_price_then';

export interface PriceState {
  readonly updatedAtMicros: bigint;
  /** Hex digest over all entries and rates. */
  readonly contentHash: string;
}

type Resolution = readonly PricedModel[] | Exclude<MissingPrice, 'no_price_then'>;

/** Maximum cached resolutions of ids before a book clears its cache; each organization can have a book. */
const REMEMBERED_IDS_MAX = 20_000;
const REMEMBERED_IDS_OWN_MAX = 2_000;

export class PriceBook {
  readonly version: string;
  readonly state: PriceState;
  /** Entries by provider, then model. */
  readonly models: readonly RecordedPriceModel[];
  readonly #entered = new Map<Provider, readonly EnteredModel[]>();
  readonly #byId = new Map<Provider, Map<string, readonly PricedModel[]>>();
  readonly #byFamily = new Map<Provider, Map<string, (readonly PricedModel[])[]>>();
  readonly #makersById = new Map<string, Set<Provider>>();
  readonly #makersByFamily = new Map<string, Set<Provider>>();
  readonly #boundaries: readonly bigint[];
  readonly #resolved = new Map<Provider, Map<string, Resolution>>();
  readonly #inferred = new Map<string, Provider | undefined>();
  #remembered = 0;
  readonly #list: PriceBook | undefined;

  private constructor(entered: readonly EnteredModel[], state: PriceState, list?: PriceBook) {
    this.state = state;
    this.#list = list;
    this.version = priceVersionName(state.updatedAtMicros, state.contentHash);
    const sorted = [...entered].sort(
      (a, b) => compare(a.entry.provider, b.entry.provider) || compare(a.entry.model, b.entry.model),
    );
    this.models = sorted.map(({ entry }) => entry);
    for (const { entry, periods } of sorted) this.#enter(entry, periods);
    for (const provider of PROVIDERS) {
      this.#entered.set(
        provider,
        sorted.filter(({ entry }) => entry.provider === provider),
      );
    }
    this.#boundaries = boundariesOf(sorted.flatMap(({ periods }) => periods));
  }

  /** From entries and their current periods; `state` names the version and may be absent in tests and proposals. */
  static from(
    models: readonly RecordedPriceModel[],
    versions: readonly PriceVersion[],
    state: PriceState = { updatedAtMicros: 0n, contentHash: '00000000' },
  ): PriceBook {
    const byModel = new Map<string, PriceVersion[]>();
    for (const version of versions) {
      entryOf(byModel, modelKey(version.provider, version.model), () => []).push(version);
    }
    const entered = models.map((entry) => ({
      entry,
      periods: (byModel.get(modelKey(entry.provider, entry.model)) ?? [])
        .sort((a, b) => compare(a.effectiveFrom ?? '', b.effectiveFrom ?? ''))
        .map((version) => priceWith(entry, version)),
    }));
    return new PriceBook(entered, state);
  }

  /** A book with changed and added entries; the rest is shared. `list` is the book without the contract. */
  with(changed: readonly EnteredModel[], state: PriceState, list?: PriceBook): PriceBook {
    const byKey = new Map(this.entries().map((one) => [modelKey(one.entry.provider, one.entry.model), one]));
    for (const one of changed) byKey.set(modelKey(one.entry.provider, one.entry.model), one);
    return new PriceBook([...byKey.values()], state, list);
  }

  entries(): EnteredModel[] {
    return PROVIDERS.flatMap((provider) => this.entriesOf(provider));
  }

  entriesOf(provider: Provider): readonly EnteredModel[] {
    return this.#entered.get(provider) ?? [];
  }

  /** The entry that lists this id in one of the forms of an exact match. */
  entryNamed(provider: Provider, modelId: string): EnteredModel | undefined {
    const ids = this.#byId.get(provider);
    for (const id of exactIds(provider, modelId)) {
      const periods = ids?.get(id);
      const entry = periods?.[0]?.entry;
      if (periods && entry) return { entry, periods };
    }
    return undefined;
  }

  #enter(entry: RecordedPriceModel, priced: readonly PricedModel[]): void {
    const ids = entryOf(this.#byId, entry.provider, () => new Map<string, readonly PricedModel[]>());
    for (const id of [entry.model, ...entry.aliases]) {
      ids.set(id, priced);
      if (entry.firstParty) entryOf(this.#makersById, id, () => new Set<Provider>()).add(entry.provider);
    }
    const families = entryOf(
      this.#byFamily,
      entry.provider,
      () => new Map<string, (readonly PricedModel[])[]>(),
    );
    entryOf(families, entry.canonicalFamily, () => []).push(priced);
    if (entry.firstParty) {
      entryOf(this.#makersByFamily, entry.canonicalFamily, () => new Set<Provider>()).add(entry.provider);
    }
  }

  /**
   * The prices without the organization's contract: list prices and overrides. A book without a contract returns
   * itself.
   */
  get list(): PriceBook {
    return this.#list ?? this;
  }

  /** The price of a model at a provider at a time; undefined: it has none (see `whyMissing`). */
  find(provider: Provider, modelId: string, atMicros: bigint): PricedModel | undefined {
    const resolution = this.#resolve(provider, modelId);
    if (typeof resolution === 'string') return undefined;
    for (const priced of resolution) if (holdsAt(priced, atMicros)) return priced;
    return undefined;
  }

  /** The reason why `find` returns undefined; undefined if it returns a price. */
  whyMissing(provider: Provider, modelId: string, atMicros: bigint): MissingPrice | undefined {
    const resolution = this.#resolve(provider, modelId);
    if (typeof resolution === 'string') return resolution;
    return resolution.some((priced) => holdsAt(priced, atMicros)) ? undefined : 'no_price_then';
  }

  /** For a gateway's call: the list price of the model's maker, found by the model or the `maker/` prefix. */
  findByMaker(modelId: string, atMicros: bigint): PricedModel | undefined {
    const maker = this.inferProvider(modelId);
    if (maker) return this.find(maker, modelId, atMicros);
    const prefixed = prefixProvider(modelId);
    return prefixed && this.find(prefixed.provider, prefixed.bareId, atMicros);
  }

  /**
   * The only provider that lists the id or its family as its own; undefined: none or several do
   * (docs/decisions/0008).
   */
  inferProvider(modelId: string): Provider | undefined {
    if (this.#inferred.has(modelId)) return this.#inferred.get(modelId);
    const provider = this.#inferAfresh(modelId);
    this.#makeRoom();
    this.#inferred.set(modelId, provider);
    return provider;
  }

  /** The name to compare with a bill: the family, else the id, since both sides may use a date, alias or region. */
  canonicalModel(provider: Provider, modelId: string): string {
    const ids = this.#byId.get(provider);
    const listed = exactIds(provider, modelId).find((id) => ids?.has(id));
    const family = listed === undefined ? undefined : ids?.get(listed)?.[0]?.entry.canonicalFamily;
    return family ?? this.#familyOf(provider, modelId) ?? modelId;
  }

  /** Every past, present and future price by provider, model and start. */
  *periods(): IterableIterator<PricedModel> {
    for (const entry of this.models) yield* this.#byId.get(entry.provider)?.get(entry.model) ?? [];
  }

  /** Every price of one entry, oldest first. */
  periodsOf(provider: Provider, model: string): readonly PricedModel[] {
    return this.#byId.get(provider)?.get(model) ?? [];
  }

  /**
   * The version name of the prices at a time. It changes when a dated price takes effect, which needs no new
   * record.
   */
  versionAt(nowMicros: bigint): string {
    let latest = this.state.updatedAtMicros;
    for (const boundary of this.#boundaries)
      if (boundary > latest && boundary <= nowMicros) latest = boundary;
    return priceVersionName(latest, this.state.contentHash);
  }

  #resolve(provider: Provider, modelId: string): Resolution {
    const known = entryOf(this.#resolved, provider, () => new Map<string, Resolution>());
    const remembered = known.get(modelId);
    if (remembered !== undefined) return remembered;
    const resolution = this.#resolveAfresh(provider, modelId);
    this.#makeRoom();
    known.set(modelId, resolution);
    return resolution;
  }

  #resolveAfresh(provider: Provider, modelId: string): Resolution {
    const ids = this.#byId.get(provider);
    for (const id of exactIds(provider, modelId)) {
      const priced = ids?.get(id);
      if (priced) return priced;
    }
    const base = fineTunedBase(modelId.trim());
    const fineTuned = base === undefined ? undefined : ids?.get(base);
    if (fineTuned) return matchedAs(fineTuned, 'fine_tuned');
    const family = this.#familyOf(provider, modelId);
    const entries = family === undefined ? [] : (this.#byFamily.get(provider)?.get(family) ?? []);
    const [first] = entries;
    if (!first) return 'unknown_model';
    return entries.every((other) => samePrice(first, other)) ? matchedAs(first, 'family') : 'several_prices';
  }

  #familyOf(provider: Provider, modelId: string): string | undefined {
    const families = this.#byFamily.get(provider);
    return familyNames(provider, modelId).find((name) => families?.has(name));
  }

  #inferAfresh(modelId: string): Provider | undefined {
    const id = modelId.trim();
    const candidates = [id, id.toLowerCase(), id.toLowerCase().replace(/^models\//, ''), fineTunedBase(id)];
    for (const candidate of candidates) {
      const makers = candidate === undefined ? undefined : this.#makersById.get(candidate);
      if (makers) return onlyOne(makers);
    }
    const byFamily = PROVIDERS.filter((maker) =>
      familyNames(maker, id).some((name) => this.#makersByFamily.get(name)?.has(maker)),
    );
    return onlyOne(new Set(byFamily));
  }

  /** Clears the full cache. Clients choose model ids, so the cache must be bounded. */
  #makeRoom(): void {
    this.#remembered += 1;
    if (this.#remembered <= (this.#list ? REMEMBERED_IDS_OWN_MAX : REMEMBERED_IDS_MAX)) return;
    this.#remembered = 1;
    this.#inferred.clear();
    for (const known of this.#resolved.values()) known.clear();
  }
}

function boundariesOf(periods: readonly PricedModel[]): bigint[] {
  return [...new Set(periods.flatMap(({ fromMicros, toMicros }) => [fromMicros, toMicros]))].filter(
    (micros) => micros !== null,
  );
}

function onlyOne(providers: ReadonlySet<Provider>): Provider | undefined {
  const [first] = providers;
  return providers.size === 1 ? first : undefined;
}

function modelKey(provider: Provider, model: string): string {
  return `${provider}\n${model}`;
}

function entryOf<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = make();
  map.set(key, made);
  return made;
}
