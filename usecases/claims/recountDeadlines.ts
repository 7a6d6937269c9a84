import { readBusinessDays } from '../../db/claims/businessDays.js';
import { lockOpenClaims } from '../../db/claims/claims.js';
import type { OrgDb } from '../../db/orgDb.js';
import { nextDeadline } from '../../domain/claims/deadlines.js';
import { isoFromMicros } from '../../domain/period.js';

/**
 * Fixes the next notice of every claim that is not over anew, by the calendar as it is by now, with word to the workflows of
 * those that it changes; their number. Call it in the transaction of the change, after it. What was told stays told.
 */
export async function recountDeadlines(inside: OrgDb): Promise<number> {
  const claims = await lockOpenClaims(inside);
  if (claims.length === 0) return 0;
  const days = await readBusinessDays(inside);
  const changed = claims.flatMap((claim) => {
    const next = nextDeadline(claim, days);
    if ((next?.atMicros ?? null) === claim.nextActionAtMicros) return [];
    return [
      {
        id: claim.id,
        next_action: next?.action ?? null,
        next_action_at: next ? isoFromMicros(next.atMicros) : null,
      },
    ];
  });
  if (changed.length === 0) return 0;
  const values = [inside.orgId, JSON.stringify(changed)];
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
  return changed.length;
}
