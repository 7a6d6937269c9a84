import { readBusinessDays } from '../../db/claims/businessDays.js';
import { findClaim, lockClaim, type StoredClaim } from '../../db/claims/claims.js';
import { readClock } from '../../db/clock.js';
import { newUuid } from '../../db/newUuid.js';
import type { OrgDb } from '../../db/orgDb.js';
import { plainArray } from '../../db/pgArray.js';
import { recordNotice } from '../../db/policies/notices.js';
import { publishMessages } from '../../db/webhooks/webhookMessages.js';
import { dueNotice, nextDeadline } from '../../domain/claims/deadlines.js';
import { isoFromMicros } from '../../domain/period.js';
import { claimReminderMessage } from '../../domain/webhooks/claimReminderMessage.js';

/**
 * Leaves the reminder of a claim that is due by the database's clock, once, as an alert and as a webhook message, and fixes
 * the next one, which may be due already; a claim of which none is due stays as it is. Returns the claim; undefined where
 * there is none.
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
    const alertId = due && (await recordNotice(inside, dueNotice(claim, due, dueMicros)));
    if (due && alertId !== undefined) {
      const reminder = { claim, action: due.action, dueMicros, alertId, atMicros };
      await publishMessages(inside, [claimReminderMessage(newUuid(atMicros), reminder)]);
    }
    return findClaim(inside, claimId);
  });
}
