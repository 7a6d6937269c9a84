import { z } from 'zod';
import type { StoredDispute } from '../../../db/claims/disputes.js';
import { DISPUTE_STATUSES, DISPUTE_TIERS } from '../../../domain/claims/financialSummary.js';
import { publicId } from '../../../domain/ids.js';
import { usdNumberFromPico } from '../../../domain/money.js';
import { isoFromMicros, isoOrNull } from '../../../domain/period.js';
import { FINDING_KINDS } from '../../../domain/reconciliation/taxonomy.js';
import type { WholeDispute } from '../../../usecases/claims/decideFindings.js';
import { csvList } from '../../csv.js';
import { cursoredPageFields, pageParameters } from '../../paging.js';
import { filterParameter, publicIdText, wordParameter } from '../../query.js';
import {
  evidenceRefs,
  findingDayFields,
  findingLineSchema,
  presentDay,
  presentLine,
  presentWaterfall,
  waterfallSchema,
} from '../../reconciliation/findings/wire.js';

export const DISPUTES_PATH = '/api/v1/financial/disputes';

export const listDisputesQuery = z.object({
  status: wordParameter(DISPUTE_STATUSES).optional(),
  provider: filterParameter.optional(),
  ...pageParameters,
});

export const exportDisputesQuery = z.object({ status: wordParameter(DISPUTE_STATUSES).optional() });

const RESOLUTION_CHARS_MAX = 64;
const NOTES_CHARS_MAX = 4_000;
/** Suggested resolutions; any other word is accepted too. */
const USUAL_RESOLUTIONS = [
  'credit_received',
  'credit_partial',
  'provider_correct',
  'our_error',
  'duplicate',
  'written_off',
  'other',
];

export const resolveBody = z
  .strictObject({
    resolution: z
      .string()
      .trim()
      .min(1, { error: 'must not be empty: say what came of it' })
      .max(RESOLUTION_CHARS_MAX, { error: `must have at most ${RESOLUTION_CHARS_MAX} characters` })
      .meta({ description: `Usually one of ${USUAL_RESOLUTIONS.join(', ')}` }),
    notes: z
      .string()
      .trim()
      .max(NOTES_CHARS_MAX, { error: `must have at most ${NOTES_CHARS_MAX} characters` })
      .nullable()
      .optional(),
  })
  .meta({ id: 'DisputeResolution' });

export const disputeParams = z.object({
  id: publicIdText('a dispute').meta({ example: 'dsp_0199f3a2c4d57e3a8f00112233445566' }),
});

const disputeFields = {
  id: z.string(),
  org_id: z.string(),
  claim_id: z.string().nullable(),
  finding_id: z.string(),
  provider: z.string(),
  provider_account_id: z.string(),
  model: z.string(),
  period_start: z.string(),
  period_end: z.string(),
  kind: z.enum(FINDING_KINDS),
  status: z.enum(DISPUTE_STATUSES),
  amount_cents: z.int().meta({ description: 'The requested credit, rounded down' }),
  provider_cost_usd: z.number(),
  our_cost_usd: z.number().meta({ description: 'What would have been right' }),
  confidence_tier: z.enum(DISPUTE_TIERS),
  reason: z.string().meta({ description: 'The finding’s own words when the dispute was opened' }),
  resolution: z.string().nullable(),
  notes: z
    .string()
    .nullable()
    .meta({ description: 'From the person who resolved it; before that, from the person who opened it' }),
  opened_at: z.string(),
  opened_by: z.string(),
  resolved_at: z.string().nullable(),
  resolved_by: z.string().nullable(),
  still_found: z.boolean().meta({
    description: 'false: later runs no longer find it; the bill may have been restated',
  }),
  evidence_refs: z.array(z.string()),
};

export const disputeSchema = z.strictObject(disputeFields).meta({ id: 'Dispute' });

export const wholeDisputeSchema = z
  .strictObject({
    ...disputeFields,
    days: z
      .array(z.strictObject(findingDayFields))
      .meta({ description: 'As they were when it was opened; no later run changes them' }),
    evidence: z.strictObject({
      lines: z.array(findingLineSchema),
      waterfall: waterfallSchema,
      next_best: z.strictObject({ kind: z.string(), odds: z.number().nullable() }).nullable(),
      weight_set: z.string(),
    }),
  })
  .meta({ id: 'WholeDispute' });

export const listDisputesResponse = z.strictObject({
  disputes: z.array(disputeSchema),
  ...cursoredPageFields,
});

export function presentDispute(orgId: string, dispute: StoredDispute): z.output<typeof disputeSchema> {
  return {
    id: publicId('dsp', dispute.id),
    org_id: publicId('org', orgId),
    claim_id: dispute.claimId === null ? null : publicId('clm', dispute.claimId),
    finding_id: publicId('fnd', dispute.findingId),
    provider: dispute.provider,
    provider_account_id: dispute.accountId,
    model: dispute.model,
    period_start: dispute.periodStart,
    period_end: dispute.periodEnd,
    kind: dispute.kind,
    status: dispute.status,
    amount_cents: dispute.amountCents,
    provider_cost_usd: usdNumberFromPico(dispute.billedPico),
    our_cost_usd: usdNumberFromPico(dispute.expectedPico),
    confidence_tier: dispute.tier,
    reason: dispute.reason,
    resolution: dispute.resolution,
    notes: dispute.resolutionNotes ?? dispute.notes,
    opened_at: isoFromMicros(dispute.openedAtMicros),
    opened_by: dispute.openedBy,
    resolved_at: isoOrNull(dispute.resolvedAtMicros),
    resolved_by: dispute.resolvedBy,
    still_found: dispute.isFound,
    evidence_refs: evidenceRefs({
      ...dispute,
      firstDay: dispute.periodStart,
      lastDay: dispute.periodEnd,
    }),
  };
}

export function presentWholeDispute(
  orgId: string,
  { dispute, days, evidence: { lines, waterfall, next, weightSet } }: WholeDispute,
): z.output<typeof wholeDisputeSchema> {
  return {
    ...presentDispute(orgId, dispute),
    days: days.map(presentDay),
    evidence: {
      lines: lines.map(presentLine),
      waterfall: presentWaterfall(waterfall),
      next_best: next && { kind: next.kind, odds: next.odds },
      weight_set: weightSet,
    },
  };
}

/** The list as CSV. */
export const disputesCsv = csvList('disputes', 'disputes', disputeSchema);
