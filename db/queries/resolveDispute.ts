import type { ClaimStatus } from '../../domain/claims/lifecycle.js';
import type { OrgDb } from '../orgDb.js';
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

/** Resolves a dispute that is held and in no claim: its days are free to be disputed by others. */
export async function resolveDispute(
  inside: OrgDb,
  id: string,
  said: { resolution: string; notes: string | null; by: string },
): Promise<void> {
  await inside.run(
    `update disputes set status = 'resolved', resolution = $3, resolution_notes = $4, resolved_at = now(), resolved_by = $5
     where org_id = $1 and id = $2::uuid and status = 'open' and claim_id is null`,
    [inside.orgId, id, said.resolution, said.notes, said.by],
  );
  await inside.run(
    'update dispute_days set live = false where org_id = $1 and dispute_id = $2::uuid and live',
    [inside.orgId, id],
  );
}
