import { readBusinessDays } from '../../db/claims/businessDays.js';
import { lockClaim } from '../../db/claims/claims.js';
import { readClock } from '../../db/clock.js';
import type { OrgDb } from '../../db/orgDb.js';
import { insertOutboxMessage } from '../../db/runs/outbox.js';
import { nextDeadline } from '../../domain/claims/deadlines.js';
import { isTerminal } from '../../domain/claims/lifecycle.js';
import { DomainError, invalidField } from '../../domain/errors.js';
import { dayOf, type Instant, isoFromMicros, MICROS_PER_DAY } from '../../domain/period.js';

/** A year, whichever. */
const DAYS_MAX = 366n;

/** Until when a claim was snoozed and is now. */
export interface Snoozed {
  beforeMicros: bigint | null;
  untilMicros: bigint | null;
}

/**
 * Has nobody be reminded of a claim until a time, or a day as it begins in the organization's time zone, and then once; null
 * takes that back. With word to its workflow, in the caller's transaction. Its version stays: nothing was moved. Errors
 * not_found, claim_over, invalid_body (`until` is past, or further than a year).
 */
export async function snoozeClaim(inside: OrgDb, claimId: string, until: Instant | null): Promise<Snoozed> {
  const claim = await lockClaim(inside, claimId);
  if (!claim) throw new DomainError('not_found', 'there is no claim with this id');
  if (isTerminal(claim.status))
    throw new DomainError('claim_over', `the claim is ${claim.status}: nobody is reminded of it any more`);
  const [atMicros, days] = await Promise.all([readClock(inside), readBusinessDays(inside)]);
  const untilMicros = until?.dateOnly ? days.startOfDay(dayOf(until.micros)) : (until?.micros ?? null);
  if (untilMicros !== null && (untilMicros <= atMicros || untilMicros > atMicros + DAYS_MAX * MICROS_PER_DAY))
    throw invalidField('body', 'until', 'must lie ahead, by a year at most', 'invalid_body');
  const snoozed = { beforeMicros: claim.snoozedUntilMicros, untilMicros };
  if (untilMicros === snoozed.beforeMicros) return snoozed;
  const next = nextDeadline({ ...claim, snoozedUntilMicros: untilMicros }, days);
  await inside.run(
    `update claims set snoozed_until = $3::timestamptz, next_action = $4, next_action_at = $5::timestamptz,
       updated_at = greatest(updated_at, $6::timestamptz)
     where org_id = $1 and id = $2::uuid`,
    [
      ...[inside.orgId, claimId, untilMicros === null ? null : isoFromMicros(untilMicros)],
      ...[next?.action ?? null, next ? isoFromMicros(next.atMicros) : null, isoFromMicros(atMicros)],
    ],
  );
  await insertOutboxMessage(inside, 'claim.wake', claimId);
  return snoozed;
}
