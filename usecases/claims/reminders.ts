import { updateNotice, updateNotices, updateSnooze } from '../../db/claims/claimRows.js';
import {
  findClaim,
  lockClaim,
  lockOpenClaims,
  readBusinessDays,
  type StoredClaim,
} from '../../db/claims/claims.js';
import { type OrgDb, readClock } from '../../db/orgDb.js';
import { recordNotice } from '../../db/policies/alerts.js';
import { insertOutboxMessage } from '../../db/runs/outbox.js';
import { publishMessages } from '../../db/webhooks/webhookDeliveries.js';
import { dueNotice, nextDeadline } from '../../domain/claims/deadlines.js';
import { isTerminal } from '../../domain/claims/lifecycle.js';
import { DomainError, invalidField } from '../../domain/errors.js';
import { newUuid, publicId } from '../../domain/ids.js';
import { dayOf, type Instant, isoFromMicros, MICROS_PER_DAY } from '../../domain/period.js';
import { claimReminderMessage } from '../../domain/webhooks/messages.js';
import { type RequestAuthor, recordAction } from '../access/recordAction.js';
import { claimNotFound, getWholeClaim, type WholeClaim } from './wholeClaim.js';

/**
 * Records a claim's due reminder once, as an alert and a webhook message, and sets the next one, which may also be due.
 * Due times are judged by the database's clock; a claim without a due reminder does not change. Returns the claim;
 * undefined: it does not exist.
 */
export async function noteClaimDue(orgDb: OrgDb, claimId: string): Promise<StoredClaim | undefined> {
  return orgDb.transaction(async (inside) => {
    const claim = await lockClaim(inside, claimId);
    const [atMicros, days] = await Promise.all([readClock(inside), readBusinessDays(inside)]);
    const dueMicros = claim?.nextActionAtMicros ?? null;
    if (!claim || dueMicros === null || dueMicros > atMicros) return claim;
    const due = nextDeadline(claim, days);
    const notifiedSteps = [...claim.notifiedSteps, ...(due?.steps ?? [])];
    const next = nextDeadline({ ...claim, notifiedSteps, snoozedUntilMicros: null }, days);
    await updateNotice(inside, claimId, { next, steps: notifiedSteps });
    const alertId = due && (await recordNotice(inside, dueNotice(claim, due, dueMicros)));
    if (due && alertId !== undefined) {
      const reminder = { claim, action: due.action, dueMicros, alertId, atMicros };
      await publishMessages(inside, [claimReminderMessage(newUuid(atMicros), reminder)]);
    }
    return findClaim(inside, claimId);
  });
}

/**
 * Sets the next notice of every open claim again by the present calendar and wakes the workflows of changed claims;
 * returns their number. Call it in the transaction of the change, after the change. Sent reminders are not repeated.
 */
export async function recountDeadlines(inside: OrgDb): Promise<number> {
  const claims = await lockOpenClaims(inside);
  if (claims.length === 0) return 0;
  const days = await readBusinessDays(inside);
  const changed = claims.flatMap((claim) => {
    const next = nextDeadline(claim, days);
    return (next?.atMicros ?? null) === claim.nextActionAtMicros ? [] : [{ id: claim.id, next }];
  });
  if (changed.length > 0) await updateNotices(inside, changed);
  return changed.length;
}

/** A year, leap years included. */
const DAYS_MAX = 366n;

/**
 * Stops a claim's reminders until a time, or until a day begins in the organization's time zone, and then sends one;
 * null cancels the snooze. Wakes the claim's workflow. The version stays, because nothing was moved. Errors: not_found,
 * claim_over, invalid_body (`until` is past, or more than a year away).
 */
export async function snoozeClaim(
  orgDb: OrgDb,
  { claimId, until }: { claimId: string; until: Instant | null },
  author: RequestAuthor,
): Promise<{ whole: WholeClaim; hasChanged: boolean }> {
  return orgDb.transaction(async (inside) => {
    const hasChanged = await snoozeInside(inside, claimId, until, author);
    return { whole: await getWholeClaim(inside, claimId), hasChanged };
  });
}

async function snoozeInside(
  inside: OrgDb,
  claimId: string,
  until: Instant | null,
  author: RequestAuthor,
): Promise<boolean> {
  const claim = await lockClaim(inside, claimId);
  if (!claim) throw claimNotFound();
  if (isTerminal(claim.status))
    throw new DomainError('claim_over', `the claim is ${claim.status}: it has no more reminders`);
  const [atMicros, days] = await Promise.all([readClock(inside), readBusinessDays(inside)]);
  const untilMicros = until?.dateOnly ? days.startOfDay(dayOf(until.micros)) : (until?.micros ?? null);
  if (untilMicros !== null && (untilMicros <= atMicros || untilMicros > atMicros + DAYS_MAX * MICROS_PER_DAY))
    throw invalidField('body', 'until', 'must lie ahead, by a year at most', 'invalid_body');
  const beforeMicros = claim.snoozedUntilMicros;
  if (untilMicros === beforeMicros) return false;
  const next = nextDeadline({ ...claim, snoozedUntilMicros: untilMicros }, days);
  await updateSnooze(inside, claimId, { untilMicros, next, atMicros });
  await insertOutboxMessage(inside, 'claim.wake', claimId);
  const iso = (micros: bigint | null) => (micros === null ? null : isoFromMicros(micros));
  await recordAction(
    inside,
    author,
    'claim.snoozed',
    { type: 'claim', id: publicId('clm', claimId) },
    { old_until: iso(beforeMicros), new_until: iso(untilMicros) },
  );
  return true;
}
