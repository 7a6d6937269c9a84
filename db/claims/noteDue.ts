import { nextDeadline } from '../../domain/claims/deadlines.js';
import { dueNotice } from '../../domain/claims/dueNotice.js';
import { isoFromMicros } from '../../domain/period.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray } from '../pgArray.js';
import { readBusinessDays } from '../queries/businessDays.js';
import { findClaim, lockClaim, type StoredClaim } from '../queries/claims.js';
import { readClock } from '../queries/clock.js';
import { recordNotice } from '../queries/notices.js';

/**
 * Gives the notice of a claim that is due by the database's clock, once, and fixes the next one, which may be due already;
 * a claim of which none is due stays as it is. Returns the claim; undefined where there is none.
 */
export async function noteClaimDue(orgDb: OrgDb, claimId: string): Promise<StoredClaim | undefined> {
  return orgDb.transaction(async (inside) => {
    const claim = await lockClaim(inside, claimId);
    const [atMicros, days] = await Promise.all([readClock(inside), readBusinessDays(inside)]);
    const dueMicros = claim?.nextActionAtMicros ?? null;
    if (!claim || dueMicros === null || dueMicros > atMicros) return claim;
    const due = nextDeadline(claim, days);
    const stepsTold = [...claim.stepsTold, ...(due?.steps ?? [])];
    const next = nextDeadline({ ...claim, stepsTold, snoozedUntilMicros: null }, days);
    await inside.run(
      `update claims set next_action = $3, next_action_at = $4::timestamptz, steps_told = $5::text[], snoozed_until = null
       where org_id = $1 and id = $2::uuid`,
      [
        ...[inside.orgId, claimId, next?.action ?? null, next ? isoFromMicros(next.atMicros) : null],
        plainArray(stepsTold),
      ],
    );
    if (due) await recordNotice(inside, dueNotice(claim, due, dueMicros));
    return findClaim(inside, claimId);
  });
}
