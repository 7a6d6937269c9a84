import type { ClaimStatus } from '../../domain/claims/lifecycle.js';
import { isoFromMicros } from '../../domain/period.js';
import {
  disputeResolvedMessage,
  type ResolvedDispute,
} from '../../domain/webhooks/disputeResolvedMessage.js';
import { newUuid } from '../newUuid.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray } from '../pgArray.js';
import { publishMessages } from '../webhooks/webhookMessages.js';
import { findDispute, type StoredDispute } from './disputes.js';

/** A dispute that nobody else resolves or claims until the transaction ends, with the status of the claim that it is in. */
export interface HeldDispute {
  dispute: StoredDispute;
  claimStatus: ClaimStatus | null;
}

/** Undefined where there is no such dispute. */
export async function lockDispute(inside: OrgDb, id: string): Promise<HeldDispute | undefined> {
  const held = await inside.rows('select 1 from disputes where org_id = $1 and id = $2::uuid for update', [
    inside.orgId,
    id,
  ]);
  // Read by a statement of its own: its snapshot is from after the lock.
  const dispute = held.length === 0 ? undefined : await findDispute(inside, id);
  if (!dispute) return undefined;
  const [claim] = await inside.rows<{ status: ClaimStatus }>(
    'select status from claims where org_id = $1 and id = $2::uuid',
    [inside.orgId, dispute.claimId],
  );
  return { dispute, claimStatus: claim?.status ?? null };
}

export interface Resolution {
  resolution: string;
  notes: string | null;
  /** Who resolves it. */
  by: string;
  /** Now, by the database's clock, where nothing is said. */
  atMicros?: bigint;
}

/** Resolves a dispute that is held and in no claim. */
export function resolveDispute(inside: OrgDb, id: string, resolution: Resolution): Promise<void> {
  return resolveWhere(inside, `id = $2::uuid and status = 'open' and claim_id is null`, id, resolution);
}

/** Resolves the disputes of a claim that has ended, except those that are resolved already. */
export function resolveDisputesOfClaim(
  inside: OrgDb,
  claimId: string,
  resolution: Resolution,
): Promise<void> {
  return resolveWhere(inside, `claim_id = $2::uuid and status <> 'resolved'`, claimId, resolution);
}

/**
 * Resolves disputes in the caller's transaction: other disputes may claim their days from then on, and each leaves its
 * webhook message. A resolved dispute never changes again, so each has one message.
 */
async function resolveWhere(
  inside: OrgDb,
  condition: string,
  id: string,
  { resolution, notes, by, atMicros }: Resolution,
): Promise<void> {
  const resolved = await inside.rows<ResolvedDispute>(
    `update disputes set status = 'resolved', resolution = $3, resolution_notes = $4, resolved_by = $5,
       resolved_at = coalesce($6::timestamptz, now())
     where org_id = $1 and ${condition}
     returning id, finding_id as "findingId", claim_id as "claimId", kind, provider, confidence_tier as tier,
       amount_cents as "amountCents", period_start as "periodStart", period_end as "periodEnd", resolution,
       resolved_at as "resolvedAtMicros"`,
    [inside.orgId, id, resolution, notes, by, atMicros === undefined ? null : isoFromMicros(atMicros)],
  );
  if (resolved.length === 0) return;
  const ids = plainArray(resolved.map((dispute) => dispute.id));
  // Findings before days, as a run that publishes takes them. Nobody has decided on what the disputes held.
  await inside.run(
    `update findings set status = 'open', decided_at = null, decided_by = null, decision_reason = null, held_by = null, updated_at = now()
     where org_id = $1 and held_by = any($2::uuid[])`,
    [inside.orgId, ids],
  );
  await inside.run(
    'update dispute_days set live = false where org_id = $1 and dispute_id = any($2::uuid[]) and live',
    [inside.orgId, ids],
  );
  await publishMessages(
    inside,
    resolved.map((dispute) => disputeResolvedMessage(newUuid(dispute.resolvedAtMicros), dispute)),
  );
}
