/** Prices that a feed proposes to an organization, and their effect on its calls (docs/pricing.md). */
import { TOKEN_CLASSES, type TokenClass } from '../events/event.js';
import { divideHalfEven, type Pico } from '../money.js';
import type { Biller, Provider } from '../providers.js';
import { cardOfCall, findPrice } from './cost.js';
import type { PriceCollection } from './imports/collection.js';
import {
  type CollectionDifferences,
  type ModelDifference,
  type RateDifference,
  tierName,
} from './imports/differences.js';
import { layBook } from './layBook.js';
import { OWN_RATE_CLASSES, type OwnRateClass } from './ownPrices.js';
import type { PriceBook } from './priceBook.js';
import type { PricedModel, PriceTier } from './pricedModel.js';
import type { PriceStatement } from './priceStatement.js';
import { STANDARD_TIER } from './rateCards.js';

export const PROPOSAL_STATUSES = ['open', 'applied', 'dismissed', 'superseded'] as const;
export type ProposalStatus = (typeof PROPOSAL_STATUSES)[number];

/** The change to the present price: rates that differ and tiers that differ; everything else stays. */
export interface ProposedTerms {
  readonly rates: Readonly<Partial<Record<OwnRateClass, Pico>>>;
  readonly tiers: readonly PriceTier[];
  readonly batchMultiplier: bigint | null;
}

/** A price in a feed that differs from the organization's list price. */
export interface ProposedPrice {
  readonly source: PriceCollection;
  readonly provider: Provider;
  readonly model: string;
  readonly kind: 'new' | 'changed';
  readonly rates: readonly RateDifference[];
  readonly terms: ProposedTerms;
  readonly isJump: boolean;
  /** Reasons to doubt the rates. */
  readonly suspicions: readonly string[];
}

/** Calls of the days that an effect covers, and their cost; null: some of them have no price. */
export interface ProposalEffect {
  readonly calls: number;
  readonly currentPico: Pico | null;
  readonly proposedPico: Pico | null;
}

const isOwnClass = (name: string): name is OwnRateClass => OWN_RATE_CLASSES.some((own) => own === name);

/**
 * The differences that an override can take over. A new id that is also the name of a family is left out, since an
 * override of it would change the prices of the whole family.
 */
export function proposedPrices(
  source: PriceCollection,
  { models }: CollectionDifferences,
  book: PriceBook,
): ProposedPrice[] {
  return models.flatMap((one) => proposedPrice(source, one, book) ?? []);
}

function proposedPrice(
  source: PriceCollection,
  { listed, kind, rates, isJump, suspicions, news }: ModelDifference,
  book: PriceBook,
): ProposedPrice | undefined {
  const { provider } = listed;
  const taken = rates.filter(({ rateClass }) => isOwnClass(rateClass));
  if (taken.length === 0) return undefined;
  const isFamily = book.entriesOf(provider).some(({ entry }) => entry.canonicalFamily === listed.model);
  if (kind === 'new' && (isFamily || listed.rates.input === null || listed.rates.output === null))
    return undefined;
  const changedTiers = new Set(taken.map(({ tier }) => tier));
  return {
    source,
    provider,
    model: book.entryNamed(provider, listed.model)?.entry.model ?? listed.model,
    kind,
    rates: taken,
    terms: {
      rates: Object.fromEntries(Object.entries(news.rates).filter(([name]) => isOwnClass(name))),
      tiers: news.tiers
        .filter((tier) => changedTiers.has(tierName(tier)))
        .map((tier) => ({ ...tier, checkedOn: null })),
      batchMultiplier: news.batchMultiplier,
    },
    isJump,
    suspicions: suspicions.map(({ tier, because }) =>
      tier === STANDARD_TIER ? because : `${tier}: ${because}`,
    ),
  };
}

/**
 * The terms of the override that takes a proposal over. Only the latest override of a model holds, so those of the
 * present one are kept where the proposal changes nothing.
 */
export function termsOverPresent(
  book: PriceBook,
  { provider, model, terms }: Pick<ProposedPrice, 'provider' | 'model' | 'terms'>,
  atMicros: bigint,
): ProposedTerms {
  const laid = book.find(provider, model, atMicros)?.laid?.statement;
  if (laid?.kind !== 'override' || !('rates' in laid.terms)) return terms;
  const { rates, tiers = [], batchMultiplier = null } = laid.terms;
  const kept = tiers.filter((tier) => !terms.tiers.some((own) => tierName(own) === tierName(tier)));
  return {
    rates: { ...rates, ...terms.rates },
    tiers: [...kept, ...terms.tiers],
    batchMultiplier: terms.batchMultiplier ?? batchMultiplier,
  };
}

/** Whether the present rates still are those that the proposal was compared with. */
export function isStillPresent(
  book: PriceBook,
  { provider, model, kind, rates }: Pick<ProposedPrice, 'provider' | 'model' | 'kind' | 'rates'>,
  atMicros: bigint,
): boolean {
  const named = book.entryNamed(provider, model);
  if (kind === 'new') return named === undefined;
  const version = book.find(provider, model, atMicros)?.version;
  return rates.every(({ tier, rateClass, before }) => {
    const place = tier === STANDARD_TIER ? version : version?.tiers.find((one) => tierName(one) === tier);
    return (place?.rates[rateClass] ?? null) === before;
  });
}

/** The list with all these proposals applied; ids name the statements. */
export function bookWithProposals(
  book: PriceBook,
  proposals: readonly (ProposedPrice & { id: string })[],
  at: { day: string; micros: bigint },
): PriceBook {
  const statements = proposals.map((proposal, order): PriceStatement => {
    const { batchMultiplier, ...terms } = termsOverPresent(book, proposal, at.micros);
    return {
      id: proposal.id,
      kind: 'override',
      provider: proposal.provider,
      model: proposal.model,
      terms: { ...terms, ...(batchMultiplier === null ? {} : { batchMultiplier }) },
      fromDay: at.day,
      toDay: null,
      order,
      sourceName: proposal.source,
      recordedAtMicros: at.micros,
      proof: null,
    };
  });
  return statements.length === 0 ? book : layBook(book, statements, book.state);
}

/** Metered calls that one rate card prices. */
export interface CallTotals {
  readonly billedBy: Biller;
  /** The model that answered, else the requested one. */
  readonly model: string;
  readonly requestedModel: string;
  readonly serviceTier: string | null;
  readonly isBatch: boolean;
  /** The whole input of each call exceeds this boundary and no higher one of `boundariesOf`; 0: none. */
  readonly aboveTokens: number;
  readonly calls: number;
  readonly tokens: Readonly<Record<TokenClass, bigint>>;
}

/** Every boundary of long-request rates, ascending. */
export function boundariesOf(books: readonly PriceBook[]): number[] {
  const found = new Set<number>();
  for (const book of books)
    for (const { version } of book.periods())
      for (const { aboveInputTokens } of version.tiers)
        if (aboveInputTokens !== null) found.add(aboveInputTokens);
  return [...found].sort((a, b) => a - b);
}

/** Pico-dollars per million tokens × tokens × 2, so that half of a rate (batch) is whole. */
const PRODUCT_DIVISOR = 2_000_000n;

/**
 * The cost of the calls at the prices of one time, by proposal. Exact sums, rounded once. `after` has the proposals, by
 * the ids of their statements; a contract may stand over them in both.
 */
export function effectsOf(
  totals: readonly CallTotals[],
  { before, after, ids }: { before: PriceBook; after: PriceBook; ids: ReadonlySet<string> },
  atMicros: bigint,
): Map<string, ProposalEffect> {
  const sums = new Map(
    [...ids].map((id) => [id, { calls: 0, current: 0n as bigint | null, proposed: 0n as bigint | null }]),
  );
  for (const total of totals) {
    const call = { ...total, biller: total.billedBy, atMicros, usage: null };
    const proposed = findPrice(after, call)?.priced;
    const sum = proposed && sums.get(proposalUnder(proposed, ids) ?? '');
    if (!sum) continue;
    const present = findPrice(before, call)?.priced;
    sum.calls += total.calls;
    sum.proposed = sum.proposed === null ? null : sum.proposed + productOf(proposed, total);
    sum.current = sum.current === null || !present ? null : sum.current + productOf(present, total);
  }
  return new Map(
    [...sums].map(([id, { calls, current, proposed }]) => [
      id,
      { calls, currentPico: roundedOrNull(current), proposedPico: roundedOrNull(proposed) },
    ]),
  );
}

const roundedOrNull = (product: bigint | null) =>
  product === null ? null : divideHalfEven(product, PRODUCT_DIVISOR);

function proposalUnder({ laid }: PricedModel, ids: ReadonlySet<string>): string | undefined {
  if (!laid) return undefined;
  if (ids.has(laid.statement.id)) return laid.statement.id;
  return laid.base ? proposalUnder(laid.base, ids) : undefined;
}

function productOf(priced: PricedModel, { serviceTier, isBatch, aboveTokens, tokens }: CallTotals): bigint {
  const ofLength = { ...NO_USAGE, input: aboveTokens === 0 ? 0 : aboveTokens + 1 };
  const { card, isBatch: isHalf } = cardOfCall(priced, { serviceTier, isBatch }, ofLength);
  const product = TOKEN_CLASSES.reduce((sum, name) => sum + tokens[name] * card.classes[name].rate, 0n);
  return isHalf ? product : product * 2n;
}

const NO_USAGE = {
  input: 0,
  cacheRead: 0,
  cacheCreation: 0,
  cacheCreation5m: null,
  cacheCreation1h: null,
  output: 0,
  inputAudio: 0,
  outputAudio: 0,
  reasoning: 0,
  cached: 0,
};
