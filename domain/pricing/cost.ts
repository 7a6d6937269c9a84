import {
  type CallRecord,
  type CostSource,
  TOKEN_CLASSES,
  type TokenClass,
  type TokenUsage,
} from '../events/event.js';
import { divideHalfEven, type Pico } from '../money.js';
import type { Biller, Provider } from '../providers.js';
import type { PriceBook } from './priceBook.js';
import type { PricedModel } from './pricedModel.js';
import {
  BATCH_TIER,
  cardFor,
  cardOfBand,
  GAP_SERVICE_TIER,
  normaliseServiceTier,
  type RateBasis,
  type RateCard,
  STANDARD_TIER,
} from './rateCards.js';

/**
 * Computes a call's price from the list prices at its time, exact and rounded once. Rate cards are precomputed,
 * since this runs for every call.
 */

export interface CallToPrice {
  /** The biller of the call; for `unknown` the list price of the model's maker is assumed. */
  biller: Biller;
  /** The model that answered, else the requested one. */
  model: string;
  /** The requested model, used if `model` has no price. */
  requestedModel?: string | null;
  /** Start of the call, microseconds; the price at this time applies. */
  atMicros: bigint;
  /** null: the client sent no usage, so the cost is unknown. */
  usage: TokenUsage | null;
  isBatch: boolean;
  /** As the client sent it. */
  serviceTier: string | null;
}

export interface CallPrice {
  /** null: the model has no price or nothing was metered, which does not mean free. */
  computedPico: Pico | null;
  /** Assumptions in the price: token classes without a rate of their own, or GAP_ names. Empty: none. */
  priceGaps: readonly string[];
  /** The boundary of the applied long-request rates; 0: ordinary rates. */
  contextBand: number;
}

/** The biller is no provider with a known list; the maker's price is used. */
export const GAP_BILLER = 'biller';
/** The answering model has no price; that of the requested model is used. */
export const GAP_MODEL = 'model';

/** Batch costs half of every class in `cost_usd` (docs/decisions/0008). */
const BATCH_DIVISOR = 2n;
const TOKENS_PER_RATE_UNIT = 1_000_000n;

const NO_GAPS: readonly string[] = Object.freeze([]);
const UNPRICED: CallPrice = Object.freeze({ computedPico: null, priceGaps: NO_GAPS, contextBand: 0 });

/** The tokens of a call by price class. Cache writes of unknown lifetime count as ordinary 5-minute writes. */
export function tokensByClass(usage: TokenUsage): Record<TokenClass, number> {
  const longWrite = Math.min(usage.cacheCreation1h ?? 0, usage.cacheCreation);
  return {
    input: usage.input,
    cache_read: usage.cacheRead,
    cache_write_5m: usage.cacheCreation - longWrite,
    cache_write_1h: longWrite,
    output: usage.output,
    input_audio: usage.inputAudio,
    output_audio: usage.outputAudio,
  };
}

/** The whole input of a request, which decides whether long-request rates apply. */
export function wholeInput(usage: TokenUsage): number {
  return usage.input + usage.inputAudio + usage.cacheRead + usage.cacheCreation;
}

/** Batch costs half of the standard rates here; `expectedRates` uses the provider's own batch price. */
export function priceCall(book: PriceBook, call: CallToPrice): CallPrice {
  const usage = call.usage;
  const found = usage === null ? undefined : findPrice(book, call);
  if (usage === null || found === undefined) return UNPRICED;
  const { card, tierGap, isBatch } = cardOfCall(found.priced, call, usage);
  const classes = card.classes;
  const longWrite = Math.min(usage.cacheCreation1h ?? 0, usage.cacheCreation);
  let product = BigInt(usage.input) * classes.input.rate + BigInt(usage.output) * classes.output.rate;
  if (usage.cacheRead > 0) product += BigInt(usage.cacheRead) * classes.cache_read.rate;
  if (usage.cacheCreation > longWrite) {
    product += BigInt(usage.cacheCreation - longWrite) * classes.cache_write_5m.rate;
  }
  if (longWrite > 0) product += BigInt(longWrite) * classes.cache_write_1h.rate;
  if (usage.inputAudio > 0) product += BigInt(usage.inputAudio) * classes.input_audio.rate;
  if (usage.outputAudio > 0) product += BigInt(usage.outputAudio) * classes.output_audio.rate;
  const certain = !card.hasGaps && !tierGap && found.gap === undefined;
  return {
    computedPico: divideHalfEven(
      product,
      isBatch ? TOKENS_PER_RATE_UNIT * BATCH_DIVISOR : TOKENS_PER_RATE_UNIT,
    ),
    priceGaps: certain ? NO_GAPS : gapsOf(card, tokensByClass(usage), tierGap, found.gap),
    contextBand: card.band,
  };
}

/** The price of a call and the assumptions that were needed to find it. */
export function findPrice(
  book: PriceBook,
  call: CallToPrice,
): { priced: PricedModel; gap: string | undefined } | undefined {
  const priced = findBy(book, call.biller, call.model, call.atMicros);
  if (priced) return { priced, gap: call.biller === 'unknown' ? GAP_BILLER : undefined };
  const requested = call.requestedModel;
  if (requested === null || requested === undefined || requested === call.model) return undefined;
  const asked = findBy(book, call.biller, requested, call.atMicros);
  return asked && { priced: asked, gap: call.biller === 'unknown' ? GAP_BILLER : GAP_MODEL };
}

function findBy(book: PriceBook, biller: Biller, model: string, atMicros: bigint): PricedModel | undefined {
  return biller === 'unknown' ? book.findByMaker(model, atMicros) : book.find(biller, model, atMicros);
}

/** The rates for `cost_usd`: of the call's tier and length; for batch the standard ones. */
export function cardOfCall(
  priced: PricedModel,
  call: Pick<CallToPrice, 'isBatch' | 'serviceTier'>,
  usage: TokenUsage,
): { card: RateCard; tierGap: boolean; isBatch: boolean } {
  const named = normaliseServiceTier(priced.entry.provider, call.serviceTier);
  const isBatch = call.isBatch || named === BATCH_TIER;
  const own = isBatch ? undefined : priced.cards.get(named);
  const cards = own ?? standardCardsOf(priced);
  return { card: cardFor(cards, wholeInput(usage)), tierGap: !isBatch && own === undefined, isBatch };
}

/** Names of the assumptions, unique and in a fixed order; only classes that the call uses are named. */
export function gapsOf(
  card: RateCard,
  tokens: Readonly<Record<TokenClass, number>>,
  tierGap: boolean,
  findGap: string | undefined,
): readonly string[] {
  const gaps = new Set<string>();
  if (findGap !== undefined) gaps.add(findGap);
  if (tierGap) gaps.add(GAP_SERVICE_TIER);
  for (const kind of TOKEN_CLASSES) {
    const gap = card.classes[kind].gap;
    if (gap !== undefined && tokens[kind] > 0) gaps.add(gap);
  }
  return [...gaps];
}

/** The provider's right rates by class, in pico-dollars per million tokens, to judge a bill. */
export interface ExpectedRates {
  readonly rates: Readonly<Record<TokenClass, Pico>>;
  readonly bases: Readonly<Record<TokenClass, RateBasis>>;
  /** Classes and GAP_ names that no source supports; they exclude certain findings. */
  readonly assumed: readonly string[];
  readonly serviceTier: string;
  readonly contextBand: number;
  readonly priced: PricedModel;
}

export interface RateCircumstances {
  serviceTier?: string | null;
  isBatch?: boolean;
  /** The bill states that it charges long-request rates, without a boundary. */
  longContext?: boolean;
  /** The boundary of the observed cell; 0 or absent: ordinary rates unless `longContext` is true. */
  contextBand?: number;
}

/** Rates to judge a bill: the provider's batch rates, else its batch factor, else half (docs/decisions/0008). */
export function expectedRates(
  book: PriceBook,
  provider: Provider,
  model: string,
  atMicros: bigint,
  circumstances: RateCircumstances,
): ExpectedRates | undefined {
  const priced = book.find(provider, model, atMicros);
  return priced && expectedRatesOf(priced, circumstances);
}

/** `expectedRates` of a known price. */
export function expectedRatesOf(priced: PricedModel, circumstances: RateCircumstances): ExpectedRates {
  const named = normaliseServiceTier(priced.entry.provider, circumstances.serviceTier);
  const wanted = circumstances.isBatch ? BATCH_TIER : named;
  const own = priced.cards.get(wanted);
  const cards = own ?? standardCardsOf(priced);
  const band = circumstances.contextBand ?? 0;
  const lowestBand = cards.bands.at(-1);
  const card = band === 0 && circumstances.longContext && lowestBand ? lowestBand : cardOfBand(cards, band);
  const assumed = new Set<string>();
  if (!own) assumed.add(GAP_SERVICE_TIER);
  const rates = {} as Record<TokenClass, Pico>;
  const bases = {} as Record<TokenClass, RateBasis>;
  for (const kind of TOKEN_CLASSES) {
    const { rate, basis, gap } = card.classes[kind];
    rates[kind] = rate;
    bases[kind] = basis;
    if (gap !== undefined) assumed.add(gap);
  }
  return {
    rates,
    bases,
    assumed: [...assumed],
    serviceTier: card.tier,
    contextBand: card.band,
    priced,
  };
}

function standardCardsOf(priced: PricedModel) {
  const cards = priced.cards.get(STANDARD_TIER);
  if (!cards) throw new RangeError('a price period has standard rates');
  return cards;
}

/** The cost fields of an event. */
export interface EventPrice {
  costPico: Pico;
  costSource: CostSource;
  price: CallPrice;
}

/** Whether two prices are equal. A new price does not change a reported cost (docs/decisions/0013). */
export function isSamePrice(one: EventPrice, other: EventPrice): boolean {
  return (
    one.costPico === other.costPico &&
    one.costSource === other.costSource &&
    one.price.computedPico === other.price.computedPico &&
    one.price.contextBand === other.price.contextBand &&
    sameNames(one.price.priceGaps, other.price.priceGaps)
  );
}

function sameNames(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((name, index) => name === other[index]);
}

/**
 * Whether a call's consumption is unreported: it has no usage and neither failed nor was blocked. Cancelled
 * streams are billed too.
 */
export function isUnmetered(call: CallRecord): boolean {
  return call.usage === null && (call.status === 'ok' || call.status === 'cancelled');
}

/** The reported cost, else the computed one, else 0 and unpriced. Unused and blocked calls cost nothing. */
export function costOf(event: {
  call: Pick<CallRecord, 'status' | 'reportedCostPico'>;
  price: Pick<CallPrice, 'computedPico'>;
}): {
  pico: bigint;
  source: 'reported' | 'computed' | 'unpriced';
} {
  if (event.call.status === 'blocked') return { pico: 0n, source: 'computed' };
  if (event.call.reportedCostPico !== null) return { pico: event.call.reportedCostPico, source: 'reported' };
  if (event.price.computedPico !== null) return { pico: event.price.computedPico, source: 'computed' };
  return { pico: 0n, source: 'unpriced' };
}

/**
 * A call that was blocked, or failed without usage, costs nothing. The cost of any other call without usage is
 * unknown.
 */
const FREE: CallPrice = { computedPico: 0n, priceGaps: [], contextBand: 0 };
const UNKNOWN: CallPrice = { computedPico: null, priceGaps: [], contextBand: 0 };

/** The price of a call at its time; absent usage does not mean zero tokens. */
export function priceOf(call: CallRecord, prices: PriceBook): CallPrice {
  if (call.status === 'blocked') return FREE;
  if (call.usage === null) return isUnmetered(call) ? UNKNOWN : FREE;
  return priceCall(prices, {
    biller: call.billedBy,
    model: call.responseModel ?? call.model,
    requestedModel: call.responseModel === null ? null : call.model,
    atMicros: call.startMicros,
    usage: call.usage,
    isBatch: call.isBatch,
    serviceTier: call.serviceTier,
  });
}
