import { z } from 'zod';
import type { PublishedBucket } from '../../../db/reconciliation/gapExplorer.js';
import type { GapRun, GapRunResult } from '../../../db/reconciliation/gapRuns.js';
import { endOfMonth, monthOf, startOfMonth } from '../../../domain/billing/periods.js';
import { DomainError, type FieldIssue } from '../../../domain/errors.js';
import { publicId, publicSourceId } from '../../../domain/ids.js';
import { type InvoicePeriod, invoiceOfDay, isAligned } from '../../../domain/invoices/invoicePeriods.js';
import { picoFromDecimal, usdNumberFromDecimal, usdNumberFromPico } from '../../../domain/money.js';
import {
  dayOf,
  GAP_PERIODS,
  type GapPeriod,
  isoFromMicros,
  microsOfDay,
  shiftDay,
} from '../../../domain/period.js';
import { GAP_PROVIDERS, PROVIDER_FACTS } from '../../../domain/providers.js';
import type { MergedMismatch } from '../../../domain/reconciliation/audit/mergeMismatches.js';
import { BUCKET_REASONS, GRADES } from '../../../domain/reconciliation/matching/cells.js';
import type { MonthSummary } from '../../../domain/reconciliation/summary.js';
import { RUN_TERMINAL_STATUSES } from '../../../domain/runs/runKinds.js';
import { presentSuspectKey, suspectKeySchema } from '../../billing/providerKeys/wire.js';
import { csvList } from '../../csv.js';
import { cursoredPageFields, offsetParameters, pageFields, pageParametersOf } from '../../paging.js';
import { booleanParameter } from '../../query.js';
import {
  presentProgress,
  presentRunEnd,
  progressSchema,
  runEndFields,
  runStatusSchema,
} from '../../runs/runWire.js';

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

const PERIOD_DEFAULT: GapPeriod = '30d';

export const periodQuery = z.object({
  period: periodParameter.default(PERIOD_DEFAULT),
  provider: providerParameter.optional(),
});

/** The parameters of a new run: in the query, in the body, or in both with the same values. */
export const runQuery = z.object({
  period: periodParameter.optional().meta({ description: `${PERIOD_DEFAULT} by default` }),
  provider: providerParameter.optional(),
});

export const runBody = z
  .strictObject({
    period: periodParameter.optional().meta({ description: `${PERIOD_DEFAULT} by default` }),
    provider: providerParameter.nullish().meta({ description: 'Absent or null: every provider' }),
  })
  .meta({ id: 'GapRunRequest' });

/** Period and provider of a new run. Error invalid_parameter when query and body name different values. */
export function requestedRun(
  query: z.output<typeof runQuery>,
  body: z.output<typeof runBody>,
): { period: GapPeriod; provider: string | null } {
  const issues = (['period', 'provider'] as const).flatMap((field): FieldIssue[] => {
    const [asked, sent] = [query[field], body[field] ?? undefined];
    if (asked === undefined || sent === undefined || asked === sent) return [];
    return [{ in: 'query', field, message: `has another value in the body (${sent}); send one value` }];
  });
  if (issues.length > 0) {
    const detail = issues.map(({ field, message }) => `${field}: ${message}`).join('; ');
    throw new DomainError('invalid_parameter', detail, { issues });
  }
  return {
    period: query.period ?? body.period ?? PERIOD_DEFAULT,
    provider: query.provider ?? body.provider ?? null,
  };
}

export const listRunsQuery = z.object({
  provider: providerParameter.optional(),
  status: runStatusSchema.optional(),
  ...offsetParameters(),
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
    list_rate_per_mtok: usd.meta({
      description: 'What should hold: the organization’s contract, else its override, else the list',
    }),
    billed_usd: usd,
    expected_usd: usd,
    excess_usd: usd.meta({
      description: 'billed_usd − expected_usd; negative where the bill is below what should hold',
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

/** Two copies of the same billed day or month that differ. */
export const sourceDifferenceSchema = z.strictObject({
  provider: z.string(),
  provider_account_id: z.string(),
  day: z.string(),
  span: z.enum(['day', 'month']).meta({
    description:
      'month: an invoice that names no day, beside the sum of the days that count; day is then the month’s first',
  }),
  charge_category: z.string(),
  counted_kind: z.enum(['file', 'api']),
  counted_import_id: z.string().meta({
    description:
      'imp_… of an imported file, src_… of what a connection fetched; the latest of several for a month',
  }),
  counted_usd: usd.meta({
    description: 'What counts, with what later bills have of the day as far as it counts',
  }),
  other_kind: z.enum(['file', 'api']),
  other_import_id: z.string(),
  other_usd: usd.meta({ description: 'The same item in the other copy' }),
  difference_usd: usd.meta({ description: 'other_usd − counted_usd' }),
});

const withheldSchema = z
  .strictObject({
    provider: z.string(),
    provider_account_id: z.string(),
    kind: z.string(),
    month: z.string().meta({ description: 'YYYY-MM in which the disputes begin' }),
    dispute_ids: z.array(z.string()),
    disputed_usd: usd,
    undercharged_usd: usd,
  })
  .meta({ id: 'WithheldClaim' });

export const runSchema = z
  .strictObject({
    id: z.string().meta({ example: 'run_0199f3a2c4d57e3a8f00112233445566' }),
    run_id: z.string(),
    kind: z.literal('gap_run'),
    status: runStatusSchema,
    period: z.enum(GAP_PERIODS),
    provider: z.string().nullable().meta({ description: 'Null: every provider that has bills' }),
    progress: progressSchema.meta({
      description: 'In provider-days that are compared and, once they are known, series that are explained',
    }),
    result: z
      .strictObject({
        provider_days: z.int().nullable().meta({
          description:
            'Provider-days with a bill that were looked at; null in results from before it was kept',
        }),
        unchanged_days: z.int().nullable().meta({
          description: 'Of them: as the last run had found them, so that they were not compared again',
        }),
        total: z.int(),
        flagged: z.int(),
        reason: z.literal('no_billing_data').optional(),
        rate_mismatches: z
          .array(mismatchSchema)
          .meta({ description: 'What the bill alone shows, largest amount first; at most 200' }),
        rate_mismatch_count: z.int(),
        source_differences: z
          .array(sourceDifferenceSchema)
          .meta({ description: 'Copies of a day’s bill that do not say the same' }),
        suspect_keys: z.array(suspectKeySchema).meta({
          description:
            'Billed keys that no entry of provider-keys and no call knows, or that were billed after they were revoked; at most 200',
        }),
        suspect_key_count: z.int(),
        failed_units: z.array(z.strictObject({ provider: z.string(), day: z.string(), message: z.string() })),
        failed_accounts: z
          .array(
            z.strictObject({ provider: z.string(), provider_account_id: z.string(), message: z.string() }),
          )
          .meta({
            description:
              'Accounts whose differences could not be explained: their findings are the former ones',
          }),
        claims_drafted: z.array(z.string()).meta({
          description: 'Claims that the run has drafted over what people have confirmed',
        }),
        claims_withheld: z.array(withheldSchema).meta({
          description:
            'Disputes over which nothing was drafted, since as much was charged too little in their months; at most 200',
        }),
      })
      .nullable(),
    ...runEndFields('A run of this period and provider is open: this is that run'),
  })
  .meta({ id: 'GapRun' });

type RunWire = z.output<typeof runSchema>;

export const listRunsResponse = z.strictObject({ runs: z.array(runSchema), ...pageFields });

function presentMismatch(mismatch: MergedMismatch): z.output<typeof mismatchSchema> {
  const { quantity, billed_rate, list_rate, billed_usd, expected_usd, excess_usd, ...same } = mismatch;
  return {
    ...same,
    tokens: usdNumberFromDecimal(quantity),
    billed_rate_per_mtok: usdNumberFromDecimal(billed_rate),
    list_rate_per_mtok: usdNumberFromDecimal(list_rate),
    billed_usd: usdNumberFromDecimal(billed_usd),
    expected_usd: usdNumberFromDecimal(expected_usd),
    excess_usd: usdNumberFromDecimal(excess_usd),
    excess_usd_exact: excess_usd,
    looks_like: mismatch.looks_like ?? [],
  };
}

function presentResult(result: GapRunResult): NonNullable<RunWire['result']> {
  return {
    provider_days: result.provider_days ?? null,
    unchanged_days: result.unchanged_days ?? null,
    total: result.total,
    flagged: result.flagged,
    ...(result.reason ? { reason: result.reason } : {}),
    rate_mismatches: result.rate_mismatches.map(presentMismatch),
    rate_mismatch_count: result.rate_mismatch_count,
    source_differences: result.source_differences.map((difference) => ({
      provider: difference.provider,
      provider_account_id: difference.provider_account_id,
      day: difference.day,
      span: difference.span ?? 'day',
      charge_category: difference.charge_category,
      counted_kind: difference.counted_kind ?? 'file',
      counted_import_id: publicSourceId(difference.counted_kind ?? 'file', difference.counted_import_id),
      counted_usd: usdNumberFromDecimal(difference.counted_usd),
      other_kind: difference.other_kind ?? 'file',
      other_import_id: publicSourceId(difference.other_kind ?? 'file', difference.other_import_id),
      other_usd: usdNumberFromDecimal(difference.other_usd),
      difference_usd: usdNumberFromPico(
        (picoFromDecimal(difference.other_usd) ?? 0n) - (picoFromDecimal(difference.counted_usd) ?? 0n),
      ),
    })),
    suspect_keys: (result.suspect_keys ?? []).map(({ billed_usd, ...key }) =>
      presentSuspectKey({
        ...key,
        billed_usd: billed_usd === null ? null : usdNumberFromDecimal(billed_usd),
      }),
    ),
    suspect_key_count: result.suspect_key_count ?? 0,
    failed_units: result.failed_units.map(({ provider, day, message }) => ({ provider, day, message })),
    failed_accounts: (result.failed_accounts ?? []).map(({ provider, provider_account_id, message }) => ({
      provider,
      provider_account_id,
      message,
    })),
    claims_drafted: (result.drafts?.claim_ids ?? []).map((id) => publicId('clm', id)),
    claims_withheld: (result.drafts?.withheld ?? []).map((one) => ({
      provider: one.provider,
      provider_account_id: one.provider_account_id,
      kind: one.kind,
      month: one.month,
      dispute_ids: one.dispute_ids.map((id) => publicId('dsp', id)),
      disputed_usd: usdNumberFromDecimal(one.disputed_usd),
      undercharged_usd: usdNumberFromDecimal(one.undercharged_usd),
    })),
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
    result: run.result && RUN_TERMINAL_STATUSES.has(run.status) ? presentResult(run.result) : null,
    ...presentRunEnd(run, `${RUNS_PATH}/${id}`),
  };
}

/** Most buckets of one answer: ninety days of some hundred models fit. */
const BUCKETS_MAX = 10_000;

export const explorerQuery = periodQuery.extend({
  flagged_only: booleanParameter
    .optional()
    .meta({ description: 'Only the flagged buckets that are unmatched' }),
  flagged: booleanParameter.optional().meta({ description: 'All flagged buckets, partial ones too' }),
  ...pageParametersOf(BUCKETS_MAX, BUCKETS_MAX),
});

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
    invoice_period_start: z
      .string()
      .meta({ description: 'Of the uploaded invoice that charges for the bucket, else the UTC month' }),
    invoice_period_end: z.string().meta({ description: 'The first moment after it' }),
    invoice_aligned: z
      .boolean()
      .meta({ description: 'An uploaded invoice charges for the bucket, and it says what the bill says' }),
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
      description: 'provider_cost_usd − our_cost_usd, split exactly; null where the bill has no quantities',
    }),
    run_id: z.string(),
    invoice_id: z
      .string()
      .nullable()
      .meta({ description: 'The uploaded invoice that charges for the bucket' }),
  })
  .meta({ id: 'GapBucket' });

export const explorerResponse = z.strictObject({
  period: z.strictObject({ start: z.string(), end: z.string() }),
  total: z.int(),
  flagged: z.int(),
  gaps: z.array(gapSchema),
  ...cursoredPageFields,
});

export function presentGap(
  bucket: PublishedBucket,
  invoices: readonly InvoicePeriod[],
): z.output<typeof gapSchema> {
  const invoice = invoiceOfDay(invoices, { ...bucket, day: dayOf(bucket.bucketMicros) });
  const month = monthOf(bucket.bucketMicros);
  const startMicros = invoice ? microsOfDay(invoice.fromDay) : startOfMonth(month);
  const endMicros = invoice ? microsOfDay(shiftDay(invoice.toDay, 1)) : endOfMonth(month);
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
    invoice_period_start: isoFromMicros(startMicros),
    invoice_period_end: isoFromMicros(endMicros),
    invoice_aligned: invoice !== undefined && isAligned(invoice),
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
    invoice_id: invoice ? publicId('inv', invoice.id) : null,
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

/** The list as CSV. */
export const gapsCsv = csvList('billed-days', 'gaps', gapSchema);
