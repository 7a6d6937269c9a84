import { z } from 'zod';
import type { StoredEvent } from '../../../db/events/storedEvents.js';
import { publicId } from '../../../domain/ids.js';
import {
  decimalFromPico,
  decimalFromScaled,
  type Pico,
  usdNumberFromPico,
  usdNumberOrNull,
} from '../../../domain/money.js';
import { isoFromMicros } from '../../../domain/period.js';
import type { CallToPrice } from '../../../domain/pricing/cost.js';
import {
  type CallExplanation,
  type CostLine,
  type CostSum,
  explainCall,
  type OwnPriceStep,
} from '../../../domain/pricing/explainCall.js';
import { OWN_PRICE_KINDS } from '../../../domain/pricing/ownPrices.js';
import type { PriceBook } from '../../../domain/pricing/priceBook.js';
import { AGREEMENTS, OWN_AGREEMENTS, type PricedModel } from '../../../domain/pricing/pricedModel.js';
import type { PriceStatement } from '../../../domain/pricing/priceStatement.js';
import type { Biller } from '../../../domain/providers.js';

const usd = z.number();
const decimal = z.string().meta({ description: 'Exact decimal', example: '0.0072' });

const lineSchema = z.strictObject({
  token_class: z.string(),
  tokens: z.int(),
  usd_per_mtok: z.number(),
  amount: decimal.meta({ description: 'tokens × rate ÷ 1,000,000 in dollars, unrounded' }),
  basis: z
    .enum(['listed', 'standard_rate', 'multiplier', 'scaled', 'input_rate', 'output_rate', 'half'])
    .meta({ description: 'Why the class has this rate; docs/pricing.md explains each' }),
  assumed: z.boolean().meta({ description: 'No source gives the rate' }),
  sources: z.array(z.string()).meta({ description: 'Sources that list exactly this rate' }),
  disputed: z.boolean().meta({ description: 'Consistent sources differ on this class' }),
});

const sumSchema = z.strictObject({
  service_tier: z.string(),
  context_band: z.int().meta({ description: 'The input length above which these rates hold; 0: any' }),
  lines: z.array(lineSchema),
  sum: decimal.meta({ description: 'The amounts added up, dollars' }),
  multiplier: z.number().meta({ description: '0.5 for batch, else 1' }),
  total: decimal.meta({ description: 'sum × multiplier, rounded half to even once, to 12 decimals' }),
  total_usd: usd,
});

const priceSchema = z.strictObject({
  id: z.string(),
  provider: z.string(),
  model: z.string(),
  canonical_family: z.string(),
  priced_model: z.string().meta({ description: 'The model of the call by which the price was found' }),
  matched_by: z.enum(['exact', 'fine_tuned', 'family']),
  effective_from: z.string().nullable(),
  effective_to: z.string().nullable(),
  source: z.string(),
  agreement: z.enum([...AGREEMENTS, ...OWN_AGREEMENTS]).meta({
    description: 'How far the sources agree; override and contract: the organization’s own price',
  }),
  disputed: z.boolean(),
  dissent: z.array(z.string()).meta({ description: 'Sources that contradict the price' }),
  notes: z.array(z.string()),
  recorded_at: z.string(),
});

const ownPriceSchema = z.strictObject({
  kind: z.enum(OWN_PRICE_KINDS),
  id: z.string(),
  model: z.string(),
  discount_percent: z.number().nullable(),
  effective_from: z.string(),
  effective_to: z.string().nullable(),
  source: z
    .strictObject({ document: z.string(), clause: z.string().nullable(), url: z.string().nullable() })
    .nullable(),
  rates: z.array(
    z.strictObject({
      token_class: z.string(),
      before_usd_per_mtok: z.number().nullable(),
      usd_per_mtok: z.number(),
    }),
  ),
});

/** The calculation of an event's cost. */
export const callCostResponse = z
  .strictObject({
    event_id: z.string(),
    timestamp: z.string(),
    billed_by: z.string(),
    model: z.string(),
    response_model: z.string().nullable(),
    service_tier: z.string().nullable(),
    is_batch: z.boolean(),
    cost_usd: usd,
    cost_source: z.enum(['reported', 'computed', 'unpriced']),
    reported_cost_usd: usd.nullable().meta({ description: 'As the client reported it' }),
    computed_cost_usd: usd.nullable().meta({ description: 'As computed when the call came in' }),
    difference_usd: usd.nullable().meta({ description: 'Reported less computed' }),
    pricing_version: z.string(),
    price: priceSchema.nullable(),
    unpriced_reason: z
      .enum(['unknown_model', 'several_prices', 'no_price_then', 'unknown_biller', 'unmetered', 'blocked'])
      .nullable(),
    price_gaps: z.array(z.string()).meta({ description: 'What is assumed in the sum' }),
    own_prices: z.array(ownPriceSchema).meta({
      description:
        'The organization’s own prices in the sum, override before contract, with each rate before and after',
    }),
    list: sumSchema.nullable().meta({ description: 'The sum without the contract, where one is in force' }),
    computed: sumSchema
      .nullable()
      .meta({ description: 'cost_usd by the prices in force; batch at half of every class' }),
    expected: sumSchema
      .nullable()
      .meta({ description: 'What the provider should charge, by its own batch rates' }),
    repriced: z.boolean().meta({
      description: 'The prices have changed since the call came in: the sum differs from computed_cost_usd',
    }),
  })
  .meta({ id: 'CallCost' });

/** Converts a stored event to the input of the pricing rules. */
export function callOfEvent(event: StoredEvent): CallToPrice {
  return {
    biller: event.billedBy as Biller,
    model: event.responseModel ?? event.model,
    requestedModel: event.model,
    atMicros: event.timestampMicros,
    isBatch: event.isBatch,
    serviceTier: event.serviceTier,
    usage: event.unmetered
      ? null
      : {
          input: event.inputTokens - event.inputAudio,
          cacheRead: event.cacheRead,
          cacheCreation: event.cacheCreation,
          cacheCreation5m: event.cacheCreation5m,
          cacheCreation1h: event.cacheCreation1h,
          output: event.outputTokens - event.outputAudio,
          inputAudio: event.inputAudio,
          outputAudio: event.outputAudio,
          reasoning: event.reasoningTok,
          cached: event.cachedTok,
        },
  };
}

/** The calculation of an event's cost by the prices of `book`, as the API shows it. */
export function presentCallCost(event: StoredEvent, book: PriceBook, nowMicros: bigint) {
  // A blocked call has no cost; its counts are estimates of the call that was not made.
  const isBlocked = event.status === 'blocked';
  const outcome = isBlocked ? ({ reason: 'blocked' } as const) : explainCall(book, callOfEvent(event));
  const explanation = 'reason' in outcome ? undefined : outcome;
  const computed = explanation?.computed.total ?? null;
  return {
    event_id: publicId('evt', event.id),
    timestamp: isoFromMicros(event.timestampMicros),
    billed_by: event.billedBy,
    model: event.model,
    response_model: event.responseModel,
    service_tier: event.serviceTier,
    is_batch: event.isBatch,
    cost_usd: usdNumberFromPico(event.costPico),
    cost_source: event.costSource,
    reported_cost_usd: usdNumberOrNull(event.reportedCostPico),
    computed_cost_usd: usdNumberOrNull(event.computedCostPico),
    difference_usd: usdNumberOrNull(difference(event.reportedCostPico, event.computedCostPico)),
    pricing_version: book.versionAt(nowMicros),
    price: explanation ? presentPrice(explanation) : null,
    unpriced_reason: 'reason' in outcome ? outcome.reason : null,
    price_gaps: explanation ? [...explanation.priceGaps] : [],
    own_prices: explanation ? explanation.ownPrices.map(presentOwnPrice) : [],
    list: explanation && isUnderContract(explanation) ? listSum(event, book) : null,
    computed: explanation ? presentSum(explanation.computed) : null,
    expected: explanation ? presentSum(explanation.expected) : null,
    repriced: !isBlocked && computed !== event.computedCostPico,
  };
}

function isUnderContract({ priced }: CallExplanation): boolean {
  return priced.laid?.statement.kind === 'contract';
}

function listSum(event: StoredEvent, book: PriceBook) {
  const outcome = explainCall(book.list, callOfEvent(event));
  return 'reason' in outcome ? null : presentSum(outcome.computed);
}

function presentOwnPrice({ statement, rates }: OwnPriceStep): z.output<typeof ownPriceSchema> {
  const { terms, proof } = statement;
  return {
    kind: statement.kind === 'contract' ? 'contract' : 'override',
    id: idOfStatement(statement),
    model: statement.model,
    discount_percent: 'discountPercent' in terms ? usdNumberFromPico(terms.discountPercent) : null,
    effective_from: statement.fromDay,
    effective_to: statement.toDay,
    source: proof && { document: proof.document, clause: proof.clause, url: proof.url },
    rates: rates.map(({ tokenClass, before, after }) => ({
      token_class: tokenClass,
      before_usd_per_mtok: usdNumberOrNull(before),
      usd_per_mtok: usdNumberFromPico(after),
    })),
  };
}

const ID_KINDS = { contract: 'ctr', override: 'ovr', import: 'prc' } as const;

function idOfStatement({ kind, id }: PriceStatement): string {
  return publicId(ID_KINDS[kind], id);
}

function presentPrice({ priced, pricedModel, disputed }: CallExplanation) {
  const { entry, version }: PricedModel = priced;
  return {
    id: priced.laid ? idOfStatement(priced.laid.statement) : publicId('prc', version.id),
    provider: entry.provider,
    model: entry.model,
    canonical_family: entry.canonicalFamily,
    priced_model: pricedModel,
    matched_by: priced.matchedBy,
    effective_from: version.effectiveFrom,
    effective_to: version.effectiveTo,
    source: version.source,
    agreement: priced.agreement,
    disputed,
    dissent: [...entry.facts.dissent],
    notes: [...entry.facts.notes],
    recorded_at: isoFromMicros(version.recordedAtMicros),
  };
}

/** Fraction digits of tokens × rate: pico-dollars per million tokens. */
const PRODUCT_DIGITS = 18;

function presentSum(sum: CostSum) {
  const product = sum.lines.reduce((total, line) => total + line.product, 0n);
  return {
    service_tier: sum.serviceTier,
    context_band: sum.contextBand,
    lines: sum.lines.map(presentLine),
    sum: decimalFromScaled(product, PRODUCT_DIGITS),
    multiplier: 1 / sum.divisor,
    total: decimalFromPico(sum.total),
    total_usd: usdNumberFromPico(sum.total),
  };
}

function presentLine(line: CostLine) {
  return {
    token_class: line.tokenClass,
    tokens: line.tokens,
    usd_per_mtok: usdNumberFromPico(line.rate),
    amount: decimalFromScaled(line.product, PRODUCT_DIGITS),
    basis: line.basis,
    assumed: line.assumed,
    sources: [...line.sources],
    disputed: line.disputed,
  };
}

function difference(reported: Pico | null, computed: Pico | null): Pico | null {
  return reported === null || computed === null ? null : reported - computed;
}
