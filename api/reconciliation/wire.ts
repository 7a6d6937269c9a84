import { z } from 'zod';
import type { PublishedBucket } from '../../db/queries/gapExplorer.js';
import type { GapRun, GapRunResult } from '../../db/queries/gapRuns.js';
import { publicId } from '../../domain/ids.js';
import { picoFromDecimal, usdNumberFromPico } from '../../domain/money.js';
import { GAP_PERIODS, isoFromMicros } from '../../domain/period.js';
import { GAP_PROVIDERS, PROVIDER_FACTS } from '../../domain/providers.js';
import { BUCKET_REASONS, GRADES } from '../../domain/reconciliation/cells.js';
import type { MergedMismatch } from '../../domain/reconciliation/mergeMismatches.js';
import type { MonthSummary } from '../../domain/reconciliation/summary.js';
import { presentSuspectKey, suspectKeySchema } from '../providerKeys/wire.js';
import { booleanParameter, integerParameter } from '../query.js';
import {
  isoOrNull,
  presentProgress,
  presentRunError,
  progressSchema,
  runErrorSchema,
  runStatusSchema,
} from '../runWire.js';

export const EXPLORER_PATH = '/api/v1/reconciliation/gap-explorer';
export const RUNS_PATH = `${EXPLORER_PATH}/runs`;

const GAP_ALIASES = new Map<string, string>(
  PROVIDER_FACTS.flatMap((facts) =>
    [facts.slug, ...facts.aliases].map((name) => [name, facts.slug] as const),
  ),
);

const providerParameter = z
  .string()
  .transform((word) => GAP_ALIASES.get(word.trim().toLowerCase()) ?? word)
  .pipe(z.enum(GAP_PROVIDERS, { error: `must be one of ${GAP_PROVIDERS.join(', ')}` }))
  .meta({ enum: [...GAP_PROVIDERS] });

const periodParameter = z.enum(GAP_PERIODS, { error: `must be one of ${GAP_PERIODS.join(', ')}` });

export const runQuery = z.object({
  period: periodParameter.default('30d'),
  provider: providerParameter.optional(),
});

export const explorerQuery = runQuery.extend({
  flagged_only: booleanParameter
    .optional()
    .meta({ description: 'Only the flagged buckets that are unmatched' }),
  flagged: booleanParameter.optional().meta({ description: 'All flagged buckets, partial ones too' }),
});

export const runParams = z.object({ id: z.string() });

export const listRunsQuery = z.object({
  provider: providerParameter.optional(),
  status: runStatusSchema.optional(),
  limit: integerParameter(1, 1_000).default(100),
  offset: integerParameter(0, 100_000).default(0),
});

const usd = z.number();

const mismatchSchema = z
  .strictObject({
    provider: z.string(),
    provider_account_id: z.string(),
    model: z.string(),
    token_class: z.string(),
    service_tier: z.string(),
    is_batch: z.boolean().nullable(),
    long_context: z.boolean().nullable(),
    region: z.string().nullable(),
    first_day: z.string(),
    last_day: z.string(),
    days: z.int(),
    tokens: z.number(),
    billed_rate_per_mtok: usd,
    list_rate_per_mtok: usd,
    billed_usd: usd,
    expected_usd: usd,
    excess_usd: usd.meta({
      description: 'billed_usd − expected_usd; negative where the bill is below the list',
    }),
    excess_usd_exact: z.string().meta({ description: 'The same to the pico-dollar' }),
    price_source: z.string(),
    agreement: z
      .string()
      .meta({ description: 'How far the price sources agree: agree, single_source, disagree' }),
    disputed: z.boolean(),
    looks_like: z.array(z.string()).meta({
      description:
        'Which known mistakes give exactly these amounts, by the keys of the violation taxonomy; a hint, not a finding',
    }),
  })
  .meta({ id: 'RateMismatch' });

const differenceSchema = z.strictObject({
  provider: z.string(),
  provider_account_id: z.string(),
  day: z.string(),
  charge_category: z.string(),
  counted_kind: z.enum(['file', 'api']),
  counted_import_id: z
    .string()
    .meta({ description: 'imp_… of an imported file, src_… of what a connection fetched' }),
  counted_usd: usd,
  other_kind: z.enum(['file', 'api']),
  other_import_id: z.string(),
  other_usd: usd,
});

export const runSchema = z
  .strictObject({
    id: z.string().meta({ example: 'run_0199f3a2c4d57e3a8f00112233445566' }),
    run_id: z.string(),
    kind: z.literal('gap_run'),
    status: runStatusSchema,
    period: z.enum(GAP_PERIODS),
    provider: z.string().nullable().meta({ description: 'Null: every provider that has bills' }),
    progress: progressSchema.meta({ description: 'In provider-days' }),
    result: z
      .strictObject({
        total: z.int(),
        flagged: z.int(),
        reason: z.literal('no_billing_data').optional(),
        rate_mismatches: z
          .array(mismatchSchema)
          .meta({ description: 'What the bill alone shows, largest amount first; at most 200' }),
        rate_mismatch_count: z.int(),
        source_differences: z
          .array(differenceSchema)
          .meta({ description: 'Copies of a day’s bill that do not say the same' }),
        suspect_keys: z.array(suspectKeySchema).meta({
          description:
            'Billed keys that no entry of provider-keys and no call knows, or that were billed after they were revoked; at most 200',
        }),
        suspect_key_count: z.int(),
        failed_units: z.array(z.strictObject({ provider: z.string(), day: z.string(), message: z.string() })),
      })
      .nullable(),
    error: runErrorSchema,
    existing: z
      .boolean()
      .optional()
      .meta({ description: 'A run of this period and provider is open: this is that run' }),
    created_at: z.string(),
    started_at: z.string().nullable(),
    finished_at: z.string().nullable(),
    status_url: z.string(),
  })
  .meta({ id: 'GapRun' });

export type RunWire = z.output<typeof runSchema>;

export const listRunsResponse = z.strictObject({
  runs: z.array(runSchema),
  count: z.int(),
  offset: z.int(),
  has_more: z.boolean(),
});

export function runUrlOf(run: GapRun): string {
  return `${RUNS_PATH}/${publicId('run', run.id)}`;
}

const number = (decimal: string) => usdNumberFromPico(picoFromDecimal(decimal) ?? 0n);

function presentMismatch(mismatch: MergedMismatch): z.output<typeof mismatchSchema> {
  const { quantity, billed_rate, list_rate, billed_usd, expected_usd, excess_usd, ...same } = mismatch;
  return {
    ...same,
    tokens: number(quantity),
    billed_rate_per_mtok: number(billed_rate),
    list_rate_per_mtok: number(list_rate),
    billed_usd: number(billed_usd),
    expected_usd: number(expected_usd),
    excess_usd: number(excess_usd),
    excess_usd_exact: excess_usd,
    looks_like: mismatch.looks_like ?? [],
  };
}

function presentResult(result: GapRunResult): NonNullable<RunWire['result']> {
  return {
    total: result.total,
    flagged: result.flagged,
    ...(result.reason ? { reason: result.reason } : {}),
    rate_mismatches: result.rate_mismatches.map(presentMismatch),
    rate_mismatch_count: result.rate_mismatch_count,
    source_differences: result.source_differences.map((difference) => ({
      provider: difference.provider,
      provider_account_id: difference.provider_account_id,
      day: difference.day,
      charge_category: difference.charge_category,
      counted_kind: difference.counted_kind ?? 'file',
      counted_import_id: sourceIdOf(difference.counted_kind, difference.counted_import_id),
      counted_usd: number(difference.counted_usd),
      other_kind: difference.other_kind ?? 'file',
      other_import_id: sourceIdOf(difference.other_kind, difference.other_import_id),
      other_usd: number(difference.other_usd),
    })),
    suspect_keys: (result.suspect_keys ?? []).map(({ billed_usd, ...key }) =>
      presentSuspectKey({ ...key, billed_usd: billed_usd === null ? null : number(billed_usd) }),
    ),
    suspect_key_count: result.suspect_key_count ?? 0,
    failed_units: result.failed_units.map(({ provider, day, message }) => ({ provider, day, message })),
  };
}

export function presentRun(run: GapRun): RunWire {
  const id = publicId('run', run.id);
  return {
    id,
    run_id: id,
    kind: 'gap_run',
    status: run.status,
    period: run.period,
    provider: run.provider,
    progress: presentProgress({ ...run, done: run.doneUnits, total: run.totalUnits }),
    result: run.result && presentResult(run.result),
    error: presentRunError(run.errorCode, run.errorMessage),
    created_at: isoFromMicros(run.createdAtMicros),
    started_at: isoOrNull(run.startedAtMicros),
    finished_at: isoOrNull(run.finishedAtMicros),
    status_url: runUrlOf(run),
  };
}

export const gapSchema = z
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
});

/** First instants of a time's UTC calendar month and of the next, while no invoice says otherwise. */
function monthOf(micros: bigint): { start: string; end: string } {
  const [year = 0, month = 0] = isoFromMicros(micros).slice(0, 7).split('-').map(Number);
  const first = (y: number, m: number) => isoFromMicros(BigInt(Date.UTC(y, m, 1)) * 1_000n);
  return { start: first(year, month - 1), end: first(year, month) };
}

export function presentGap(bucket: PublishedBucket): z.output<typeof gapSchema> {
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
    invoice_period_start: month.start,
    invoice_period_end: month.end,
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

function sourceIdOf(kind: 'file' | 'api' | undefined, uuid: string): string {
  return publicId(kind === 'api' ? 'src' : 'imp', uuid);
}
