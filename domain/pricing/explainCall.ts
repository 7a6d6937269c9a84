import { TOKEN_CLASSES, type TokenClass } from '../events/event.js';
import { divideHalfEven, type Pico } from '../money.js';
import {
  type CallToPrice,
  cardOfCall,
  findPrice,
  GAP_MODEL,
  gapsOf,
  tokensByClass,
  wholeInput,
} from './cost.js';
import type { MissingPrice, PriceBook } from './priceBook.js';
import type { PricedModel } from './pricedModel.js';
import { givesRate, type PriceStatement, sourcesOfRate } from './priceStatement.js';
import {
  BATCH_TIER,
  cardFor,
  cardOfBand,
  type RateBasis,
  type RateCard,
  STANDARD_TIER,
} from './rateCards.js';

/** The calculation of a cost, with the source and start of each rate, to check by hand. */

export interface CostLine {
  readonly tokenClass: TokenClass;
  readonly tokens: number;
  /** Pico-dollars per million tokens. */
  readonly rate: Pico;
  readonly basis: RateBasis;
  /** The rate is assumed: no source lists it. */
  readonly assumed: boolean;
  /** The sources that list exactly this rate, by their keys in data/README.md; empty for an assumed or derived rate. */
  readonly sources: readonly string[];
  /** Consistent sources differ on this class by more than 1 %. */
  readonly disputed: boolean;
  /** tokens × rate, unrounded: pico-dollars × 1e6. */
  readonly product: bigint;
}

/** `total` is the sum of the products, divided by `divisor` and rounded once. */
export interface CostSum {
  readonly lines: readonly CostLine[];
  readonly serviceTier: string;
  readonly contextBand: number;
  /** Divisor of the sum before rounding: 2 for the batch price of `cost_usd`. */
  readonly divisor: 1 | 2;
  readonly total: Pico;
}

/** An own price in force, by class: the rates before and after it. */
export interface OwnPriceStep {
  readonly statement: PriceStatement;
  readonly rates: readonly {
    readonly tokenClass: TokenClass;
    readonly before: Pico | null;
    readonly after: Pico;
  }[];
}

export interface CallExplanation {
  readonly priced: PricedModel;
  /** The organization's own prices in the price, the override before the contract; empty for a list price. */
  readonly ownPrices: readonly OwnPriceStep[];
  /** The model of the call whose price was found. */
  readonly pricedModel: string;
  /** `cost_usd` by list prices: half of every class for batch. */
  readonly computed: CostSum;
  /** The provider's right charge; it differs from `computed` if the provider's batch rate is not half. */
  readonly expected: CostSum;
  readonly priceGaps: readonly string[];
  readonly disputed: boolean;
}

/** The reason why a call has no price. */
export interface UnpricedExplanation {
  readonly reason: MissingPrice | 'unknown_biller' | 'unmetered';
}

/** The total of `computed` equals `priceCall(...).computedPico`. */
export function explainCall(book: PriceBook, call: CallToPrice): CallExplanation | UnpricedExplanation {
  const usage = call.usage;
  if (usage === null) return { reason: 'unmetered' };
  const found = findPrice(book, call);
  if (!found) return { reason: reasonOf(book, call) };
  const { priced, gap } = found;
  const tokens = tokensByClass(usage);
  const { card, tierGap, isBatch } = cardOfCall(priced, call, usage);
  const divisor = isBatch ? 2 : 1;
  const lines = linesOf(priced, card, tokens);
  const expectedCard = isBatch ? batchCardOf(priced, wholeInput(usage)) : card;
  const expectedLines = linesOf(priced, expectedCard, tokens);
  return {
    priced,
    ownPrices: ownPricesOf(priced, lines, card),
    pricedModel: gap === GAP_MODEL ? (call.requestedModel ?? call.model) : call.model,
    computed: sumOf(lines, card, divisor),
    expected: sumOf(expectedLines, expectedCard, 1),
    priceGaps: gapsOf(card, tokens, tierGap, gap),
    disputed: priced.disputed,
  };
}

function reasonOf(book: PriceBook, call: CallToPrice): UnpricedExplanation['reason'] {
  if (call.biller === 'unknown') return 'unknown_biller';
  return book.whyMissing(call.biller, call.model, call.atMicros) ?? 'unknown_model';
}

function ownPricesOf(
  priced: PricedModel,
  lines: readonly CostLine[],
  card: Pick<RateCard, 'tier' | 'band'>,
): OwnPriceStep[] {
  const { laid } = priced;
  if (!laid) return [];
  const { tier, band } = card;
  const earlier = laid.base ? ownPricesOf(laid.base, lines, card) : [];
  if (laid.statement.kind === 'import') return earlier;
  const rateIn = (one: PricedModel | null, tokenClass: TokenClass): Pico | null => {
    const cards = one?.cards.get(tier) ?? one?.cards.get(STANDARD_TIER);
    return cards ? cardOfBand(cards, band).classes[tokenClass].rate : null;
  };
  const rates = lines.map(({ tokenClass }) => ({
    tokenClass,
    before: rateIn(laid.base, tokenClass),
    after: rateIn(priced, tokenClass) ?? 0n,
  }));
  return [...earlier, { statement: laid.statement, rates }];
}

function batchCardOf(priced: PricedModel, wholeInputTokens: number): RateCard {
  const batch = priced.cards.get(BATCH_TIER);
  if (!batch) throw new RangeError('a price period has batch rates, listed or derived');
  return cardFor(batch, wholeInputTokens);
}

function linesOf(
  priced: PricedModel,
  card: RateCard,
  tokens: Readonly<Record<TokenClass, number>>,
): CostLine[] {
  return TOKEN_CLASSES.filter((kind) => tokens[kind] > 0).map((tokenClass) => {
    const classRate = card.classes[tokenClass];
    return {
      tokenClass,
      tokens: tokens[tokenClass],
      rate: classRate.rate,
      basis: classRate.basis,
      assumed: classRate.gap !== undefined,
      sources: sourcesOfRate(priced, card, tokenClass, classRate),
      disputed: !isGivenByOwn(priced, tokenClass) && priced.entry.facts.conflicts.includes(tokenClass),
      product: BigInt(tokens[tokenClass]) * classRate.rate,
    };
  });
}

/** Whether an own price sets the class's rate, so that the sources of the list rate do not matter. */
function isGivenByOwn({ laid }: PricedModel, tokenClass: TokenClass): boolean {
  if (!laid) return false;
  return (
    givesRate(laid.statement.terms, tokenClass) || (laid.base ? isGivenByOwn(laid.base, tokenClass) : false)
  );
}

function sumOf(lines: readonly CostLine[], card: RateCard, divisor: 1 | 2): CostSum {
  const product = lines.reduce((sum, line) => sum + line.product, 0n);
  const total = divideHalfEven(product, 1_000_000n * BigInt(divisor));
  return { lines, serviceTier: card.tier, contextBand: card.band, divisor, total };
}
