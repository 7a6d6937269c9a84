import { z } from 'zod';
import type { StoredCredit } from '../../../db/claims/claimCredits.js';
import type { ClaimEvent } from '../../../db/claims/claimEvents.js';
import type { ClaimOutcome } from '../../../db/claims/claimOutcomes.js';
import type { StoredClaim } from '../../../db/claims/claims.js';
import { DISPUTE_TIERS } from '../../../domain/claims/decision.js';
import type { MoveFields } from '../../../domain/claims/lifecycle.js';
import {
  CLAIM_STATUSES,
  isShortCredit,
  nextStatuses,
  requiredFor,
} from '../../../domain/claims/lifecycle.js';
import { publicId } from '../../../domain/ids.js';
import { isoFromMicros } from '../../../domain/period.js';
import { TAXONOMY_KINDS } from '../../../domain/reconciliation/taxonomy.js';
import { cursoredPageFields, pageParameters } from '../../paging.js';
import { filterParameter, wordParameter } from '../../query.js';
import { isoOrNull } from '../../runs/runWire.js';
import { creditMoveSchema, creditSchema, presentCredit, presentMove } from '../credits/wire.js';

export const CLAIMS_PATH = '/api/v1/claims';

/** Who reads claims, and who files them and records what the provider answers. */
export const CLAIM_READ = { scope: 'claims:read', workspace: 'refused' } as const;
export const CLAIM_ADMIN = { scope: 'claims:write', role: 'admin', workspace: 'refused' } as const;

export const listClaimsQuery = z.object({
  status: wordParameter(CLAIM_STATUSES).optional(),
  provider: filterParameter.optional(),
  ...pageParameters,
});

export const claimParams = z.object({
  id: z
    .string()
    .max(64, { error: 'is not the id of a claim' })
    .meta({ example: 'clm_0199f3a2c4d57e3a8f00112233445566' }),
});

const claimFields = {
  id: z.string(),
  org_id: z.string(),
  version: z.int().meta({ description: 'Counts up with every change that somebody asked for' }),
  period_start: z.string(),
  period_end: z.string(),
  provider: z.string(),
  provider_account_id: z.string(),
  total_recoverable_cents: z.int().meta({ description: 'What is asked back, netted and rounded down' }),
  confidence_tier: z.enum(DISPUTE_TIERS),
  status: z.enum(CLAIM_STATUSES),
  next_statuses: z.array(z.enum(CLAIM_STATUSES)).meta({ description: 'Where it may go from here' }),
  submitted_at: z.string().nullable(),
  resolved_at: z.string().nullable(),
  external_ticket_id: z.string().nullable(),
  credit_issued_cents: z.int().nullable(),
  notes: z.string().nullable(),
  evidence_pdf_blob_url: z.string(),
  evidence_csv_blob_url: z.string(),
  evidence_sha256: z.string(),
  evidence_stale_at: z.string().nullable().meta({
    description: 'When the provider restated a day under it, after the evidence was frozen',
  }),
  next_action: z.string().nullable().meta({ description: 'What somebody will be reminded of next' }),
  next_action_at: z.string().nullable(),
  snoozed_until: z.string().nullable(),
  created_at: z.string(),
  created_by: z.string(),
  updated_at: z.string(),
  warnings: z
    .array(z.strictObject({ code: z.string(), message: z.string() }))
    .meta({ description: 'What looks like a slip; the claim is as it was asked for' }),
};

const eventSchema = z.strictObject({
  version: z.int(),
  from_status: z.enum(CLAIM_STATUSES).nullable(),
  to_status: z.enum(CLAIM_STATUSES),
  at: z.string(),
  actor: z.string(),
  denial_reason: z.string().nullable(),
  violation_type: z.enum(TAXONOMY_KINDS).nullable(),
  credit_issued_cents: z.int().nullable(),
  external_ticket_id: z.string().nullable(),
});

const outcomeSchema = z.strictObject({
  claim_id: z.string(),
  status: z.enum(CLAIM_STATUSES),
  denial_reason: z.string().nullable(),
  violation_type: z.enum(TAXONOMY_KINDS).nullable(),
  credit_issued_cents: z.int().nullable(),
  actor: z.string(),
  at: z.string(),
});

const ticketRule = 'must be the provider’s reference, 1 to 256 characters';
const reasonRule = 'must say why the provider refused, in 1 to 4000 characters';
const centsRule = 'must be a whole number of cents above 0';

/** What a status needs beside it. */
const NEEDED = {
  denial_reason: 'denialReason',
  violation_type: 'violationType',
  credit_issued_cents: 'creditIssued',
} as const;

export const moveBody = z
  .strictObject({
    status: z.enum(CLAIM_STATUSES),
    denial_reason: z
      .string()
      .trim()
      .min(1, { error: reasonRule })
      .max(4_000, { error: reasonRule })
      .nullish()
      .meta({ description: 'Needed with denied' }),
    violation_type: z.enum(TAXONOMY_KINDS).nullish().meta({
      description: 'What it was, by the provider’s word: a key of docs/explanations.md. Needed with denied',
    }),
    credit_issued_cents: z
      .int({ error: centsRule })
      .positive({ error: centsRule })
      .nullish()
      .meta({ description: 'Needed with credit_issued and partial; below the total for partial' }),
    external_ticket_id: z
      .string()
      .trim()
      .min(1, { error: ticketRule })
      .max(256, { error: ticketRule })
      .nullish(),
  })
  .superRefine((body, context) => {
    const required = requiredFor(body.status);
    for (const name of ['denial_reason', 'violation_type', 'credit_issued_cents'] as const)
      if (required[NEEDED[name]] && (body[name] ?? null) === null)
        context.addIssue({
          code: 'custom',
          path: [name],
          message: `is needed with the status ${body.status}`,
        });
    if (body.status === 'denied' && (body.credit_issued_cents ?? null) !== null)
      context.addIssue({
        code: 'custom',
        path: ['credit_issued_cents'],
        message: 'nothing is credited on a denied claim: leave it out, or say partial',
      });
  });

/** What a request says of a move, absent and null being the same. */
export function fieldsOf(body: z.output<typeof moveBody>): MoveFields {
  return {
    denialReason: body.denial_reason ?? null,
    violationType: body.violation_type ?? null,
    creditIssuedCents: body.credit_issued_cents ?? null,
    externalTicketId: body.external_ticket_id ?? null,
  };
}

export const listedClaimSchema = z.strictObject(claimFields).meta({ id: 'ListedClaim' });

export const claimSchema = z
  .strictObject({
    ...claimFields,
    dispute_ids: z.array(z.string()),
    events: z.array(eventSchema).meta({ description: 'Its whole life, in the order in which it happened' }),
    outcomes: z.array(outcomeSchema).meta({ description: 'The provider’s last word, once there is one' }),
    proposed_credits: z.array(creditSchema).meta({
      description: 'What on later bills looks like the answer, with what became of it: docs/claims.md',
    }),
    proposed_move: creditMoveSchema
      .nullable()
      .meta({ description: 'The move by which all credits that are still proposed are the answer' }),
    evidence: z
      .record(z.string(), z.unknown())
      .meta({ description: 'As it was frozen when the claim was made: docs/claims.md' }),
  })
  .meta({ id: 'Claim' });

export const listClaimsResponse = z.strictObject({
  claims: z.array(listedClaimSchema),
  ...cursoredPageFields,
});

/** A claim with everything that belongs to it. */
export interface WholeClaim {
  claim: StoredClaim;
  disputeIds: readonly string[];
  events: readonly ClaimEvent[];
  outcomes: readonly ClaimOutcome[];
  credits: readonly StoredCredit[];
  evidence: Record<string, unknown>;
}

function warningsOf(claim: StoredClaim): { code: string; message: string }[] {
  if (!isShortCredit(claim)) return [];
  return [
    {
      code: 'credit_below_total',
      message: `${claim.creditIssuedCents} cents are less than 98 % of the ${claim.recoverableCents} that were asked for; a credit of a part is recorded as partial`,
    },
  ];
}

export function presentListedClaim(orgId: string, claim: StoredClaim): z.output<typeof listedClaimSchema> {
  const id = publicId('clm', claim.id);
  return {
    id,
    org_id: publicId('org', orgId),
    version: claim.version,
    period_start: claim.periodStart,
    period_end: claim.periodEnd,
    provider: claim.provider,
    provider_account_id: claim.accountId,
    total_recoverable_cents: claim.recoverableCents,
    confidence_tier: claim.tier,
    status: claim.status,
    next_statuses: [...nextStatuses(claim.status)],
    submitted_at: isoOrNull(claim.submittedAtMicros),
    resolved_at: isoOrNull(claim.resolvedAtMicros),
    external_ticket_id: claim.externalTicketId,
    credit_issued_cents: claim.creditIssuedCents,
    notes: claim.notes,
    evidence_pdf_blob_url: `${CLAIMS_PATH}/${id}/evidence.pdf`,
    evidence_csv_blob_url: `${CLAIMS_PATH}/${id}/evidence.csv`,
    evidence_sha256: claim.evidenceSha256,
    evidence_stale_at: isoOrNull(claim.evidenceStaleAtMicros),
    next_action: claim.nextAction,
    next_action_at: isoOrNull(claim.nextActionAtMicros),
    snoozed_until: isoOrNull(claim.snoozedUntilMicros),
    created_at: isoFromMicros(claim.createdAtMicros),
    created_by: claim.createdBy,
    updated_at: isoFromMicros(claim.updatedAtMicros),
    warnings: warningsOf(claim),
  };
}

export function presentClaim(orgId: string, whole: WholeClaim): z.output<typeof claimSchema> {
  return {
    ...presentListedClaim(orgId, whole.claim),
    dispute_ids: whole.disputeIds.map((id) => publicId('dsp', id)),
    events: whole.events.map(({ version, from, to, atMicros, actor, fields }) => ({
      version,
      from_status: from,
      to_status: to,
      at: isoFromMicros(atMicros),
      actor,
      denial_reason: fields.denialReason,
      violation_type: fields.violationType,
      credit_issued_cents: fields.creditIssuedCents,
      external_ticket_id: fields.externalTicketId,
    })),
    outcomes: whole.outcomes.map((outcome) => ({
      claim_id: publicId('clm', outcome.claimId),
      status: outcome.status,
      denial_reason: outcome.denialReason,
      violation_type: outcome.violationType,
      credit_issued_cents: outcome.creditIssuedCents,
      actor: outcome.actor,
      at: isoFromMicros(outcome.atMicros),
    })),
    proposed_credits: whole.credits.map((credit) => presentCredit(whole.claim, credit)),
    proposed_move: presentMove(
      whole.claim,
      whole.credits.reduce((sum, { status, cents }) => sum + (status === 'proposed' ? cents : 0), 0),
    ),
    evidence: whole.evidence,
  };
}
