import { TOKEN_CLASSES, type TokenClass } from '../events/event.js';
import { divideHalfEven, type Pico } from '../money.js';
import type { Provider } from '../providers.js';
import type { PricePeriod, PriceTier, Rates } from './pricedModel.js';

/** The rates of a period for every tier and length, computed once (docs/decisions/0008). */

/**
 * The origin of a class's rate:
 * - `listed`: the sources list it for this tier and request length;
 * - `standard_rate`: the tier does not list the class, and the standard service's rate is then billed;
 * - `multiplier`: the standard rate times the price's batch factor;
 * - `scaled`: the tier lists no rate for long requests; its ordinary rate, raised as the standard rate is raised;
 * - `input_rate`, `output_rate`: no source lists a rate for the class; the rate of uncached text is used;
 * - `half`: no source lists batch rates; half of the standard rate.
 */
export type RateBasis =
  | 'listed'
  | 'standard_rate'
  | 'multiplier'
  | 'scaled'
  | 'input_rate'
  | 'output_rate'
  | 'half';

export interface ClassRate {
  readonly rate: Pico;
  readonly basis: RateBasis;
  /** The assumption's name in `price_gaps`; undefined: the sources support the rate. */
  readonly gap: string | undefined;
}

export interface RateCard {
  /** The service tier of these rates in the price data. */
  readonly tier: string;
  /** The whole input must exceed this many tokens; 0: the rates of ordinary requests. */
  readonly band: number;
  readonly classes: Readonly<Record<TokenClass, ClassRate>>;
  /** Whether some class's rate is assumed. */
  readonly hasGaps: boolean;
}

/** A tier's cards: the ordinary one, and those for long requests by descending boundary. */
export interface TierCards {
  readonly flat: RateCard;
  readonly bands: readonly RateCard[];
}

/** All cards of a period by service tier; `standard` and `batch` always exist. */
export type PeriodCards = ReadonlyMap<string, TierCards>;

/** Gap names that are not token classes. */
export const GAP_SERVICE_TIER = 'service_tier';
export const GAP_LONG_CONTEXT = 'long_context';
export const GAP_BATCH = 'batch';

/** Providers whose priority tier has one rate for any length unless it lists another (data/README.md). */
const FLAT_PRIORITY: ReadonlySet<Provider> = new Set(['openai', 'azure_openai']);
const PRIORITY_TIER = 'priority';
const MULTIPLIER_SCALE = 1_000_000_000_000n;

/**
 * Computes the cards of a period, which always has an input and an output rate; other periods are refused when
 * read.
 */
export function cardsOf(provider: Provider, period: PricePeriod): PeriodCards {
  const standard = standardCards(period);
  const cards = new Map<string, TierCards>([[STANDARD_TIER, standard]]);
  for (const name of new Set(period.tiers.map((tier) => tier.serviceTier))) {
    if (name !== null) cards.set(name, tierCards(provider, name, period, standard));
  }
  if (!cards.has(BATCH_TIER)) cards.set(BATCH_TIER, batchCardsWithoutTier(period, standard));
  return cards;
}

/** The card for a request: of the highest boundary that its whole input exceeds. */
export function cardFor(cards: TierCards, wholeInputTokens: number): RateCard {
  for (const card of cards.bands) if (wholeInputTokens > card.band) return card;
  return cards.flat;
}

/** The card of a boundary in a bill or cell; the ordinary card for 0 or an unknown boundary. */
export function cardOfBand(cards: TierCards, band: number): RateCard {
  return cards.bands.find((card) => card.band === band) ?? cards.flat;
}

function standardCards(period: PricePeriod): TierCards {
  const flat = cardFrom(STANDARD_TIER, 0, (name) => listed(period.rates, name));
  const bands = bandTiers(period, null).map((tier) =>
    cardFrom(STANDARD_TIER, tier.aboveInputTokens ?? 0, (name) =>
      firstKnown(listed(tier.rates, name), fallBack(period.rates[name])),
    ),
  );
  return { flat, bands };
}

function tierCards(provider: Provider, name: string, period: PricePeriod, standard: TierCards): TierCards {
  const flatTier = period.tiers.find((tier) => tier.serviceTier === name && tier.aboveInputTokens === null);
  const own = bandTiers(period, name);
  const flat = cardFrom(name, 0, (kind) =>
    flatTier
      ? firstKnown(listed(flatTier.rates, kind), fallBack(knownRate(standard.flat, kind)))
      : { rate: standard.flat.classes[kind].rate, basis: 'standard_rate', gap: GAP_SERVICE_TIER },
  );
  const flatHolds = name === PRIORITY_TIER && FLAT_PRIORITY.has(provider);
  const boundaries = new Set(own.map((tier) => tier.aboveInputTokens ?? 0));
  if (!flatHolds) for (const card of standard.bands) boundaries.add(card.band);
  const bands = [...boundaries]
    .sort((a, b) => b - a)
    .map((band) => {
      const long = cardFor(standard, band + 1);
      const tier = own.find((candidate) => candidate.aboveInputTokens === band);
      if (tier) {
        return cardFrom(name, band, (kind) =>
          firstKnown(listed(tier.rates, kind), fallBack(knownRate(long, kind))),
        );
      }
      return cardFrom(name, band, (kind) => scaled(name, kind, flat, standard.flat, long));
    });
  return { flat, bands };
}

/** Long-request rates of a tier: its ordinary rate × (standard long ÷ standard ordinary); assumed except for batch. */
function scaled(
  tier: string,
  kind: TokenClass,
  flat: RateCard,
  standardFlat: RateCard,
  standardLong: RateCard,
): ClassRate | undefined {
  const own = knownRate(flat, kind);
  const from = knownRate(standardFlat, kind);
  const to = knownRate(standardLong, kind);
  if (own === null || from === null || to === null) return undefined;
  return {
    rate: from === 0n ? own : divideHalfEven(own * to, from),
    basis: tier === BATCH_TIER ? 'multiplier' : 'scaled',
    gap: tier === BATCH_TIER ? undefined : GAP_LONG_CONTEXT,
  };
}

function batchCardsWithoutTier(period: PricePeriod, standard: TierCards): TierCards {
  const factor = period.batchMultiplier;
  const discount = (card: RateCard): RateCard =>
    cardFrom(BATCH_TIER, card.band, (kind) => {
      const known = knownRate(card, kind);
      if (known === null) return undefined;
      return factor === null
        ? { rate: divideHalfEven(known, 2n), basis: 'half', gap: GAP_BATCH }
        : { rate: divideHalfEven(known * factor, MULTIPLIER_SCALE), basis: 'multiplier', gap: undefined };
    });
  return { flat: discount(standard.flat), bands: standard.bands.map(discount) };
}

function bandTiers(period: PricePeriod, serviceTier: string | null): PriceTier[] {
  return period.tiers
    .filter((tier) => tier.serviceTier === serviceTier && tier.aboveInputTokens !== null)
    .sort((a, b) => (b.aboveInputTokens ?? 0) - (a.aboveInputTokens ?? 0));
}

/** A rate that the sources support, directly or by the rule for classes that a tier does not list. */
function knownRate(card: RateCard, kind: TokenClass): Pico | null {
  const { rate, basis } = card.classes[kind];
  return basis === 'input_rate' || basis === 'output_rate' ? null : rate;
}

export function listed(rates: Rates, kind: TokenClass): ClassRate | undefined {
  const rate = rates[kind];
  return rate === null ? undefined : { rate, basis: 'listed', gap: undefined };
}

function fallBack(rate: Pico | null): ClassRate | undefined {
  return rate === null ? undefined : { rate, basis: 'standard_rate', gap: undefined };
}

function firstKnown(...candidates: (ClassRate | undefined)[]): ClassRate | undefined {
  return candidates.find((candidate) => candidate !== undefined);
}

/**
 * Unknown rates are replaced by the text rate and named as gaps, since unknown does not mean free
 * (docs/decisions/0008).
 */
function cardFrom(tier: string, band: number, rateOf: (kind: TokenClass) => ClassRate | undefined): RateCard {
  const input = rateOf('input');
  const output = rateOf('output');
  if (!input || !output) throw new RangeError('a price period has an input and an output rate');
  const classes = {} as Record<TokenClass, ClassRate>;
  for (const kind of TOKEN_CLASSES) {
    const isOutput = kind === 'output' || kind === 'output_audio';
    classes[kind] = rateOf(kind) ?? {
      rate: isOutput ? output.rate : input.rate,
      basis: isOutput ? 'output_rate' : 'input_rate',
      gap: kind,
    };
  }
  const hasGaps = TOKEN_CLASSES.some((kind) => classes[kind].gap !== undefined);
  return { tier, band, classes, hasGaps };
}

/** Words for service tiers → the price data's names, `standard`, and `committed` for reserved capacity. */
const TIER_WORDS: Readonly<Record<string, string>> = {
  // The ordinary service, and requests that leave the choice to the provider.
  default: 'standard',
  auto: 'standard',
  standard: 'standard',
  standard_only: 'standard',
  on_demand: 'standard',
  unspecified: 'standard',
  // Traffic types of Vertex AI.
  on_demand_flex: 'flex',
  on_demand_priority: 'priority',
  // Reserved capacity: OpenAI scale tier, Azure and Vertex AI provisioned throughput, Bedrock reserved.
  scale: 'committed',
  reserved: 'committed',
  provisioned: 'committed',
  provisioned_throughput: 'committed',
  ptu: 'committed',
};

/** Providers whose `fast` is the `priority` tier of the price data. */
const FAST_IS_PRIORITY: ReadonlySet<Provider> = new Set(['openai', 'azure_openai']);

export const STANDARD_TIER = 'standard';
export const BATCH_TIER = 'batch';

/** Ignores case, blanks, `-` and `_`. Returns an unknown word, which has no price. */
export function normaliseServiceTier(provider: Provider, word: string | null | undefined): string {
  if (word === null || word === undefined) return STANDARD_TIER;
  const direct = KNOWN_SPELLINGS.get(word);
  const name = direct ?? spellTier(word);
  return name === 'fast' && FAST_IS_PRIORITY.has(provider) ? 'priority' : name;
}

/** Whether a client's word means the ordinary service at every provider. */
export function isStandardTier(word: string): boolean {
  return (KNOWN_SPELLINGS.get(word) ?? spellTier(word)) === STANDARD_TIER;
}

function spellTier(word: string): string {
  const name = word
    .trim()
    .toLowerCase()
    .replace(/^service_tier_/, '')
    .replace(/[\s-]+/g, '_');
  if (name === '') return STANDARD_TIER;
  return TIER_WORDS[name] ?? name;
}

/** The usual spellings, so that pricing most calls builds no new text. */
const KNOWN_SPELLINGS: ReadonlyMap<string, string> = new Map([
  ...Object.entries(TIER_WORDS),
  ...['batch', 'flex', 'priority', 'fast', 'ultrafast', 'decisions'].map((name) => [name, name] as const),
]);
