import { z } from 'zod';
import type { StoredClaim, StoredCredit } from '../../../db/claims/claims.js';
import { DISPUTE_TIERS } from '../../../domain/claims/financialSummary.js';
import {
  CLAIM_STATUSES,
  CREDIT_SOURCES,
  CREDIT_STATUSES,
  isShortCredit,
  type MoveFields,
  moveOfCredit,
  nextStatuses,
  requiredFor,
} from '../../../domain/claims/lifecycle.js';
import type { TicketDraft } from '../../../domain/claims/ticketDraft.js';
import { findUuid, publicId } from '../../../domain/ids.js';
import { usdNumberFromPico } from '../../../domain/money.js';
import { isoFromMicros, isoOrNull, parseInstant } from '../../../domain/period.js';
import { TAXONOMY_KINDS } from '../../../domain/reconciliation/taxonomy.js';
import { claimNotFound, type WholeClaim } from '../../../usecases/claims/wholeClaim.js';
import { csvList } from '../../csv.js';
import { cursoredPageFields, pageParameters } from '../../paging.js';
import { filterParameter, publicIdText, wordParameter } from '../../query.js';

export const CLAIMS_PATH = '/api/v1/claims';

/** Access to read claims, and to file them and record the provider's answers. */
export const CLAIM_READ = { scope: 'claims:read', workspace: 'refused' } as const;
export const CLAIM_ADMIN = { scope: 'claims:write', role: 'admin', workspace: 'refused' } as const;

export const listClaimsQuery = z.object({
  status: wordParameter(CLAIM_STATUSES).optional(),
  provider: filterParameter.optional(),
  ...pageParameters,
});

export const claimParams = z.object({
  id: publicIdText('a claim').meta({ example: 'clm_0199f3a2c4d57e3a8f00112233445566' }),
});

const claimFields = {
  id: z.string(),
  org_id: z.string(),
  version: z.int().meta({ description: 'Counts up with every requested change' }),
  period_start: z.string(),
  period_end: z.string(),
  provider: z.string(),
  provider_account_id: z.string(),
  total_recoverable_cents: z.int().meta({ description: 'The requested credit, netted and rounded down' }),
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
  next_action: z.string().nullable().meta({ description: 'The subject of the next reminder' }),
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

/** The fields that a move to each status requires. */
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

/** The fields of a move; an absent field and null mean the same. */
export function fieldsOf(body: z.output<typeof moveBody>): MoveFields {
  return {
    denialReason: body.denial_reason ?? null,
    violationType: body.violation_type ?? null,
    creditIssuedCents: body.credit_issued_cents ?? null,
    externalTicketId: body.external_ticket_id ?? null,
  };
}

const listedClaimSchema = z.strictObject(claimFields).meta({ id: 'ListedClaim' });

/** The move that the API proposes for a credit. */
const creditMoveSchema = z
  .strictObject({ status: z.enum(['credit_issued', 'partial']), credit_issued_cents: z.int() })
  .meta({ id: 'ClaimCreditMove', description: 'What PATCH …/status takes to say that it is the answer' });

/** A credit and the moves that it permits. */
const creditSchema = z
  .strictObject({
    id: z.string(),
    source: z.enum(CREDIT_SOURCES).meta({
      description:
        'credit_row: rows of a bill that give money back; restatement: days of the claim that are billed at less now',
    }),
    status: z.enum(CREDIT_STATUSES),
    amount_cents: z.int(),
    rows: z.array(z.strictObject({ day: z.string(), amount_usd: z.number(), description: z.string() })),
    move: creditMoveSchema.nullable().meta({ description: 'Null once it is decided on' }),
    found_at: z.string(),
    decided_at: z.string().nullable(),
    decided_by: z.string().nullable(),
  })
  .meta({ id: 'ProposedCredit' });

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

export const creditParams = claimParams.extend({
  credit_id: publicIdText('a credit'),
});

export const listClaimsResponse = z.strictObject({
  claims: z.array(listedClaimSchema),
  ...cursoredPageFields,
});

/** The uuid in a claim's public id. Error not_found. */
export function uuidOfClaim(id: string): string {
  const uuid = findUuid('clm', id);
  if (uuid === undefined) throw claimNotFound();
  return uuid;
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

function presentCredit(claim: StoredClaim, credit: StoredCredit): z.output<typeof creditSchema> {
  return {
    id: publicId('crd', credit.id),
    source: credit.source,
    status: credit.status,
    amount_cents: credit.cents,
    rows: credit.rows.map(({ day, amountPico, description }) => ({
      day,
      amount_usd: usdNumberFromPico(amountPico),
      description,
    })),
    move: credit.status === 'proposed' ? presentMove(claim, credit.cents) : null,
    found_at: isoFromMicros(credit.foundAtMicros),
    decided_at: isoOrNull(credit.decidedAtMicros),
    decided_by: credit.decidedBy,
  };
}

function presentMove(claim: StoredClaim, cents: number): z.output<typeof creditMoveSchema> | null {
  const move = moveOfCredit(claim, cents);
  return move ? { status: move.status, credit_issued_cents: move.creditIssuedCents } : null;
}

export const MERGE_PATH = `${CLAIMS_PATH}/{id}/merge`;
const DISPUTES_MAX = 500;
const CLAIMS_MAX = 100;
const NOTES_CHARS_MAX = 4_000;

const each = (ids: readonly string[]) => new Set(ids).size === ids.length;

export const createClaimBody = z
  .strictObject({
    dispute_ids: z
      .array(publicIdText('a dispute'))
      .min(1, { error: 'must name at least one dispute' })
      .max(DISPUTES_MAX, { error: `must name at most ${DISPUTES_MAX} disputes` })
      .refine(each, { error: 'must name each dispute once' })
      .meta({ description: 'Open ones in no claim, of one account of one provider' }),
    notes: z
      .string()
      .trim()
      .max(NOTES_CHARS_MAX, { error: `must have at most ${NOTES_CHARS_MAX} characters` })
      .nullable()
      .optional(),
  })
  .meta({ id: 'NewClaim' });

export const mergeClaimsBody = z
  .strictObject({
    claim_ids: z
      .array(publicIdText('a claim'))
      .min(1, { error: 'must name at least one other draft' })
      .max(CLAIMS_MAX, { error: `must name at most ${CLAIMS_MAX} drafts` })
      .refine(each, { error: 'must name each draft once' })
      .meta({ description: 'Drafts whose disputes this one takes over; they are gone then' }),
  })
  .meta({ id: 'ClaimMerge' });

export const SNOOZE_PATH = `${CLAIMS_PATH}/{id}/snooze`;
const UNTIL_RULE = 'must be a day or a time of ISO 8601, for example 2026-12-14, or null';
const UNTIL_CHARS_MAX = 40;

export const snoozeBody = z
  .strictObject({
    until: z
      .string({ error: UNTIL_RULE })
      .max(UNTIL_CHARS_MAX, { error: UNTIL_RULE })
      .refine((text) => parseInstant(text) !== undefined, { error: UNTIL_RULE })
      .nullable()
      .meta({
        description:
          'A time, or a day, which begins in the time zone of the organization; ahead, by a year at most. Null: no longer',
        example: '2026-12-14',
      }),
  })
  .meta({ id: 'ClaimSnooze' });

export const ticketSchema = z
  .strictObject({
    org_id: z.string(),
    claim_id: z.string(),
    subject: z.string(),
    body: z.string().meta({ description: 'Plain text' }),
    suggested_resolution: z.string(),
    evidence_refs: z.array(z.string()).meta({ description: 'Addresses of the files to attach' }),
    generated_at: z.string(),
  })
  .meta({ id: 'TicketDraft' });

export function presentTicket(
  orgId: string,
  id: string,
  { ticket, atMicros }: { ticket: TicketDraft; atMicros: bigint },
  baseUrl: string,
): z.output<typeof ticketSchema> {
  const claimId = publicId('clm', id);
  return {
    org_id: publicId('org', orgId),
    claim_id: claimId,
    subject: ticket.subject,
    body: ticket.body,
    suggested_resolution: ticket.suggestedResolution,
    evidence_refs: ['pdf', 'csv', 'json', 'tar.gz'].map(
      (extension) => `${baseUrl}${CLAIMS_PATH}/${claimId}/evidence.${extension}`,
    ),
    generated_at: isoFromMicros(atMicros),
  };
}

export const EVIDENCE_PATH = `${CLAIMS_PATH}/{id}/evidence`;

/** The Content-Disposition header of a downloaded evidence file. */
export const attached = (id: string, extension: string): Record<string, string> => ({
  'Content-Disposition': `attachment; filename="${publicId('clm', id)}-evidence.${extension}"`,
});

/** The list as CSV. */
export const claimsCsv = csvList('claims', 'claims', listedClaimSchema);
