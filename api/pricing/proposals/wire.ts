import { z } from 'zod';
import type { PriceFeedState } from '../../../db/pricing/priceFeeds.js';
import type { PriceProposal } from '../../../db/pricing/proposals.js';
import { publicId } from '../../../domain/ids.js';
import { usdNumberFromPico, usdNumberOrNull } from '../../../domain/money.js';
import { isoFromMicros, isoOrNull } from '../../../domain/period.js';
import { PRICE_COLLECTIONS } from '../../../domain/pricing/imports/collection.js';
import { RATE_CLASSES } from '../../../domain/pricing/pricedModel.js';
import { PROPOSAL_STATUSES } from '../../../domain/pricing/proposals.js';
import type { PriceFeed } from '../../../platform/priceFeeds.js';
import { offsetParameters, pageFields } from '../../paging.js';
import { filterParameter } from '../../query.js';
import { dayField } from '../ownPrices/wire.js';

export const PROPOSALS_PATH = '/api/v1/pricing/proposals';
const REASON_CHARS_MAX = 1_024;

export const listProposalsQuery = z.object({
  status: z.enum(PROPOSAL_STATUSES, { error: `must be one of ${PROPOSAL_STATUSES.join(', ')}` }).optional(),
  provider: filterParameter.optional(),
  model: filterParameter.optional().meta({ description: 'The model as the proposal names it' }),
  ...offsetParameters(),
});

export const proposalParams = z.object({ id: z.string() });

export const applyProposalBody = z
  .strictObject({
    effective_from: dayField
      .optional()
      .meta({ description: 'First UTC day of the override; by default today' }),
  })
  .meta({ id: 'ApplyPriceProposal' });

export const dismissProposalBody = z
  .strictObject({
    reason: z
      .string()
      .trim()
      .min(1, { error: 'must not be empty' })
      .max(REASON_CHARS_MAX, { error: `must have at most ${REASON_CHARS_MAX} characters` })
      .nullable()
      .default(null),
  })
  .meta({ id: 'DismissPriceProposal' });

const money = z.number().nullable();

export const proposalSchema = z
  .strictObject({
    id: z.string(),
    status: z.enum(PROPOSAL_STATUSES).meta({
      description: 'superseded: the list or the prices have changed, so that it no longer holds',
    }),
    feed: z.string().meta({ description: 'The name in PRICE_FEEDS' }),
    source: z.enum(PRICE_COLLECTIONS),
    provider: z.string(),
    model: z.string(),
    kind: z.enum(['new', 'changed']).meta({ description: 'new: the model has no price of its own now' }),
    rates: z
      .array(
        z.strictObject({
          tier: z.string().meta({ description: 'standard, batch, standard above 200000, …' }),
          rate_class: z.enum(RATE_CLASSES),
          current: money.meta({ description: 'null: unknown, which is not free' }),
          proposed: z.number(),
        }),
      )
      .meta({ description: 'Only rates that differ, in USD per million tokens' }),
    is_jump: z.boolean().meta({ description: 'A rate more than doubles or halves' }),
    suspicions: z.array(z.string()).meta({ description: 'Reasons to doubt the rates' }),
    retrieved_on: z.string().meta({ description: 'The day on which the file was fetched' }),
    effect: z
      .strictObject({
        days: z.int(),
        until: z.string(),
        calls: z.int().meta({ description: 'Metered calls of the model' }),
        current_cost_usd: money.meta({ description: 'At present prices; null: some calls have no price' }),
        proposed_cost_usd: money,
        change_usd: money,
      })
      .meta({
        description: 'The cost of the organization’s calls before `until`, at present and at proposed rates',
      }),
    created_at: z.string(),
    decided_at: z.string().nullable(),
    decided_by: z.string().nullable(),
    reason: z.string().nullable(),
    override_id: z.string().nullable().meta({ description: 'The override that it became' }),
  })
  .meta({ id: 'PriceProposal' });

const feedSchema = z
  .strictObject({
    name: z.string(),
    retrieved_on: z.string().nullable().meta({ description: 'null: it was never read' }),
    checked_at: z.string().nullable(),
    error: z.string().nullable().meta({ description: 'Why the last attempt failed; null: it did not' }),
  })
  .meta({ id: 'PriceFeed' });

export const listProposalsResponse = z.strictObject({
  feeds: z.array(feedSchema).meta({ description: 'Empty: PRICE_FEEDS is not set, and nothing is fetched' }),
  open: z.int().meta({ description: 'Number of all open proposals' }),
  proposals: z.array(proposalSchema),
  ...pageFields,
});

export const EFFECT_DAYS = 30;

export function presentProposal(one: PriceProposal): z.output<typeof proposalSchema> {
  const { currentPico, proposedPico } = one;
  const change = currentPico === null || proposedPico === null ? null : proposedPico - currentPico;
  return {
    id: publicId('prp', one.id),
    status: one.status,
    feed: one.feed,
    source: one.source,
    provider: one.provider,
    model: one.model,
    kind: one.kind,
    rates: one.rates.map(({ tier, rateClass, before, after }) => ({
      tier,
      rate_class: rateClass,
      current: usdNumberOrNull(before),
      proposed: usdNumberFromPico(after),
    })),
    is_jump: one.isJump,
    suspicions: [...one.suspicions],
    retrieved_on: one.retrievedOn,
    effect: {
      days: EFFECT_DAYS,
      until: isoFromMicros(one.effectUntilMicros),
      calls: one.calls,
      current_cost_usd: usdNumberOrNull(currentPico),
      proposed_cost_usd: usdNumberOrNull(proposedPico),
      change_usd: usdNumberOrNull(change),
    },
    created_at: isoFromMicros(one.createdAtMicros),
    decided_at: isoOrNull(one.decidedAtMicros),
    decided_by: one.decidedBy,
    reason: one.reason,
    override_id: one.overrideId === null ? null : publicId('ovr', one.overrideId),
  };
}

/** Configured feeds with their state. */
export function presentFeeds(feeds: readonly PriceFeed[], states: readonly PriceFeedState[]) {
  return feeds.map(({ name, url }) => {
    const state = states.find((one) => one.url === url);
    return {
      name,
      retrieved_on: state?.retrievedOn ?? null,
      checked_at: isoOrNull(state?.checkedAtMicros ?? null),
      error: state?.errorMessage ?? null,
    };
  });
}
