import { z } from 'zod';
import type { BrokenPolicy } from '../../../db/claims/financialSums.js';
import type { SavingsRun } from '../../../db/policies/savingsRuns.js';
import type { StoredFinding } from '../../../db/reconciliation/findings.js';
import {
  FINDING_STATUSES,
  type FinancialSummary,
  type RecoverableMonth,
  severityOf,
} from '../../../domain/claims/financialSummary.js';
import { publicId } from '../../../domain/ids.js';
import {
  absPico,
  decimalFromPico,
  type Pico,
  parseScaled,
  usdNumberFromPico,
} from '../../../domain/money.js';
import { dayOf, isoFromMicros, isoOrNull } from '../../../domain/period.js';
import { SEVERITIES } from '../../../domain/policies/alert.js';
import { DIRECTIONS } from '../../../domain/reconciliation/engine/index.js';

import { GRADES } from '../../../domain/reconciliation/matching/cells.js';
import { FINDING_KINDS } from '../../../domain/reconciliation/taxonomy.js';
import { policyItemId, type QueueItem } from '../../../usecases/claims/reviewQueue.js';
import { cursoredPageFields, pageParameters } from '../../paging.js';
import { filterParameter, instantParameter, publicIdText, withDefault, wordParameter } from '../../query.js';
import { evidenceRefs } from '../../reconciliation/findings/wire.js';

export const REVIEW_PATH = '/api/v1/financial/review-queue';
const NOTES_CHARS_MAX = 4_000;
const PICO_DIGITS = 12;
const AMOUNT_RULE = 'must be an amount of dollars such as 12.50, none below zero';

const amountParameter = z
  .string()
  .regex(/^\d{1,9}(\.\d{1,12})?$/, { error: AMOUNT_RULE })
  .transform((text): Pico => parseScaled(text, PICO_DIGITS) ?? 0n)
  .meta({
    // The query parameter is a number as text; the OpenAPI document shows a number.
    override: ({ jsonSchema }: { jsonSchema: Record<string, unknown> }) => {
      delete jsonSchema.pattern;
      Object.assign(jsonSchema, { type: 'number', minimum: 0, maximum: 999_999_999 });
    },
  });

export const reviewQuery = z.object({
  provider: filterParameter.optional(),
  status: withDefault(wordParameter(FINDING_STATUSES), 'open'),
  direction: withDefault(
    wordParameter(DIRECTIONS).meta({
      description: 'undercharge: an amount that the provider charged too little, which reduces the claim',
    }),
    'overcharge',
  ),
  min_impact_usd: amountParameter.optional(),
  ...pageParameters,
});

export const reviewParams = z.object({
  id: publicIdText('an item').meta({ example: 'fnd_0199f3a2c4d57e3a8f00112233445566' }),
});

const words = (emptyMessage?: string) => {
  const text = z
    .string()
    .trim()
    .max(NOTES_CHARS_MAX, {
      error: `must have at most ${NOTES_CHARS_MAX} characters`,
    });
  return emptyMessage === undefined ? text : text.min(1, { error: emptyMessage });
};

export const confirmBody = z
  .strictObject({
    notes: words().nullable().optional(),
    reopen: z.boolean().optional().meta({ description: 'Confirm although it was dismissed before' }),
  })
  .meta({ id: 'Confirmation' });

export const dismissBody = z
  .strictObject({ reason: words('must not be empty: say why there is nothing in it') })
  .meta({ id: 'Dismissal' });

export const reviewItemSchema = z
  .strictObject({
    id: z.string(),
    kind: z.enum([...FINDING_KINDS, 'policy']).meta({
      description: 'A key of the violation taxonomy, unexplained, or policy: calls that broke a policy',
    }),
    direction: z.enum(DIRECTIONS),
    provider: z.string().nullable().meta({ description: 'Null: calls of several' }),
    provider_account_id: z.string().nullable(),
    model: z.string().nullable(),
    period_start: z.string(),
    period_end: z.string(),
    impact_usd: z.number().meta({ description: 'How many dollars it is about, whichever way' }),
    impact_usd_exact: z.string(),
    confidence: z.enum(GRADES).nullable(),
    confidence_score: z.number().nullable(),
    severity: z.enum(SEVERITIES),
    reason: z.string(),
    advice: z.array(z.string()),
    evidence_refs: z.array(z.string()),
    dispute_id: z.string().nullable(),
    status: z.enum(FINDING_STATUSES),
    decided_at: z.string().nullable(),
    decided_by: z.string().nullable(),
    decision_reason: z.string().nullable(),
    created_at: z.string(),
  })
  .meta({ id: 'ReviewItem' });

export const reviewResponse = z.strictObject({
  items: z.array(reviewItemSchema),
  ...cursoredPageFields,
  total_items: z.int().meta({ description: 'All that the filter lets through' }),
  total_impact_usd: z.number().meta({ description: 'Of all that the filter lets through' }),
});

type ReviewItem = z.output<typeof reviewItemSchema>;

export const presentItem = ({ of }: QueueItem): ReviewItem =>
  'finding' in of ? presentReviewItem(of.finding) : presentPolicyItem(of.policy);

export function presentReviewItem(finding: StoredFinding): ReviewItem {
  const size = absPico(finding.impactPico);
  return {
    id: publicId('fnd', finding.id),
    kind: finding.kind,
    direction: finding.direction,
    provider: finding.provider,
    provider_account_id: finding.accountId,
    model: finding.model,
    period_start: finding.firstDay,
    period_end: finding.lastDay,
    impact_usd: usdNumberFromPico(size),
    impact_usd_exact: decimalFromPico(size),
    confidence: finding.grade,
    confidence_score: finding.probability,
    severity: severityOf(finding),
    reason: finding.reason,
    advice: [...finding.advice],
    evidence_refs: evidenceRefs({ ...finding, findingId: finding.id }),
    dispute_id: finding.disputeId === null ? null : publicId('dsp', finding.disputeId),
    status: finding.status,
    decided_at: isoOrNull(finding.decidedAtMicros),
    decided_by: finding.decidedBy,
    decision_reason: finding.decisionReason,
    created_at: isoFromMicros(finding.foundAtMicros),
  };
}

/**
 * Calls that broke a policy. People review the alerts themselves, so the item can be neither confirmed nor dismissed.
 */
function presentPolicyItem(policy: BrokenPolicy): ReviewItem {
  const alerts = new URLSearchParams({ kind: 'policy', policy_type: policy.policyType, status: 'open' });
  const unknown =
    policy.alertsWithoutCost === 0 ? '' : `; the cost of ${policy.alertsWithoutCost} of them is unknown`;
  return {
    id: policyItemId(policy),
    kind: 'policy',
    direction: 'overcharge',
    provider: policy.provider,
    provider_account_id: null,
    model: policy.model,
    period_start: dayOf(policy.firstMicros),
    period_end: dayOf(policy.lastMicros),
    impact_usd: usdNumberFromPico(policy.impactPico),
    impact_usd_exact: decimalFromPico(policy.impactPico),
    confidence: null,
    confidence_score: null,
    severity: policy.severity,
    reason: `${policy.alerts === 1 ? 'One call has' : `${policy.alerts} calls have`} broken the policy ${policy.policyType}, and nobody has acknowledged it${unknown}.`,
    advice: [`Look into its open alerts and acknowledge them: POST /api/v1/alerts/{id}/acknowledge.`],
    evidence_refs: [`/api/v1/alerts?${alerts}`],
    dispute_id: null,
    status: 'open',
    decided_at: null,
    decided_by: null,
    decision_reason: null,
    created_at: isoFromMicros(policy.createdAtMicros),
  };
}

export const FINANCIAL_SUMMARY_PATH = '/api/v1/financial/summary';

export const summaryQuery = z.object({
  from: instantParameter
    .optional()
    .meta({ description: 'Days and calls from here on; absent: from the first one' }),
  to: instantParameter
    .optional()
    .meta({ description: 'Days and calls up to here; a date means the whole day; absent: up to now' }),
});

const cents = (description: string) => z.number().meta({ description: `${description}. To the cent` });
const exact = (description: string) => z.string().meta({ description: `${description}. Exact` });

const monthSchema = z
  .strictObject({
    provider: z.string(),
    provider_account_id: z.string(),
    month: z.string().meta({ example: '2026-10' }),
    confirmed_usd_exact: exact('Overcharges that are graded HIGH or confirmed'),
    review_usd_exact: exact('Overcharges of the grades MEDIUM and LOW'),
    undercharged_usd_exact: exact('What the provider charged too little'),
    recoverable_confirmed_usd: cents(
      'Confirmed less undercharged, not below zero, rounded down; adds up to the number of the same name',
    ),
    recoverable_review_usd: cents(
      'Review less what is left of undercharged, not below zero, rounded down; adds up likewise',
    ),
    unexplained_critical_usd: cents('Large charges that nothing explains; adds up likewise'),
    unexplained_review_usd: cents('Other charges that nothing explains; adds up likewise'),
  })
  .meta({ id: 'RecoverableMonth' });

export const summaryResponse = z
  .strictObject({
    recoverable_confirmed_usd: cents('Billing errors to claim from the provider'),
    recoverable_review_usd: cents('Possible billing errors that need a review'),
    prevented_usd: cents('What calls would have cost that enforcement rules have blocked'),
    preventable_modeled_usd: cents(
      'What the rules would have saved by the newest savings run: of 30 days unless from and to are given',
    ),
    unexplained_critical_usd: cents('Large charges that nothing explains'),
    unexplained_review_usd: cents('Other charges that nothing explains'),
    total_financial_opportunity_usd: cents('The sum of the six numbers as they are shown'),
    from: z.string().nullable(),
    to: z.string().nullable(),
    preventable_modeled_as_of: z
      .string()
      .nullable()
      .meta({ description: 'When that run began; null: no run yet, so the number has no meaning' }),
    breakdown: z.array(monthSchema).meta({ description: 'Newest month first' }),
    not_counted: z
      .strictObject({
        provisional_usd_exact: exact('Overcharges of days that the provider may still restate'),
        unverified_usd_exact: exact('Overcharges that cannot be verified'),
        not_claimable_usd_exact: exact('Overcharges of kinds that are claimed only after confirmation'),
        unexplained_undercharged_usd_exact: exact('Charges too low that nothing explains'),
      })
      .meta({ description: 'What was found and stands in none of the six numbers' }),
  })
  .meta({ id: 'FinancialSummary' });

function presentMonth(month: RecoverableMonth): z.output<typeof monthSchema> {
  return {
    provider: month.provider,
    provider_account_id: month.accountId,
    month: month.month,
    confirmed_usd_exact: decimalFromPico(month.confirmedPico),
    review_usd_exact: decimalFromPico(month.reviewPico),
    undercharged_usd_exact: decimalFromPico(month.underchargedPico),
    recoverable_confirmed_usd: usdNumberFromPico(month.recoverableConfirmedPico),
    recoverable_review_usd: usdNumberFromPico(month.recoverableReviewPico),
    unexplained_critical_usd: usdNumberFromPico(month.unexplainedCriticalPico),
    unexplained_review_usd: usdNumberFromPico(month.unexplainedReviewPico),
  };
}

export function presentFinancialSummary(
  summary: FinancialSummary,
  window: { fromMicros: bigint | undefined; toMicros: bigint | undefined },
  modeled: SavingsRun | undefined,
): z.output<typeof summaryResponse> {
  return {
    recoverable_confirmed_usd: usdNumberFromPico(summary.recoverableConfirmedPico),
    recoverable_review_usd: usdNumberFromPico(summary.recoverableReviewPico),
    prevented_usd: usdNumberFromPico(summary.preventedPico),
    preventable_modeled_usd: usdNumberFromPico(summary.preventableModeledPico),
    unexplained_critical_usd: usdNumberFromPico(summary.unexplainedCriticalPico),
    unexplained_review_usd: usdNumberFromPico(summary.unexplainedReviewPico),
    total_financial_opportunity_usd: usdNumberFromPico(summary.totalPico),
    from: window.fromMicros === undefined ? null : isoFromMicros(window.fromMicros),
    to: window.toMicros === undefined ? null : isoFromMicros(window.toMicros - 1n),
    preventable_modeled_as_of: isoOrNull(modeled?.asOfMicros ?? null),
    breakdown: summary.breakdown.map(presentMonth),
    not_counted: {
      provisional_usd_exact: decimalFromPico(summary.provisionalPico),
      unverified_usd_exact: decimalFromPico(summary.unverifiedPico),
      not_claimable_usd_exact: decimalFromPico(summary.notClaimablePico),
      unexplained_undercharged_usd_exact: decimalFromPico(summary.unexplainedUnderchargedPico),
    },
  };
}
