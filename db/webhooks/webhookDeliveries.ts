import type { AttemptOutcome } from '../../domain/webhooks/attempt.js';
import type { Database } from '../client.js';
import { type OrgDb, unscoped } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';

/**
 * What the delivery of webhooks reads and writes. Rows are the record: a workflow only says when to look. Whoever locks
 * several takes the endpoint before its deliveries (db/webhooks/webhookEndpoints.ts).
 */

/** A delivery whose next attempt is counted and may be sent. */
export interface ClaimedDelivery {
  deliveryId: string;
  messageId: string;
  body: string;
  /** Of the current series, this attempt included. */
  attempts: number;
  /** Of this attempt, over all series of the delivery. */
  number: number;
}

/**
 * Takes up to `limit` deliveries of an endpoint that are due, and counts their attempts before anything is sent, so that
 * one that ends its process each time ends too. They are due again when the lease is over, unless `recordAttempts` says
 * otherwise. In the caller's transaction, which has seen that the endpoint is active.
 */
export async function claimDueDeliveries(
  inside: OrgDb,
  endpointId: string,
  { limit, leaseSeconds, attemptsMax }: { limit: number; leaseSeconds: number; attemptsMax: number },
): Promise<ClaimedDelivery[]> {
  const rows = await inside.rows<{
    id: string;
    message_id: string;
    body: string;
    attempts: number;
    number: number;
  }>(
    `with due as (
       select id from webhook_deliveries
       where org_id = $1 and endpoint_id = $2 and status = 'pending' and next_attempt_at <= now() and attempts < $5
       order by next_attempt_at, id limit $3 for update skip locked),
     counted as (
       update webhook_deliveries d set attempts = d.attempts + 1, next_attempt_at = now() + make_interval(secs => $4)
       from due where d.org_id = $1 and d.id = due.id returning d.id, d.message_id, d.attempts),
     noted as (
       insert into webhook_attempts (org_id, delivery_id, number)
       select $1::uuid, c.id, 1 + coalesce((select max(a.number) from webhook_attempts a where a.org_id = $1 and a.delivery_id = c.id), 0)
       from counted c returning delivery_id, number)
     select c.id, c.message_id, m.body, c.attempts, n.number
     from counted c join noted n on n.delivery_id = c.id join webhook_messages m on m.org_id = $1 and m.id = c.message_id`,
    [inside.orgId, endpointId, limit, leaseSeconds, attemptsMax],
    'webhooks_claim',
  );
  return rows.map((row) => ({
    deliveryId: row.id,
    messageId: row.message_id,
    body: row.body,
    attempts: row.attempts,
    number: row.number,
  }));
}

/** An attempt that is over, and what is to become of its delivery where it was not delivered. */
export interface EndedAttempt {
  claimed: ClaimedDelivery;
  outcome: AttemptOutcome;
  /** `counted: false`: it was cut short by our own orderly end. `delaySeconds` null: given up. */
  next: { delaySeconds: number | null; counted: boolean };
}

/** A delivery that was given up. */
export interface GivenUp {
  deliveryId: string;
  attempts: number;
  lastError: string | null;
}

/**
 * Writes down what attempts came to; returns the deliveries that were given up by it. What was delivered is so, whatever
 * was decided about it meanwhile; any other outcome counts only where no later attempt has been begun. Call it in a
 * transaction.
 */
export async function recordAttempts(
  inside: OrgDb,
  endpointId: string,
  ended: readonly EndedAttempt[],
): Promise<GivenUp[]> {
  if (ended.length === 0) return [];
  const results = ended.map(({ outcome }) => outcome.result);
  const noting = noteEndpointHealth(inside, endpointId, {
    delivered: results.includes('delivered'),
    failed: ended.some(({ outcome, next }) => outcome.result !== 'delivered' && next.counted),
  });
  const recording = inside.rows<{ id: string; attempts: number; last_error: string | null }>(
    `with told as (
       select * from unnest($2::uuid[], $3::integer[], $4::text[], $5::integer[], $6::integer[], $7::text[], $8::text[], $9::float8[], $10::boolean[])
         as t (id, number, result, duration_ms, http_status, error, answer, delay_seconds, counted)),
     noted as (
       update webhook_attempts a set duration_ms = told.duration_ms, http_status = told.http_status, error = told.error, answer = told.answer
       from told where a.org_id = $1 and a.delivery_id = told.id and a.number = told.number),
     ended as (
       update webhook_deliveries d set
         status = case when told.result = 'delivered' then 'delivered' when told.delay_seconds is null then 'failed' else 'pending' end,
         attempts = d.attempts - case when told.counted then 0 else 1 end,
         next_attempt_at = case when told.result <> 'delivered' then now() + make_interval(secs => told.delay_seconds) end,
         finished_at = case when told.result = 'delivered' or told.delay_seconds is null then now() end,
         last_status = told.http_status, last_error = told.error
       from told where d.org_id = $1 and d.id = told.id and (
         (told.result = 'delivered' and d.status <> 'delivered')
         or ((d.status = 'pending' or (d.status = 'cancelled' and told.result = 'gone'))
           and told.number = (select max(a.number) from webhook_attempts a where a.org_id = $1 and a.delivery_id = d.id)))
       returning d.id, d.status, d.attempts, d.last_error, told.result)
     select id, attempts, last_error from ended where status = 'failed' and result = 'failed'`,
    [
      inside.orgId,
      plainArray(ended.map(({ claimed }) => claimed.deliveryId)),
      plainArray(ended.map(({ claimed }) => claimed.number)),
      textArray(results),
      plainArray(ended.map(({ outcome }) => outcome.durationMs)),
      plainArray(ended.map(({ outcome }) => outcome.httpStatus)),
      textArray(ended.map(({ outcome }) => outcome.error)),
      textArray(ended.map(({ outcome }) => outcome.answer)),
      plainArray(ended.map(({ next }) => next.delaySeconds)),
      plainArray(ended.map(({ next }) => next.counted)),
    ],
    'webhooks_record',
  );
  const [rows] = await Promise.all([recording, noting]);
  return rows.map((row) => ({ deliveryId: row.id, attempts: row.attempts, lastError: row.last_error }));
}

async function noteEndpointHealth(
  inside: OrgDb,
  endpointId: string,
  { delivered, failed }: { delivered: boolean; failed: boolean },
): Promise<void> {
  await inside.run(
    `update webhook_endpoints set last_delivered_at = case when $3 then now() else last_delivered_at end,
       last_failed_at = case when $4 then now() else last_failed_at end
     where org_id = $1 and id = $2`,
    [inside.orgId, endpointId, delivered, failed],
  );
}

/**
 * Gives up what is due and has no attempt left: its last one was begun and never ended, because its process did. In the
 * caller's transaction.
 */
export async function giveUpSpentDeliveries(
  inside: OrgDb,
  endpointId: string,
  attemptsMax: number,
): Promise<GivenUp[]> {
  const rows = await inside.rows<{ id: string; attempts: number; last_error: string | null }>(
    `update webhook_deliveries set status = 'failed', next_attempt_at = null, finished_at = now(),
       last_status = null, last_error = 'the service ended during the last attempt'
     where org_id = $1 and endpoint_id = $2 and status = 'pending' and next_attempt_at <= now() and attempts >= $3
     returning id, attempts, last_error`,
    [inside.orgId, endpointId, attemptsMax],
  );
  return rows.map((row) => ({ deliveryId: row.id, attempts: row.attempts, lastError: row.last_error }));
}

/**
 * Puts off all that is pending at an endpoint, without counting an attempt: nothing is sent to it for so long. With
 * `reason`, its deliveries say why they wait. Returns how many were put off.
 */
export async function postponeDeliveries(
  orgDb: OrgDb,
  endpointId: string,
  seconds: number,
  reason: string | null = null,
): Promise<number> {
  return orgDb.run(
    `update webhook_deliveries set next_attempt_at = now() + make_interval(secs => $3), last_error = coalesce($4, last_error)
     where org_id = $1 and endpoint_id = $2 and status = 'pending' and next_attempt_at < now() + make_interval(secs => $3)`,
    [orgDb.orgId, endpointId, seconds, reason],
  );
}

/** Milliseconds until the next attempt at an endpoint is due, 0 when one is; null when nothing is pending. */
export async function findNextAttemptMs(orgDb: OrgDb, endpointId: string): Promise<number | null> {
  const [row] = await orgDb.rows<{ ms: number | null }>(
    // greatest() passes over nulls: of nothing it would say that something is due.
    `select case when min(next_attempt_at) is not null then greatest(0, ceil(extract(epoch from min(next_attempt_at) - now()) * 1000)) end::float8 as ms
     from webhook_deliveries where org_id = $1 and endpoint_id = $2 and status = 'pending'`,
    [orgDb.orgId, endpointId],
  );
  return row?.ms ?? null;
}

/** An endpoint at which something has been due for too long. */
export interface OverdueEndpoint {
  orgId: string;
  endpointId: string;
}

/**
 * Endpoints with a delivery that was due longer ago than `seconds`, and with no message left that would wake their
 * workflow: the workflow was lost, or it is behind, and then waking it does no harm.
 */
export async function listOverdueEndpoints(database: Database, seconds: number): Promise<OverdueEndpoint[]> {
  const rows = await unscoped(
    database,
    'the sweeper looks for overdue webhooks of every organization',
    (system) =>
      system.rows<{ org_id: string; endpoint_id: string }>(
        `select distinct d.org_id, d.endpoint_id from webhook_deliveries d
         where d.status = 'pending' and d.next_attempt_at < now() - make_interval(secs => $1)
           and not exists (select from outbox o where o.org_id = d.org_id and o.subject_id = d.endpoint_id
             and o.kind = 'webhook.deliver' and o.dispatched_at is null and o.dead_at is null)
         limit 1000`,
        [seconds],
      ),
  );
  return rows.map((row) => ({ orgId: row.org_id, endpointId: row.endpoint_id }));
}
