import { z } from 'zod';
import type { FindingEvidence, StoredFinding } from '../../../db/reconciliation/findings.js';
import { QUANTITY_SCALE } from '../../../domain/billing/billedRow.js';
import { FINDING_STATUSES, isForReview } from '../../../domain/claims/financialSummary.js';
import { publicId } from '../../../domain/ids.js';
import {
  decimalFromPico,
  decimalFromScaled,
  usdNumberFromPico,
  usdNumberOrNull,
} from '../../../domain/money.js';
import { isoFromMicros, isoOrNull } from '../../../domain/period.js';
import { BLAMES, DIRECTIONS, type FindingDay, GATES } from '../../../domain/reconciliation/engine/index.js';

import { GRADES, VISIBILITIES, type WaterfallStep } from '../../../domain/reconciliation/matching/cells.js';
import { FINDING_KINDS } from '../../../domain/reconciliation/taxonomy.js';
import { csvList } from '../../csv.js';
import { cursoredPageFields, pageParameters } from '../../paging.js';
import { filterParameter, instantParameter, publicIdText, wordParameter } from '../../query.js';

export const FINDINGS_PATH = '/api/v1/financial/findings';

export const listFindingsQuery = z.object({
  provider: filterParameter.optional(),
  provider_account_id: filterParameter
    .optional()
    .meta({ description: 'The provider’s account; empty: of calls whose account is unknown' }),
  invoice_id: filterParameter.optional().meta({ description: 'Findings of one uploaded invoice' }),
  model: filterParameter.optional(),
  kind: wordParameter(FINDING_KINDS).optional(),
  confidence: wordParameter(GRADES, (word) => word.toUpperCase()).optional(),
  blame: wordParameter(BLAMES)
    .optional()
    .meta({ description: 'own: what is to be changed in the organization’s own calls and prices' }),
  direction: wordParameter(DIRECTIONS).optional(),
  status: wordParameter(FINDING_STATUSES).optional(),
  from: instantParameter.optional().meta({ description: 'Findings with a day from here on' }),
  to: instantParameter.optional().meta({ description: 'Findings with a day up to here; inclusive' }),
  ...pageParameters,
});

export const findingParams = z.object({
  id: publicIdText('a finding').meta({ example: 'fnd_0199f3a2c4d57e3a8f00112233445566' }),
});

const usd = z.number();
const exact = z.string().meta({ description: 'The same amount to the pico-dollar' });

const findingFields = {
  id: z.string(),
  kind: z
    .enum(FINDING_KINDS)
    .meta({ description: 'What is wrong: a key of the violation taxonomy, or unexplained' }),
  variant: z.string().meta({ description: 'The way in which it was made; empty where there is but one' }),
  direction: z.enum(DIRECTIONS),
  blame: z
    .enum(BLAMES)
    .meta({ description: 'The party that made the mistake; none: no mistake, or not known' }),
  claimable: z.boolean(),
  provider: z.string(),
  provider_account_id: z.string(),
  model: z.string(),
  period_start: z.string().meta({ description: 'First day' }),
  period_end: z.string().meta({ description: 'Last day' }),
  provider_cost_usd: usd,
  our_cost_usd: usd.meta({ description: 'What would have been right' }),
  impact_usd: usd.meta({
    description: 'provider_cost_usd − our_cost_usd; below zero where too little was charged',
  }),
  impact_usd_exact: exact,
  recoverable_usd: usd,
  confidence: z.enum(GRADES),
  confidence_score: z.number(),
  match_score: z.number().meta({ description: 'How surely the charges are these calls’' }),
  visibility: z.enum(VISIBILITIES),
  provisional: z.boolean().meta({ description: 'The provider may still restate these days' }),
  critical: z.boolean(),
  in_review_queue: z.boolean().meta({ description: 'Whether people are asked to decide on it' }),
  missing_gates: z.array(z.enum(GATES)).meta({ description: 'What does not hold and lowers the grade' }),
  next_best: z
    .strictObject({
      kind: z.string(),
      odds: z.number().nullable().meta({ description: 'Null: beyond what a number holds' }),
    })
    .nullable()
    .meta({ description: 'The next best explanation, and how many times less likely it is' }),
  reason: z.string(),
  advice: z.array(z.string()),
  status: z.enum(FINDING_STATUSES).meta({
    description: 'gone: it was decided on, and later runs no longer find it',
  }),
  decided_at: z.string().nullable(),
  decided_by: z.string().nullable(),
  decision_reason: z.string().nullable(),
  dispute_id: z.string().nullable().meta({ description: 'The newest dispute over it' }),
  weight_set: z.string(),
  run_id: z.string().meta({ description: 'The run that last found it' }),
  invoice_id: z
    .string()
    .nullable()
    .meta({ description: 'The invoice that it was found in; null: bills were compared with calls' }),
  created_at: z.string(),
  updated_at: z.string(),
};

export const findingSchema = z.strictObject(findingFields).meta({ id: 'Finding' });

/** Dollars of a day: impact = rate + volume + own pricing, exact to the pico-dollar. */
export const findingDayFields = {
  day: z.string(),
  provider_cost_usd_exact: exact,
  our_cost_usd_exact: exact,
  impact_usd_exact: exact,
  rate_usd_exact: exact,
  volume_usd_exact: exact,
  own_pricing_usd_exact: exact,
};

export const findingLineSchema = z
  .strictObject({
    token_class: z.string(),
    service_tier: z.string(),
    is_batch: z.boolean().nullable(),
    long_context: z.boolean().nullable(),
    region: z.string().nullable(),
    billed_quantity: z.string().nullable().meta({ description: 'Null where the bill gives none' }),
    observed_quantity: z.string(),
    billed_usd_per_mtok: usd.nullable().meta({ description: 'Null: a mixture, or not known' }),
    expected_usd_per_mtok: usd.nullable(),
    provider_cost_usd_exact: exact,
    our_cost_usd_exact: exact,
  })
  .meta({ id: 'FindingLine' });

export const waterfallSchema = z
  .array(z.strictObject({ signal: z.string(), level: z.string(), bits: z.number() }))
  .meta({ description: 'The evidence in bits, step by step' });

export const wholeFindingSchema = z
  .strictObject({
    ...findingFields,
    parts: z
      .strictObject({ rate_usd_exact: exact, volume_usd_exact: exact, own_pricing_usd_exact: exact })
      .meta({ description: 'They add up to impact_usd_exact' }),
    days: z.array(z.strictObject({ ...findingDayFields, confidence_score: z.number() })),
    lines: z.array(findingLineSchema).meta({ description: 'The classes of the computation, over all days' }),
    waterfall: waterfallSchema,
    evidence_refs: z.array(z.string()),
  })
  .meta({ id: 'WholeFinding' });

export const listFindingsResponse = z.strictObject({
  findings: z.array(findingSchema),
  ...cursoredPageFields,
});

/** API addresses of the evidence of an account's days. */
export function evidenceRefs(of: {
  findingId: string;
  runId: string;
  provider: string;
  firstDay: string;
  lastDay: string;
}): string[] {
  const matches = new URLSearchParams({ provider: of.provider, from: of.firstDay, to: of.lastDay });
  return [
    `${FINDINGS_PATH}/${publicId('fnd', of.findingId)}`,
    `/api/v1/reconciliation/matches?${matches}`,
    `/api/v1/reconciliation/gap-explorer/runs/${publicId('run', of.runId)}`,
  ];
}

export function presentFinding(finding: StoredFinding): z.output<typeof findingSchema> {
  return {
    id: publicId('fnd', finding.id),
    kind: finding.kind,
    variant: finding.variant,
    direction: finding.direction,
    blame: finding.blame,
    claimable: finding.claimable,
    provider: finding.provider,
    provider_account_id: finding.accountId,
    model: finding.model,
    period_start: finding.firstDay,
    period_end: finding.lastDay,
    provider_cost_usd: usdNumberFromPico(finding.billedPico),
    our_cost_usd: usdNumberFromPico(finding.expectedPico),
    impact_usd: usdNumberFromPico(finding.impactPico),
    impact_usd_exact: decimalFromPico(finding.impactPico),
    recoverable_usd: usdNumberFromPico(finding.recoverablePico),
    confidence: finding.grade,
    confidence_score: finding.probability,
    match_score: finding.matchProbability,
    visibility: finding.visibility,
    provisional: finding.provisional,
    critical: finding.critical,
    in_review_queue: isForReview(finding),
    missing_gates: [...finding.missing],
    next_best: finding.next && { kind: finding.next.kind, odds: finding.next.odds },
    reason: finding.reason,
    advice: [...finding.advice],
    status: finding.status,
    decided_at: isoOrNull(finding.decidedAtMicros),
    decided_by: finding.decidedBy,
    decision_reason: finding.decisionReason,
    dispute_id: finding.disputeId === null ? null : publicId('dsp', finding.disputeId),
    weight_set: finding.weightSet,
    run_id: publicId('run', finding.runId),
    invoice_id: finding.invoiceId === null ? null : publicId('inv', finding.invoiceId),
    created_at: isoFromMicros(finding.foundAtMicros),
    updated_at: isoFromMicros(finding.updatedAtMicros),
  };
}

export function presentDay(day: Omit<FindingDay, 'probability'>) {
  return {
    day: day.day,
    provider_cost_usd_exact: decimalFromPico(day.billedPico),
    our_cost_usd_exact: decimalFromPico(day.expectedPico),
    impact_usd_exact: decimalFromPico(day.impactPico),
    rate_usd_exact: decimalFromPico(day.ratePico),
    volume_usd_exact: decimalFromPico(day.volumePico),
    own_pricing_usd_exact: decimalFromPico(day.ownPricingPico),
  };
}

export function presentLine(line: FindingEvidence['lines'][number]): z.output<typeof findingLineSchema> {
  return {
    token_class: line.tokenClass,
    service_tier: line.serviceTier,
    is_batch: line.isBatch,
    long_context: line.longContext,
    region: line.region,
    billed_quantity:
      line.billedQuantity === null ? null : decimalFromScaled(line.billedQuantity, QUANTITY_SCALE),
    observed_quantity: decimalFromScaled(line.observedQuantity, QUANTITY_SCALE),
    billed_usd_per_mtok: usdNumberOrNull(line.billedRate),
    expected_usd_per_mtok: usdNumberOrNull(line.expectedRate),
    provider_cost_usd_exact: decimalFromPico(line.billedPico),
    our_cost_usd_exact: decimalFromPico(line.expectedPico),
  };
}

export function presentWaterfall(steps: readonly WaterfallStep[]): z.output<typeof waterfallSchema> {
  return steps.map(({ signal, level, bits }) => ({ signal, level, bits }));
}

export function presentWholeFinding(
  finding: StoredFinding,
  days: readonly FindingDay[],
  { lines, waterfall }: FindingEvidence,
): z.output<typeof wholeFindingSchema> {
  const sum = (part: (day: FindingDay) => bigint) =>
    decimalFromPico(days.reduce((total, day) => total + part(day), 0n));
  return {
    ...presentFinding(finding),
    parts: {
      rate_usd_exact: sum((day) => day.ratePico),
      volume_usd_exact: sum((day) => day.volumePico),
      own_pricing_usd_exact: sum((day) => day.ownPricingPico),
    },
    days: days.map((day) => ({ ...presentDay(day), confidence_score: day.probability })),
    lines: lines.map(presentLine),
    waterfall: presentWaterfall(waterfall),
    evidence_refs: evidenceRefs({ ...finding, findingId: finding.id }),
  };
}

/** The list as CSV. */
export const findingsCsv = csvList('findings', 'findings', findingSchema);
