import { z } from 'zod';
import type { PublishedBucket } from '../../../db/reconciliation/gapExplorer.js';
import { endOfMonth, monthOf, startOfMonth } from '../../../domain/billing/periods/month.js';
import { publicId } from '../../../domain/ids.js';
import { usdNumberFromPico } from '../../../domain/money.js';
import { isoFromMicros } from '../../../domain/period.js';
import { BUCKET_REASONS, GRADES } from '../../../domain/reconciliation/matching/cells.js';
import type { MonthSummary } from '../../../domain/reconciliation/summary.js';
import { cursoredPageFields, pageParametersOf } from '../../paging.js';
import { booleanParameter } from '../../query.js';
import { periodQuery } from '../gapRuns/wire.js';

/** Ninety days of some hundred models fit one answer. */
const BUCKETS_MAX = 10_000;

export const explorerQuery = periodQuery.extend({
  flagged_only: booleanParameter
    .optional()
    .meta({ description: 'Only the flagged buckets that are unmatched' }),
  flagged: booleanParameter.optional().meta({ description: 'All flagged buckets, partial ones too' }),
  ...pageParametersOf(BUCKETS_MAX, BUCKETS_MAX),
});

const usd = z.number();

const gapSchema = z
  .strictObject({
    bucket: z.string(),
    provider: z.string(),
    model: z.string(),
    match_status: z.enum(['matched', 'partial', 'unmatched']),
    confidence_score: z.number().nullable(),
    gap_minutes: z.int().nullable(),
    provider_cost_usd: usd,
    our_cost_usd: usd,
    invoice_period_start: z.string(),
    invoice_period_end: z.string(),
    invoice_aligned: z.boolean(),
    flagged_gap: z.boolean(),
    provisional: z.boolean(),
    confidence: z.enum(GRADES),
    visibility: z.string().meta({
      description: 'What the bill lets one see: V0 amount only … V3 quantity and amount with all dimensions',
    }),
    provider_account_id: z
      .string()
      .meta({ description: 'Empty where calls of unknown account are compared with the sum over all' }),
    reason: z.enum(BUCKET_REASONS).nullable(),
    unobserved_minutes: z.int().nullable(),
    gap_parts: z.strictObject({ rate_usd: usd, volume_usd: usd, own_pricing_usd: usd }).nullable().meta({
      description: 'provider_cost_usd − our_cost_usd, split exactly; null where the bill gives no quantities',
    }),
    run_id: z.string(),
  })
  .meta({ id: 'GapBucket' });

export const explorerResponse = z.strictObject({
  period: z.strictObject({ start: z.string(), end: z.string() }),
  total: z.int(),
  flagged: z.int(),
  gaps: z.array(gapSchema),
  ...cursoredPageFields,
});

export function presentGap(bucket: PublishedBucket): z.output<typeof gapSchema> {
  // The UTC calendar month, while no invoice says otherwise.
  const month = monthOf(bucket.bucketMicros);
  const { ratePico, volumePico, ownPricingPico } = bucket;
  return {
    bucket: isoFromMicros(bucket.bucketMicros),
    provider: bucket.provider,
    model: bucket.model,
    match_status: bucket.matchStatus,
    confidence_score: bucket.confidenceScore,
    gap_minutes: bucket.gapMinutes,
    provider_cost_usd: usdNumberFromPico(bucket.providerCostPico),
    our_cost_usd: usdNumberFromPico(bucket.ourCostPico),
    invoice_period_start: isoFromMicros(startOfMonth(month)),
    invoice_period_end: isoFromMicros(endOfMonth(month)),
    invoice_aligned: false,
    flagged_gap: bucket.flagged,
    provisional: bucket.provisional,
    confidence: bucket.grade,
    visibility: bucket.visibility,
    provider_account_id: bucket.accountId,
    reason: bucket.reason,
    unobserved_minutes: bucket.unobservedMinutes,
    gap_parts:
      ratePico === null || volumePico === null || ownPricingPico === null
        ? null
        : {
            rate_usd: usdNumberFromPico(ratePico),
            volume_usd: usdNumberFromPico(volumePico),
            own_pricing_usd: usdNumberFromPico(ownPricingPico),
          },
    run_id: publicId('run', bucket.runId),
  };
}

export const summaryResponse = z
  .strictObject({
    period: z.string().meta({ example: '2026-10' }),
    matched_usd: usd,
    unmatched_usd: usd,
    confidence_distribution: z.strictObject({ HIGH: usd, MEDIUM: usd, LOW: usd, UNVERIFIED: usd }),
  })
  .meta({ id: 'ReconciliationSummary' });

export function presentSummary(summary: MonthSummary): z.output<typeof summaryResponse> {
  const { HIGH, MEDIUM, LOW, UNVERIFIED } = summary.distribution;
  return {
    period: summary.period,
    matched_usd: usdNumberFromPico(summary.matchedPico),
    unmatched_usd: usdNumberFromPico(summary.unmatchedPico),
    confidence_distribution: {
      HIGH: usdNumberFromPico(HIGH),
      MEDIUM: usdNumberFromPico(MEDIUM),
      LOW: usdNumberFromPico(LOW),
      UNVERIFIED: usdNumberFromPico(UNVERIFIED),
    },
  };
}
