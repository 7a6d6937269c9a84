import type { ClaimDeadline } from '../../domain/claims/deadlines.js';
import type { DraftClaim } from '../../domain/claims/draft.js';
import type { ClaimStatus } from '../../domain/claims/lifecycle.js';
import { decimalFromPico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray } from '../pgArray.js';
import { CLAIM, type StoredClaim } from './claims.js';

/**
 * Writes the rows of a claim and its dependents. Each function runs in the transaction of a use case that has locked
 * the claim.
 */

type Next = ClaimDeadline | undefined;

const nextOf = (next: Next) => [next?.action ?? null, next ? isoFromMicros(next.atMicros) : null] as const;

export interface NewClaim {
  draft: DraftClaim;
  evidence: { evidence: unknown; sha256: string };
  next: Next;
  atMicros: bigint;
}

const frozenOf = ({ evidence: { evidence, sha256 } }: NewClaim) =>
  [JSON.stringify(evidence), Buffer.from(sha256, 'hex')] as const;

/** Stores the row of a draft. */
export async function insertClaim(
  inside: OrgDb,
  claim: NewClaim & { by: string; notes: string | null },
): Promise<void> {
  const { draft, next, atMicros, by, notes } = claim;
  await inside.run(
    `insert into claims (org_id, id, provider, provider_account_id, period_start, period_end, total_recoverable_cents, confidence_tier,
       evidence, evidence_sha256, notes, next_action, next_action_at, entered_at, created_at, created_by, updated_at)
     values ($1, $2::uuid, $3, $4, $5::date, $6::date, $7::bigint, $8, $9::jsonb, $10, $11, $12, $13::timestamptz, $14::timestamptz,
       $14::timestamptz, $15, $14::timestamptz)`,
    [
      ...[inside.orgId, draft.id, draft.provider, draft.accountId, draft.periodStart, draft.periodEnd],
      ...[draft.recoverableCents, draft.tier, ...frozenOf(claim), notes],
      ...[...nextOf(next), isoFromMicros(atMicros), by],
    ],
  );
}

/** Replaces the row of a draft as its next version, and deletes the files of its former evidence. */
export async function updateDraft(inside: OrgDb, claim: NewClaim): Promise<void> {
  const { draft, next, atMicros } = claim;
  await inside.run('delete from claim_files where org_id = $1 and claim_id = $2::uuid', [
    inside.orgId,
    draft.id,
  ]);
  await inside.run(
    `update claims set version = version + 1, period_start = $3::date, period_end = $4::date, total_recoverable_cents = $5::bigint,
       confidence_tier = $6, evidence = $7::jsonb, evidence_sha256 = $8, evidence_stale_at = null, next_action = $9,
       next_action_at = $10::timestamptz, snoozed_until = null, updated_at = $11::timestamptz
     where org_id = $1 and id = $2::uuid and status = 'draft'`,
    [
      ...[inside.orgId, draft.id, draft.periodStart, draft.periodEnd, draft.recoverableCents, draft.tier],
      ...[...frozenOf(claim), ...nextOf(next), isoFromMicros(atMicros)],
    ],
  );
}

/** Deletes a draft; its history and files are deleted with the row. */
export async function deleteDraft(inside: OrgDb, id: string): Promise<void> {
  await inside.run(`delete from claims where org_id = $1 and id = $2::uuid and status = 'draft'`, [
    inside.orgId,
    id,
  ]);
}

/** Links disputes and undercharges to their claim. */
export async function insertClaimParts(inside: OrgDb, draft: DraftClaim): Promise<void> {
  await inside.run('update disputes set claim_id = $2::uuid where org_id = $1 and id = any($3::uuid[])', [
    inside.orgId,
    draft.id,
    plainArray(draft.disputes.map(({ id }) => id)),
  ]);
  const undercharges = draft.undercharges.map(({ findingId, day, model, kind, variant, impactPico }) => ({
    ...{ finding_id: findingId, day, model, kind, variant, impact_usd: decimalFromPico(impactPico) },
  }));
  await inside.run(
    `insert into claim_undercharges (org_id, claim_id, finding_id, day, provider, provider_account_id, model, kind, variant, impact_usd)
     select $1::uuid, $2::uuid, t.finding_id, t.day, $3, $4, t.model, t.kind, t.variant, t.impact_usd
     from jsonb_to_recordset($5::jsonb) as t(finding_id uuid, day date, model text, kind text, variant text, impact_usd numeric)`,
    [inside.orgId, draft.id, draft.provider, draft.accountId, JSON.stringify(undercharges)],
  );
}

/** Removes a claim's disputes from the claim. */
export async function releaseDisputes(inside: OrgDb, claimId: string): Promise<void> {
  await inside.run('update disputes set claim_id = null where org_id = $1 and claim_id = $2::uuid', [
    inside.orgId,
    claimId,
  ]);
}

/** Deletes the netted undercharges of these claims. */
export async function deleteUndercharges(inside: OrgDb, claimIds: readonly string[]): Promise<void> {
  await inside.run('delete from claim_undercharges where org_id = $1 and claim_id = any($2::uuid[])', [
    inside.orgId,
    plainArray(claimIds),
  ]);
}

/** Makes the undercharges that an ended claim netted available to later claims. */
export async function releaseUndercharges(inside: OrgDb, claimId: string): Promise<void> {
  await inside.run(
    'update claim_undercharges set live = false where org_id = $1 and claim_id = $2::uuid and live',
    [inside.orgId, claimId],
  );
}

/** Marks the open disputes of a claim as claimed. */
export async function claimDisputes(inside: OrgDb, claimId: string): Promise<void> {
  await inside.run(
    `update disputes set status = 'claimed' where org_id = $1 and claim_id = $2::uuid and status = 'open'`,
    [inside.orgId, claimId],
  );
}

export interface ClaimMove {
  to: ClaimStatus;
  isTerminal: boolean;
  externalTicketId: string | null;
  creditIssuedCents: number | null;
  next: Next;
  atMicros: bigint;
}

/** Moves a claim to another status, as its next version, and returns it; undefined: there is none. */
export async function updateStatus(
  inside: OrgDb,
  id: string,
  move: ClaimMove,
): Promise<StoredClaim | undefined> {
  const { to, isTerminal, externalTicketId, creditIssuedCents, next, atMicros } = move;
  const rows = await inside.rows<StoredClaim>(
    `update claims set version = version + 1, status = $3, entered_at = $4::timestamptz, updated_at = $4::timestamptz,
       submitted_at = coalesce(submitted_at, $4::timestamptz),
       resolved_at = case when $5::boolean then $4::timestamptz end,
       external_ticket_id = $6, credit_issued_cents = $7, next_action = $8, next_action_at = $9::timestamptz, steps_told = '{}',
       snoozed_until = null
     where org_id = $1 and id = $2::uuid
     returning ${CLAIM.columns}`,
    [
      ...[inside.orgId, id, to, isoFromMicros(atMicros), isTerminal, externalTicketId],
      ...[creditIssuedCents, ...nextOf(next)],
    ],
    'claim-move',
  );
  return CLAIM.read(rows)[0];
}

/** Sets the claim's next notice after a notice; `steps` are the steps of its status that were notified. */
export async function updateNotice(
  inside: OrgDb,
  id: string,
  { next, steps }: { next: Next; steps: readonly string[] },
): Promise<void> {
  await inside.run(
    `update claims set next_action = $3, next_action_at = $4::timestamptz, steps_told = $5::text[], snoozed_until = null
     where org_id = $1 and id = $2::uuid`,
    [inside.orgId, id, ...nextOf(next), plainArray(steps)],
  );
}

/** Sets the next notices of several claims, with a message to the workflow of each. */
export async function updateNotices(
  inside: OrgDb,
  changed: readonly { id: string; next: Next }[],
): Promise<void> {
  const rows = changed.map(({ id, next }) => {
    const [action, at] = nextOf(next);
    return { id, next_action: action, next_action_at: at };
  });
  const values = [inside.orgId, JSON.stringify(rows)];
  await inside.run(
    `update claims c set next_action = t.next_action, next_action_at = t.next_action_at
     from jsonb_to_recordset($2::jsonb) as t(id uuid, next_action text, next_action_at timestamptz)
     where c.org_id = $1 and c.id = t.id`,
    values,
  );
  await inside.run(
    `insert into outbox (org_id, kind, subject_id)
     select $1::uuid, 'claim.wake', t.id from jsonb_to_recordset($2::jsonb) as t(id uuid)`,
    values,
  );
}

/** Stops the notices of a claim until a time; null resumes them. */
export async function updateSnooze(
  inside: OrgDb,
  id: string,
  { untilMicros, next, atMicros }: { untilMicros: bigint | null; next: Next; atMicros: bigint },
): Promise<void> {
  await inside.run(
    `update claims set snoozed_until = $3::timestamptz, next_action = $4, next_action_at = $5::timestamptz,
       updated_at = greatest(updated_at, $6::timestamptz)
     where org_id = $1 and id = $2::uuid`,
    [
      ...[inside.orgId, id, untilMicros === null ? null : isoFromMicros(untilMicros)],
      ...[...nextOf(next), isoFromMicros(atMicros)],
    ],
  );
}
