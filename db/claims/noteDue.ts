import { nextDeadline } from '../../domain/claims/deadlines.js';
import { publicId } from '../../domain/ids.js';
import { isoFromMicros } from '../../domain/period.js';
import type { OrgDb } from '../orgDb.js';
import { findClaim, lockClaim, type StoredClaim } from '../queries/claims.js';
import { readClock } from '../queries/clock.js';
import { recordNotice } from '../queries/notices.js';

/**
 * Gives the notice of a claim that is due by the database's clock, once, and fixes the next one; a claim of which none is
 * due stays as it is. Returns the claim; undefined where there is none.
 */
export async function noteClaimDue(orgDb: OrgDb, claimId: string): Promise<StoredClaim | undefined> {
  return orgDb.transaction(async (inside) => {
    const claim = await lockClaim(inside, claimId);
    const atMicros = await readClock(inside);
    const { nextAction: action, nextActionAtMicros: dueMicros } = claim ?? {};
    if (!claim || !action || !dueMicros || dueMicros > atMicros) return claim;
    const next = nextDeadline(claim, dueMicros);
    await inside.run(
      `update claims set next_action = $3, next_action_at = $4::timestamptz where org_id = $1 and id = $2::uuid`,
      [inside.orgId, claimId, next?.action ?? null, next ? isoFromMicros(next.atMicros) : null],
    );
    const id = publicId('clm', claimId);
    const due = isoFromMicros(dueMicros);
    await recordNotice(inside, {
      code: 'claim_due',
      key: `claim_due:${id}:${due}:${action}`,
      subject: { type: 'claim', id },
      severity: 'medium',
      message: `The claim ${id} has been ${claim.status} since ${isoFromMicros(claim.enteredAtMicros)}.`,
      details: { action, status: claim.status, due_at: due },
      provider: claim.provider,
    });
    return findClaim(inside, claimId);
  });
}
