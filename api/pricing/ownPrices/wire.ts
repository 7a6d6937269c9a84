import { z } from 'zod';
import type { NewOwnPrice } from '../../../db/pricing/ownPrices.js';
import { publicId } from '../../../domain/ids.js';
import { parseScaled, usdNumberFromPico } from '../../../domain/money.js';
import { isoFromMicros, parseInstant } from '../../../domain/period.js';
import type { Coverage } from '../../../domain/pricing/layBook.js';
import { coveredBy } from '../../../domain/pricing/layBook.js';
import {
  endOfOwnPrice,
  OWN_ID_KINDS,
  OWN_RATE_CLASSES,
  type OwnPrice,
  type OwnRateClass,
} from '../../../domain/pricing/ownPrices.js';
import type { PriceBook } from '../../../domain/pricing/priceBook.js';
import {
  type PriceTier,
  RATE_CLASSES,
  RATE_PER_MTOK_USD_MAX,
  type RateClass,
  type Rates,
} from '../../../domain/pricing/pricedModel.js';
import { ALL_MODELS } from '../../../domain/pricing/priceStatement.js';
import { BATCH_TIER, STANDARD_TIER } from '../../../domain/pricing/rateCards.js';
import { findProvider, PROVIDERS } from '../../../domain/providers.js';
import { offsetParameters, pageFields } from '../../paging.js';
import { filterParameter } from '../../query.js';

export const CONTRACT_RATES_PATH = '/api/v1/pricing/contract-rates';
export const OVERRIDES_PATH = '/api/v1/pricing/overrides';

/** Most fraction digits of a rate; more are refused, so that the stored rate equals the sent one. */
const DECIMALS = 12;
/** A higher rate is refused: its unit is wrong. */
const RATE_USD_MAX = BigInt(RATE_PER_MTOK_USD_MAX);
const ONE = 10n ** BigInt(DECIMALS);

/** A number or a decimal text, scaled by 1e12; a JSON number counts as its shortest decimal. */
function decimalField(allowed: (scaled: bigint) => boolean, rule: string) {
  return z
    .union([z.number(), z.string().max(64)], { error: rule })
    .transform((value, context): bigint => {
      const text = String(value);
      const fine = parseScaled(text, 2 * DECIMALS);
      const scaled = fine === undefined || fine % ONE !== 0n ? undefined : fine / ONE;
      if (scaled !== undefined && allowed(scaled)) return scaled;
      context.addIssue({ code: 'custom', message: rule });
      return z.NEVER;
    })
    .meta({ type: ['number', 'string'], description: `A number or a decimal text: ${rule}` });
}

const rateField = decimalField(
  (scaled) => scaled >= 0n && scaled <= RATE_USD_MAX * ONE,
  `must be US dollars per million tokens from 0 to ${RATE_USD_MAX} with at most ${DECIMALS} decimals`,
);
const percentField = decimalField(
  (scaled) => scaled > 0n && scaled < 100n * ONE,
  `must be above 0 and below 100 with at most ${DECIMALS} decimals`,
);
const factorField = decimalField(
  (scaled) => scaled >= 0n && scaled <= 10n * ONE,
  `must be the batch rate divided by the standard rate, from 0 to 10, with at most ${DECIMALS} decimals`,
);

const DAY_RULE = 'must be a date such as 2026-01-31';
export const dayField = z
  .string({ error: (issue) => (issue.input === undefined ? `is required: ${DAY_RULE}` : DAY_RULE) })
  .refine((text) => /^\d{4}-\d{2}-\d{2}$/.test(text) && parseInstant(text) !== undefined, { error: DAY_RULE })
  .meta({ type: 'string', format: 'date' });

const providerField = z
  .string({ error: `must be one of ${PROVIDERS.join(', ')}` })
  .transform((word, context) => {
    const provider = findProvider(word);
    if (provider) return provider;
    context.addIssue({ code: 'custom', message: `must be one of ${PROVIDERS.join(', ')}` });
    return z.NEVER;
  })
  .meta({ enum: [...PROVIDERS] });

const textField = (max: number) =>
  z
    .string()
    .trim()
    .min(1, { error: 'must not be empty' })
    .max(max, { error: `must have at most ${max} characters` });

const sourceField = z.strictObject({
  document: textField(512).meta({ description: 'What proves it', example: 'Order form 2026-114' }),
  clause: textField(512).nullable().default(null),
  url: z
    .string()
    .max(2_048)
    .refine(isHttpUrl, { error: 'must be an http or https address' })
    .nullable()
    .default(null),
});

function isHttpUrl(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

const ratesField = z
  .strictObject({
    input: rateField.optional(),
    output: rateField.optional(),
    cache_read: rateField.optional(),
    cache_write_5m: rateField.optional(),
    cache_write_1h: rateField.optional(),
    batch_multiplier: factorField.optional(),
  })
  .refine((rates) => Object.values(rates).some((rate) => rate !== undefined), {
    error: `must give at least one of ${OWN_RATE_CLASSES.join(', ')}, batch_multiplier`,
  });

/** Longest request for which a tier can begin. */
const CONTEXT_TOKENS_MAX = 100_000_000;
const TIERS_MAX = 20;

const tierField = z
  .strictObject({
    service_tier: textField(64).optional(),
    context_over_tokens: z.int().min(1).max(CONTEXT_TOKENS_MAX).optional(),
    batch: z.boolean().default(false),
    rates: z.strictObject({
      input: rateField,
      output: rateField,
      cache_read: rateField.optional(),
      cache_write_5m: rateField.optional(),
      cache_write_1h: rateField.optional(),
    }),
  })
  .refine((tier) => tier.batch || tier.service_tier !== undefined || tier.context_over_tokens !== undefined, {
    error: 'must name a service_tier, batch or context_over_tokens: the rates of ordinary calls are in rates',
  })
  .refine((tier) => !(tier.batch && tier.service_tier !== undefined), {
    path: ['service_tier'],
    error: 'must be absent where batch is true: batch is a tier of its own',
  });

type TierBody = z.output<typeof tierField>;

/** The service tier in the price data. */
function serviceTierOf({ batch, service_tier: named }: TierBody): string | null {
  if (batch) return BATCH_TIER;
  return named === undefined || named === STANDARD_TIER ? null : named;
}

const tiersField = z
  .array(tierField)
  .max(TIERS_MAX)
  .refine((tiers) => new Set(tiers.map(placeOfTier)).size === tiers.length, {
    error: 'must name each tier once',
  })
  .default([])
  .meta({
    description: 'Rates of other service tiers and request lengths, each in place of the listed ones',
  });

function placeOfTier(tier: TierBody): string {
  return `${serviceTierOf(tier)} ${tier.context_over_tokens ?? 0}`;
}

function tierOfBody(tier: TierBody): PriceTier {
  const given: Partial<Record<RateClass, bigint | undefined>> = tier.rates;
  return {
    serviceTier: serviceTierOf(tier),
    aboveInputTokens: tier.context_over_tokens ?? null,
    checkedOn: null,
    rates: Object.fromEntries(RATE_CLASSES.map((name) => [name, given[name] ?? null])) as Rates,
  };
}

const commonFields = {
  tiers: tiersField,
  provider: providerField,
  model: textField(512).meta({ description: 'A model id, an alias, or a family' }),
  effective_from: dayField.meta({ description: 'First UTC day' }),
  effective_to: dayField
    .nullable()
    .default(null)
    .meta({ description: 'First UTC day on which it no longer holds; null: it has no end' }),
};

const endsAfterItBegins = (body: { effective_from: string; effective_to: string | null }) =>
  body.effective_to === null || body.effective_to > body.effective_from;
const ORDER = {
  path: ['effective_to'],
  error: 'must lie after effective_from: it is the first day without the price',
};

export const createContractRateBody = z
  .strictObject({
    ...commonFields,
    model: textField(512).meta({ description: 'A model id, an alias, a family, or * for all models' }),
    discount_percent: percentField.optional(),
    rates: ratesField.optional(),
    source: sourceField,
  })
  .refine((body) => (body.discount_percent === undefined) !== (body.rates === undefined), {
    path: ['discount_percent'],
    error: 'give discount_percent or rates, one of the two',
  })
  .refine((body) => body.discount_percent === undefined || body.tiers.length === 0, {
    path: ['tiers'],
    error: 'must be absent beside discount_percent, which holds for every tier: give rates, or no tiers',
  })
  .refine((body) => body.model !== ALL_MODELS || body.discount_percent !== undefined, {
    path: ['rates'],
    error: 'cannot hold for all models: give discount_percent, or one entry for each model',
  })
  .refine(endsAfterItBegins, ORDER)
  .meta({ id: 'NewContractRate' });

export const createOverrideBody = z
  .strictObject({ ...commonFields, rates: ratesField, source: sourceField.nullable().default(null) })
  .refine((body) => body.model !== ALL_MODELS, {
    path: ['model'],
    error: 'must name one model: only a contract can hold for all',
  })
  .refine(endsAfterItBegins, ORDER)
  .meta({ id: 'NewPriceOverride' });

type NewEntryBody = Omit<z.output<typeof createContractRateBody>, 'source'> &
  Pick<z.output<typeof createOverrideBody>, 'source'>;

/** The entry that either form of the body describes. */
export function entryOfBody(body: NewEntryBody): Omit<NewOwnPrice, 'id' | 'kind' | 'createdBy'> {
  const { batch_multiplier: batchMultiplier, ...given } = body.rates ?? {};
  const rates: Partial<Record<OwnRateClass, bigint>> = {};
  for (const name of OWN_RATE_CLASSES) {
    const rate = given[name];
    if (rate !== undefined) rates[name] = rate;
  }
  return {
    provider: body.provider,
    model: body.model,
    discountPercent: body.discount_percent ?? null,
    rates: body.rates ? rates : null,
    batchMultiplier: batchMultiplier ?? null,
    tiers: body.tiers.map(tierOfBody),
    effectiveFrom: body.effective_from,
    effectiveTo: body.effective_to,
    source: body.source,
  };
}

export const ownPriceParams = z.object({ id: z.string() });

export const endOwnPriceQuery = z.object({
  from: dayField.optional().meta({
    description:
      'First UTC day without the price; by default today. Its effective_from or an earlier day takes it back altogether',
  }),
});

export const listOwnPricesQuery = z.object({
  provider: filterParameter.optional(),
  model: filterParameter.optional(),
  at: dayField.optional().meta({ description: 'Only entries that hold on this UTC day' }),
  ...offsetParameters(),
});

const rate = z.number().nullable();

const tierSchema = z.strictObject({
  service_tier: z.string().nullable().meta({ description: 'null: the standard service, or batch' }),
  context_over_tokens: z.int().nullable().meta({ description: 'null: for any length' }),
  batch: z.boolean(),
  rates: z.strictObject({
    input: rate,
    output: rate,
    cache_read: rate,
    cache_write_5m: rate,
    cache_write_1h: rate,
  }),
});

const ownPriceFields = {
  id: z.string(),
  provider: z.string(),
  model: z.string(),
  covers: z.enum(['all', 'family', 'model', 'new']).meta({
    description:
      'How the model is understood now: all of the provider’s, a family, one price entry with its aliases, or a model that no list knows',
  }),
  discount_percent: rate,
  rates: z
    .strictObject({
      input: rate,
      output: rate,
      cache_read: rate,
      cache_write_5m: rate,
      cache_write_1h: rate,
      batch_multiplier: rate,
    })
    .nullable()
    .meta({ description: 'USD per million tokens; null: as listed' }),
  tiers: z.array(tierSchema).meta({
    description: 'Rates of other service tiers and request lengths',
  }),
  effective_from: z.string(),
  effective_to: z.string().nullable(),
  source: z
    .strictObject({ document: z.string(), clause: z.string().nullable(), url: z.string().nullable() })
    .nullable(),
  created_at: z.string(),
  created_by: z.string(),
  ended_at: z.string().nullable().meta({ description: 'When it was taken back' }),
  ends_on: z.string().nullable().meta({
    description: 'First UTC day on which it no longer holds, whether by its own words or since it was ended',
  }),
};

export const contractRateSchema = z.strictObject(ownPriceFields).meta({ id: 'ContractRate' });
export const overrideSchema = z.strictObject(ownPriceFields).meta({ id: 'PriceOverride' });

export const listContractRatesResponse = z.strictObject({
  contract_rates: z.array(contractRateSchema),
  ...pageFields,
});
export const listOverridesResponse = z.strictObject({ overrides: z.array(overrideSchema), ...pageFields });

const numberOf = (scaled: bigint | null | undefined) =>
  scaled === null || scaled === undefined ? null : usdNumberFromPico(scaled);

function presentOwnPrice(price: OwnPrice, covers: Coverage): z.output<typeof contractRateSchema> {
  return {
    id: publicId(OWN_ID_KINDS[price.kind], price.id),
    provider: price.provider,
    model: price.model,
    covers,
    discount_percent: numberOf(price.discountPercent),
    rates: price.rates && {
      input: numberOf(price.rates.input),
      output: numberOf(price.rates.output),
      cache_read: numberOf(price.rates.cache_read),
      cache_write_5m: numberOf(price.rates.cache_write_5m),
      cache_write_1h: numberOf(price.rates.cache_write_1h),
      batch_multiplier: numberOf(price.batchMultiplier),
    },
    tiers: (price.tiers ?? []).map(({ serviceTier, aboveInputTokens, rates }) => ({
      service_tier: serviceTier === BATCH_TIER ? null : serviceTier,
      context_over_tokens: aboveInputTokens,
      batch: serviceTier === BATCH_TIER,
      rates: {
        input: numberOf(rates.input),
        output: numberOf(rates.output),
        cache_read: numberOf(rates.cache_read),
        cache_write_5m: numberOf(rates.cache_write_5m),
        cache_write_1h: numberOf(rates.cache_write_1h),
      },
    })),
    effective_from: price.effectiveFrom,
    effective_to: price.effectiveTo,
    source: price.source && {
      document: price.source.document,
      clause: price.source.clause,
      url: price.source.url,
    },
    created_at: isoFromMicros(price.createdAtMicros),
    created_by: price.createdBy,
    ended_at: price.endedAtMicros === null ? null : isoFromMicros(price.endedAtMicros),
    ends_on: endOfOwnPrice(price),
  };
}

/** An entry, with the prices of the book that it covers. */
export function presentOwnPriceOver(book: PriceBook, price: OwnPrice) {
  return presentOwnPrice(price, coveredBy(book, price).coverage);
}
