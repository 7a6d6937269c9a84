import { isoFromMicros } from '../../domain/period.js';
import { type DeliveryStatus, type MessageType, TEST_MESSAGE_TYPE } from '../../domain/webhooks/messages.js';
import type { AttemptOutcome } from '../../domain/webhooks/retrySchedule.js';
import { ATTEMPTS_SHOWN_MAX } from '../../domain/webhooks/retrySchedule.js';
import type { Database } from '../client.js';
import { column, defineEntity, insertRow, type TimePage } from '../entity.js';
import { type OrgDb, unscoped } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';
import { insertOutboxMessage } from '../runs/outbox.js';

/** The rows are authoritative; a workflow only schedules the passes. Lock the endpoint before its deliveries. */

export interface ClaimedDelivery {
  deliveryId: string;
  messageId: string;
  type: MessageType;
  body: string;
  /** Of the current series, this attempt included. */
  attempts: number;
  /** Number of this attempt, over all series of the delivery. */
  number: number;
}

/**
 * Whether a pending delivery `d` of an endpoint with digests waits for one: nothing was sent of it yet, and it is none
 * itself. A message that is sent again by request goes alone.
 */
export const WAITS_FOR_DIGEST = `(d.digest_delivery_id is null
  and not exists (select from webhook_attempts a where a.org_id = d.org_id and a.delivery_id = d.id)
  and not exists (select from webhook_messages m where m.org_id = d.org_id and m.id = d.message_id and m.type = 'digest.daily'))`;

/**
 * Takes due deliveries under a lease; `gathers`: those that wait for a digest are not taken. Attempts are counted before sending, so that one that kills its process counts
 * too.
 */
export async function claimDueDeliveries(
  inside: OrgDb,
  endpointId: string,
  {
    limit,
    leaseSeconds,
    attemptsMax,
    gathers = false,
  }: { limit: number; leaseSeconds: number; attemptsMax: number; gathers?: boolean },
): Promise<ClaimedDelivery[]> {
  return inside.rows<ClaimedDelivery>(
    `with due as (
       select id from webhook_deliveries d
       where org_id = $1 and endpoint_id = $2 and status = 'pending' and next_attempt_at <= now() and attempts < $5
         and (not $6::boolean or not ${WAITS_FOR_DIGEST})
       order by next_attempt_at, id limit $3 for update skip locked),
     counted as (
       update webhook_deliveries d set attempts = d.attempts + 1, next_attempt_at = now() + make_interval(secs => $4)
       from due where d.org_id = $1 and d.id = due.id returning d.id, d.message_id, d.attempts),
     noted as (
       insert into webhook_attempts (org_id, delivery_id, number)
       select $1::uuid, c.id, 1 + coalesce((select max(a.number) from webhook_attempts a where a.org_id = $1 and a.delivery_id = c.id), 0)
       from counted c returning delivery_id, number)
     select c.id as "deliveryId", c.message_id as "messageId", m.type, m.body, c.attempts, n.number
     from counted c join noted n on n.delivery_id = c.id join webhook_messages m on m.org_id = $1 and m.id = c.message_id`,
    [inside.orgId, endpointId, limit, leaseSeconds, attemptsMax, gathers],
    'webhooks_claim',
  );
}

/** A finished attempt, and the next step for its delivery if it failed. */
export interface EndedAttempt {
  claimed: ClaimedDelivery;
  outcome: AttemptOutcome;
  /** `counted: false`: our shutdown interrupted it. `delaySeconds` null: the delivery is given up. */
  next: { delaySeconds: number | null; counted: boolean };
}

export interface GivenUp {
  deliveryId: string;
  attempts: number;
  lastError: string | null;
}

/** Records attempts, in a transaction; returns deliveries given up. Only a success or the latest attempt counts. */
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
  const recording = inside.rows<GivenUp>(
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
     select id as "deliveryId", attempts, last_error as "lastError" from ended where status = 'failed' and result = 'failed'`,
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
  const [givenUp] = await Promise.all([recording, noting]);
  return givenUp;
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

/** Gives up due deliveries whose last attempt began and never ended, in the caller's transaction. */
export async function giveUpSpentDeliveries(
  inside: OrgDb,
  endpointId: string,
  attemptsMax: number,
): Promise<GivenUp[]> {
  return inside.rows<GivenUp>(
    `update webhook_deliveries set status = 'failed', next_attempt_at = null, finished_at = now(),
       last_status = null, last_error = 'the service ended during the last attempt'
     where org_id = $1 and endpoint_id = $2 and status = 'pending' and next_attempt_at <= now() and attempts >= $3
     returning id as "deliveryId", attempts, last_error as "lastError"`,
    [inside.orgId, endpointId, attemptsMax],
  );
}

/** Postpones an endpoint's pending deliveries without counting an attempt; returns their number. */
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

/** Milliseconds until the next attempt for an endpoint is due, 0 when it is due; null: nothing is pending. */
export async function findNextAttemptMs(orgDb: OrgDb, endpointId: string): Promise<number | null> {
  const [row] = await orgDb.rows<{ ms: number | null }>(
    // greatest() ignores nulls, so without pending deliveries it would return 0.
    `select case when min(next_attempt_at) is not null then greatest(0, ceil(extract(epoch from min(next_attempt_at) - now()) * 1000)) end::float8 as ms
     from webhook_deliveries where org_id = $1 and endpoint_id = $2 and status = 'pending'`,
    [orgDb.orgId, endpointId],
  );
  return row?.ms ?? null;
}

interface OverdueEndpoint {
  orgId: string;
  endpointId: string;
}

/** Endpoints overdue by `seconds` without a wake message; waking a slow workflow is harmless. */
export async function listOverdueEndpoints(database: Database, seconds: number): Promise<OverdueEndpoint[]> {
  return unscoped(database, 'the sweeper looks for overdue webhooks of every organization', (system) =>
    system.rows<OverdueEndpoint>(
      `select distinct d.org_id as "orgId", d.endpoint_id as "endpointId" from webhook_deliveries d
       where d.status = 'pending' and d.next_attempt_at < now() - make_interval(secs => $1)
         and not exists (select from outbox o where o.org_id = d.org_id and o.subject_id = d.endpoint_id
           and o.kind = 'webhook.deliver' and o.dispatched_at is null and o.dead_at is null)
       limit 1000`,
      [seconds],
    ),
  );
}

/** A message to publish. */
export interface NewMessage {
  /** uuid, by which receivers recognise repeats. */
  id: string;
  type: MessageType;
  /** `messageBody` of domain/webhooks. */
  body: string;
}

/** Publishes messages to active endpoints that want their type, in the caller's transaction. A repeat adds nothing. */
export async function publishMessages(orgDb: OrgDb, messages: readonly NewMessage[]): Promise<void> {
  if (messages.length === 0) return;
  await orgDb.run(
    `with told as (select * from unnest($2::uuid[], $3::text[], $4::text[]) as m (id, type, body)),
       wanted as (
         select e.id as endpoint_id, told.id as message_id from webhook_endpoints e join told
           on e.event_types = '{}' or told.type = any(e.event_types)
         where e.org_id = $1 and e.status = 'active' and e.removed_at is null
           and e.report_cadence is null),
       kept as (
         insert into webhook_messages (org_id, id, type, body)
         select $1::uuid, id, type, body from told where id in (select message_id from wanted)
         on conflict do nothing
         returning id),
       left_for as (
         insert into webhook_deliveries (org_id, id, endpoint_id, message_id)
         select $1::uuid, gen_random_uuid(), endpoint_id, message_id from wanted where message_id in (select id from kept)
         returning endpoint_id)
     insert into outbox (org_id, kind, subject_id) select distinct $1::uuid, 'webhook.deliver', endpoint_id from left_for`,
    [
      orgDb.orgId,
      plainArray(messages.map(({ id }) => id)),
      textArray(messages.map(({ type }) => type)),
      textArray(messages.map(({ body }) => body)),
    ],
    'webhooks_publish',
  );
}

/** Publishes a message to these endpoints alone, where they are active, in the caller's transaction. A repeat adds nothing. */
export async function publishToEndpoints(
  inside: OrgDb,
  { id, type, body }: NewMessage,
  endpointIds: readonly string[],
): Promise<void> {
  await inside.run(
    `with kept as (
       insert into webhook_messages (org_id, id, type, body) values ($1, $2, $3, $4) on conflict do nothing),
     left_for as (
       insert into webhook_deliveries (org_id, id, endpoint_id, message_id)
       select $1::uuid, gen_random_uuid(), e.id, $2::uuid from webhook_endpoints e
       where e.org_id = $1 and e.id = any($5::uuid[]) and e.status = 'active' and e.removed_at is null
       on conflict do nothing
       returning endpoint_id)
     insert into outbox (org_id, kind, subject_id) select $1::uuid, 'webhook.deliver', endpoint_id from left_for`,
    [inside.orgId, id, type, body, plainArray(endpointIds)],
  );
}

export interface WebhookAttempt {
  /** Over all series of its delivery, from 1. */
  number: number;
  startedAtMicros: bigint;
  /** null: in progress, or the process died before it ended. */
  durationMs: number | null;
  httpStatus: number | null;
  error: string | null;
  /** The beginning of the receiver's response. */
  answer: string | null;
}

export interface WebhookDelivery {
  id: string;
  endpointId: string;
  messageId: string;
  type: MessageType;
  status: DeliveryStatus;
  attempts: number;
  nextAttemptAtMicros: bigint | null;
  lastStatus: number | null;
  lastError: string | null;
  /** The delivery of the digest that the message is in; null: it is sent alone. */
  digestDeliveryId: string | null;
  createdAtMicros: bigint;
  finishedAtMicros: bigint | null;
}

export interface LoggedDelivery extends WebhookDelivery {
  /** Latest first. */
  history: WebhookAttempt[];
}

const DELIVERY = defineEntity<WebhookDelivery>('webhook_deliveries', {
  id: column(),
  endpointId: column(),
  messageId: column(),
  type: column('m.type'),
  status: column(),
  attempts: column(),
  nextAttemptAtMicros: column(),
  lastStatus: column(),
  lastError: column(),
  digestDeliveryId: column(),
  createdAtMicros: column(),
  finishedAtMicros: column(),
});
const COLUMNS = DELIVERY.columnsOf('d');

/**
 * Deliveries of an endpoint with their attempts, newest first; `after` is the time and id of the previous page's last
 * one.
 */
export async function listWebhookDeliveries(
  orgDb: OrgDb,
  endpointId: string,
  filter: { status?: DeliveryStatus | undefined; type?: MessageType | undefined },
  page: TimePage,
): Promise<LoggedDelivery[]> {
  const rows = await orgDb.rows<WebhookDelivery>(
    `select ${COLUMNS} from webhook_deliveries d join webhook_messages m on m.org_id = d.org_id and m.id = d.message_id
     where d.org_id = $1 and d.endpoint_id = $2 and ($3::text is null or d.status = $3) and ($4::text is null or m.type = $4)
       and ($5::timestamptz is null or (d.created_at, d.id) < ($5, $6::uuid))
     order by d.created_at desc, d.id desc limit $7 offset $8`,
    [
      orgDb.orgId,
      endpointId,
      filter.status ?? null,
      filter.type ?? null,
      page.after ? isoFromMicros(page.after.micros) : null,
      page.after?.id ?? null,
      page.limit,
      page.offset,
    ],
  );
  return withHistory(orgDb, rows);
}

export async function findWebhookDelivery(orgDb: OrgDb, id: string): Promise<LoggedDelivery | undefined> {
  const rows = await orgDb.rows<WebhookDelivery>(
    `select ${COLUMNS} from webhook_deliveries d join webhook_messages m on m.org_id = d.org_id and m.id = d.message_id
       join webhook_endpoints e on e.org_id = d.org_id and e.id = d.endpoint_id
     where d.org_id = $1 and d.id = $2 and e.removed_at is null`,
    [orgDb.orgId, id],
  );
  const [found] = await withHistory(orgDb, rows);
  return found;
}

async function withHistory(orgDb: OrgDb, deliveries: readonly WebhookDelivery[]): Promise<LoggedDelivery[]> {
  if (deliveries.length === 0) return [];
  const attempts = await orgDb.rows<WebhookAttempt & { deliveryId: string }>(
    `select a.* from unnest($2::uuid[]) as d (id) cross join lateral (
       select delivery_id as "deliveryId", number, started_at as "startedAtMicros", duration_ms as "durationMs",
         http_status as "httpStatus", error, answer from webhook_attempts
       where org_id = $1 and delivery_id = d.id order by number desc limit $3) a`,
    [orgDb.orgId, plainArray(deliveries.map(({ id }) => id)), ATTEMPTS_SHOWN_MAX],
  );
  const histories = new Map<string, WebhookAttempt[]>(deliveries.map(({ id }) => [id, []]));
  for (const { deliveryId, ...attempt } of attempts) histories.get(deliveryId)?.push(attempt);
  return deliveries.map((delivery) => ({
    ...delivery,
    history: (histories.get(delivery.id) ?? []).sort((one, other) => other.number - one.number),
  }));
}

/**
 * Starts a new series of attempts for an ended delivery, in the caller's transaction; else returns the reason why not.
 */
export async function restartDelivery(
  inside: OrgDb,
  id: string,
): Promise<'begun' | 'pending' | 'disabled' | 'missing'> {
  // The endpoint is locked first, as everywhere: a simultaneous disabling waits, and then cancels this delivery too.
  const [endpoint] = await inside.rows<{ id: string; isActive: boolean }>(
    `select e.id, e.status = 'active' as "isActive" from webhook_endpoints e
     where e.org_id = $1 and e.removed_at is null
       and e.id = (select endpoint_id from webhook_deliveries where org_id = $1 and id = $2) for share`,
    [inside.orgId, id],
  );
  if (!endpoint) return 'missing';
  const [delivery] = await inside.rows<{ status: DeliveryStatus }>(
    'select status from webhook_deliveries where org_id = $1 and id = $2 for update',
    [inside.orgId, id],
  );
  if (!delivery) return 'missing';
  if (delivery.status === 'pending') return 'pending';
  if (!endpoint.isActive) return 'disabled';
  await inside.run(
    `update webhook_deliveries set status = 'pending', attempts = 0, next_attempt_at = now(), finished_at = null
     where org_id = $1 and id = $2`,
    [inside.orgId, id],
  );
  await insertOutboxMessage(inside, 'webhook.deliver', endpoint.id);
  return 'begun';
}

export interface SentTest {
  deliveryId: string;
  messageId: string;
  endpointId: string;
  body: string;
  startedAtMicros: bigint;
  outcome: AttemptOutcome;
}

/** Stores a sent test message as an ended delivery with one attempt; in the caller's transaction. */
export async function recordSentTest(inside: OrgDb, test: SentTest): Promise<void> {
  const { deliveryId, messageId, endpointId, body, startedAtMicros, outcome } = test;
  const { result, durationMs, httpStatus, error, answer } = outcome;
  const { orgId } = inside;
  await insertRow(inside, 'webhook_messages', {
    ...{ orgId, id: messageId, type: TEST_MESSAGE_TYPE, body, createdAtMicros: startedAtMicros },
  });
  await inside.run(
    `insert into webhook_deliveries (org_id, id, endpoint_id, message_id, status, attempts, next_attempt_at, last_status, last_error, created_at, finished_at)
     values ($1, $2, $3, $4, $5, 1, null, $6, $7, $8::timestamptz, now())`,
    [
      ...[orgId, deliveryId, endpointId, messageId, result === 'delivered' ? 'delivered' : 'failed'],
      ...[httpStatus, error, isoFromMicros(startedAtMicros)],
    ],
  );
  await insertRow(inside, 'webhook_attempts', {
    ...{ orgId, deliveryId, number: 1, startedAtMicros, durationMs, httpStatus, error, answer },
  });
}
