import { z } from 'zod';
import type { UnpricedModel } from '../../../db/pricing/unpriced.js';
import { publicId } from '../../../domain/ids.js';
import { usdNumberFromPico, usdNumberOrNull } from '../../../domain/money.js';
import { isoFromMicros } from '../../../domain/period.js';
import type { MissingPrice, PriceBook } from '../../../domain/pricing/priceBook.js';
import {
  AGREEMENTS,
  PRICE_MODES,
  type PricedModel,
  type PriceTier,
  type TableRow,
} from '../../../domain/pricing/pricedModel.js';
import { filterParameter, instantParameter } from '../../query.js';

/** USD per million tokens; null: the rate is unknown, which does not mean free. */
const rate = z.number().min(0).nullable();
const knownRate = z.number().min(0);
const day = z.string().nullable();

/** The public table: one price for each model family. */
export const pricingTableResponse = z
  .strictObject({
    version: z.string().meta({
      description: 'Changes whenever a rate of the table changes',
      example: '20261120T080000000000Z-1a2b3c4d',
    }),
    pricing: z.record(
      z.string(),
      z.strictObject({
        in_per_mtok: knownRate,
        out_per_mtok: knownRate,
        cache_read: knownRate,
        cache_creation: knownRate.meta({
          description: 'Cache write with the ordinary lifetime of 5 minutes',
        }),
        assumed: z.array(z.enum(['cache_read', 'cache_creation'])).meta({
          description: 'Cache rates that no source gives: the input rate stands in for them',
        }),
      }),
    ),
  })
  .meta({ id: 'PricingTable', description: 'USD per million tokens, by canonical model family' });

export function presentPricingTable(version: string, rows: readonly TableRow[]) {
  return {
    version,
    pricing: Object.fromEntries(
      rows.map((row) => [
        row.family,
        {
          in_per_mtok: usdNumberFromPico(row.input),
          out_per_mtok: usdNumberFromPico(row.output),
          cache_read: usdNumberFromPico(row.cacheRead),
          cache_creation: usdNumberFromPico(row.cacheCreation),
          assumed: [...row.assumed],
        },
      ]),
    ),
  };
}

export const listPricesQuery = z.object({
  provider: filterParameter.optional(),
  model: filterParameter.optional().meta({ description: 'A model id or an alias, as listed' }),
  at: instantParameter.optional().meta({ description: 'Only prices in force at this time' }),
});

const tierSchema = z.strictObject({
  service_tier: z.string().meta({ description: 'standard, batch, flex, priority, …' }),
  above_input_tokens: z.int().nullable().meta({
    description: 'The rates hold when the whole input exceeds this; null: for any length',
  }),
  in_per_mtok: rate,
  out_per_mtok: rate,
  cache_read: rate,
  cache_creation: rate,
  cache_creation_1h: rate,
  input_audio: rate,
  output_audio: rate,
  checked_on: day,
});

/** One price period of one model at one provider. */
export const priceRecordSchema = z
  .strictObject({
    id: z.string(),
    provider: z.string(),
    model: z.string(),
    canonical_family: z.string(),
    in_per_mtok: knownRate,
    out_per_mtok: knownRate,
    cache_read: rate,
    cache_creation: rate,
    cache_creation_1h: rate,
    input_audio: rate,
    output_audio: rate,
    batch_multiplier: rate,
    tiers: z.array(tierSchema),
    effective_from: day.meta({ description: 'First UTC day; null: as far back as is known' }),
    effective_to: day.meta({ description: 'First UTC day on which it no longer holds; null: in force' }),
    source: z.string(),
    agreement: z.enum(AGREEMENTS),
    updated_at: z.string(),
    aliases: z.array(z.string()),
    mode: z.enum(PRICE_MODES),
    first_party: z
      .boolean()
      .meta({ description: 'The provider makes the model or sells it under its own list' }),
    disputed: z.boolean().meta({ description: 'A source contradicts the price' }),
  })
  .meta({ id: 'PriceRecord' });

export const listPricesResponse = z.strictObject({
  version: z.string(),
  count: z.int(),
  records: z.array(priceRecordSchema),
});

export function presentPriceRecord({ entry, version, agreement, disputed }: PricedModel) {
  // The later of the two; Math.max does not accept bigint.
  let changedMicros = version.recordedAtMicros;
  if (entry.updatedAtMicros > changedMicros) changedMicros = entry.updatedAtMicros;
  return {
    id: publicId('prc', version.id),
    provider: entry.provider,
    model: entry.model,
    canonical_family: entry.canonicalFamily,
    ...presentRates(version.rates),
    batch_multiplier: usdNumberOrNull(version.batchMultiplier),
    tiers: version.tiers.map(presentTier),
    effective_from: version.effectiveFrom,
    effective_to: version.effectiveTo,
    source: version.source,
    agreement,
    updated_at: isoFromMicros(changedMicros),
    aliases: [...entry.aliases],
    mode: entry.mode,
    first_party: entry.firstParty,
    disputed,
  };
}

function presentTier(tier: PriceTier) {
  return {
    service_tier: tier.serviceTier ?? 'standard',
    above_input_tokens: tier.aboveInputTokens,
    ...presentRates(tier.rates),
    checked_on: tier.checkedOn,
  };
}

function presentRates(rates: PriceTier['rates']) {
  return {
    in_per_mtok: usdNumberOrNull(rates.input),
    out_per_mtok: usdNumberOrNull(rates.output),
    cache_read: usdNumberOrNull(rates.cache_read),
    cache_creation: usdNumberOrNull(rates.cache_write_5m),
    cache_creation_1h: usdNumberOrNull(rates.cache_write_1h),
    input_audio: usdNumberOrNull(rates.input_audio),
    output_audio: usdNumberOrNull(rates.output_audio),
  };
}

export const unpricedQuery = z.object({
  since: instantParameter.optional().meta({ description: 'By default 90 days before until' }),
  until: instantParameter.optional().meta({ description: 'By default now' }),
});

const MISSING = [
  'unknown_model',
  'several_prices',
  'no_price_then',
  'unknown_biller',
  'priced_since',
] as const;

const seenModelFields = {
  provider: z.string().meta({ description: 'Who bills the calls; `unknown` for a host that is no provider' }),
  model: z.string(),
  calls: z.int(),
  input_tokens: z.int().meta({ description: 'All input of the hours with such calls, cached or not' }),
  output_tokens: z.int(),
  first_seen: z.string(),
  last_seen: z.string(),
};

export const unpricedResponse = z.strictObject({
  version: z.string(),
  count: z.int(),
  models: z.array(
    z.strictObject({
      ...seenModelFields,
      reason: z.enum(MISSING).meta({
        description:
          'several_prices: the family of the id has more than one price; priced_since: the list has a price for it now',
      }),
    }),
  ),
  unmetered: z.array(z.strictObject(seenModelFields)).meta({
    description:
      'Models with calls that sent no usage: no price makes a cost of them. With the calls of models they are the unpriced_calls of totals, but for calls that reported their own cost',
  }),
  assumed: z.array(z.strictObject(seenModelFields)).meta({
    description: 'Models with calls that were priced by an assumed rate; price_gaps of the events names it',
  }),
  has_more: z.boolean(),
});

export function presentUnpriced(
  book: PriceBook,
  version: string,
  found: { models: readonly UnpricedModel[]; hasMore: boolean },
) {
  const models = found.models
    .filter((seen) => seen.unpricedCalls > 0)
    .map((seen) => ({ ...presentSeen(seen, seen.unpricedCalls), reason: reasonOf(book, seen) }));
  return {
    version,
    count: models.length,
    models,
    unmetered: found.models
      .filter((seen) => seen.unmeteredCalls > 0)
      .map((seen) => presentSeen(seen, seen.unmeteredCalls)),
    assumed: found.models
      .filter((seen) => seen.priceGapCalls > 0)
      .map((seen) => presentSeen(seen, seen.priceGapCalls)),
    has_more: found.hasMore,
  };
}

function presentSeen(seen: UnpricedModel, calls: number) {
  return {
    provider: seen.billedBy,
    model: seen.model,
    calls,
    input_tokens: seen.inputTokens,
    output_tokens: seen.outputTokens,
    first_seen: isoFromMicros(seen.firstSeenMicros),
    last_seen: isoFromMicros(seen.lastSeenMicros),
  };
}

function reasonOf(book: PriceBook, seen: UnpricedModel): (typeof MISSING)[number] {
  if (seen.billedBy === 'unknown') {
    return book.findByMaker(seen.model, seen.lastSeenMicros) ? 'priced_since' : 'unknown_biller';
  }
  const missing: MissingPrice | undefined = book.whyMissing(seen.billedBy, seen.model, seen.lastSeenMicros);
  return missing ?? 'priced_since';
}
