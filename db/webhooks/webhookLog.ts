import { isoFromMicros } from '../../domain/period.js';
import { ATTEMPTS_SHOWN_MAX, type AttemptOutcome } from '../../domain/webhooks/attempt.js';
import { type DeliveryStatus, type MessageType, TEST_MESSAGE_TYPE } from '../../domain/webhooks/message.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray } from '../pgArray.js';

/** What was sent to the receivers of an organization, as they look at it and have it sent again. */

export interface WebhookAttempt {
  /** Over all series of its delivery, from 1. */
  number: number;
  startedAtMicros: bigint;
  /** Null while it is under way, and where the process ended before it knew. */
  durationMs: number | null;
  httpStatus: number | null;
  error: string | null;
  /** The beginning of what the receiver said. */
  answer: string | null;
}

/** One message to one receiver. */
export interface WebhookDelivery {
  id: string;
  endpointId: string;
  messageId: string;
  type: MessageType;
  status: DeliveryStatus;
  /** Attempts of the current series. */
  attempts: number;
  nextAttemptAtMicros: bigint | null;
  lastStatus: number | null;
  lastError: string | null;
  createdAtMicros: bigint;
  finishedAtMicros: bigint | null;
}

export interface LoggedDelivery extends WebhookDelivery {
  /** The latest first. */
  history: WebhookAttempt[];
}

interface DeliveryRow {
  id: string;
  endpoint_id: string;
  message_id: string;
  type: MessageType;
  status: DeliveryStatus;
  attempts: number;
  next_attempt_at: bigint | null;
  last_status: number | null;
  last_error: string | null;
  created_at: bigint;
  finished_at: bigint | null;
}

const COLUMNS = `d.id, d.endpoint_id, d.message_id, m.type, d.status, d.attempts, d.next_attempt_at, d.last_status, d.last_error,
  d.created_at, d.finished_at`;

function fromDeliveryRow(row: DeliveryRow): WebhookDelivery {
  return {
    id: row.id,
    endpointId: row.endpoint_id,
    messageId: row.message_id,
    type: row.type,
    status: row.status,
    attempts: row.attempts,
    nextAttemptAtMicros: row.next_attempt_at,
    lastStatus: row.last_status,
    lastError: row.last_error,
    createdAtMicros: row.created_at,
    finishedAtMicros: row.finished_at,
  };
}

/** Deliveries of a receiver with their attempts, newest first; `after` is the time and id of the last one that was seen. */
export async function listWebhookDeliveries(
  orgDb: OrgDb,
  endpointId: string,
  filter: { status?: DeliveryStatus | undefined; type?: MessageType | undefined },
  page: { limit: number; offset: number; after?: { micros: bigint; id: string } | undefined },
): Promise<LoggedDelivery[]> {
  const rows = await orgDb.rows<DeliveryRow>(
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
  return withHistory(orgDb, rows.map(fromDeliveryRow));
}

/** One delivery to a receiver that was not removed. */
export async function findWebhookDelivery(orgDb: OrgDb, id: string): Promise<LoggedDelivery | undefined> {
  const rows = await orgDb.rows<DeliveryRow>(
    `select ${COLUMNS} from webhook_deliveries d join webhook_messages m on m.org_id = d.org_id and m.id = d.message_id
       join webhook_endpoints e on e.org_id = d.org_id and e.id = d.endpoint_id
     where d.org_id = $1 and d.id = $2 and e.removed_at is null`,
    [orgDb.orgId, id],
  );
  const [found] = await withHistory(orgDb, rows.map(fromDeliveryRow));
  return found;
}

async function withHistory(orgDb: OrgDb, deliveries: readonly WebhookDelivery[]): Promise<LoggedDelivery[]> {
  if (deliveries.length === 0) return [];
  const attempts = await orgDb.rows<{
    delivery_id: string;
    number: number;
    started_at: bigint;
    duration_ms: number | null;
    http_status: number | null;
    error: string | null;
    answer: string | null;
  }>(
    `select a.* from unnest($2::uuid[]) as d (id) cross join lateral (
       select delivery_id, number, started_at, duration_ms, http_status, error, answer from webhook_attempts
       where org_id = $1 and delivery_id = d.id order by number desc limit $3) a`,
    [orgDb.orgId, plainArray(deliveries.map(({ id }) => id)), ATTEMPTS_SHOWN_MAX],
  );
  const histories = new Map<string, WebhookAttempt[]>(deliveries.map(({ id }) => [id, []]));
  for (const row of attempts)
    histories.get(row.delivery_id)?.push({
      number: row.number,
      startedAtMicros: row.started_at,
      durationMs: row.duration_ms,
      httpStatus: row.http_status,
      error: row.error,
      answer: row.answer,
    });
  return deliveries.map((delivery) => ({
    ...delivery,
    history: (histories.get(delivery.id) ?? []).sort((one, other) => other.number - one.number),
  }));
}

/**
 * Begins a new series of attempts for a delivery that has ended, with the outbox message that wakes its receiver's
 * workflow; in the caller's transaction. `pending`: it has not ended, and nothing was changed. `disabled`: its receiver is
 * switched off. `missing`: there is no such delivery, or its receiver was removed.
 */
export async function restartDelivery(
  inside: OrgDb,
  id: string,
): Promise<'begun' | 'pending' | 'disabled' | 'missing'> {
  // The receiver first, as everywhere: who switches it off meanwhile waits, and then cancels this one too.
  const [endpoint] = await inside.rows<{ id: string; is_active: boolean }>(
    `select e.id, e.status = 'active' as is_active from webhook_endpoints e
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
  if (!endpoint.is_active) return 'disabled';
  await inside.run(
    `update webhook_deliveries set status = 'pending', attempts = 0, next_attempt_at = now(), finished_at = null
     where org_id = $1 and id = $2`,
    [inside.orgId, id],
  );
  await inside.run(`insert into outbox (org_id, kind, subject_id) values ($1, 'webhook.deliver', $2)`, [
    inside.orgId,
    endpoint.id,
  ]);
  return 'begun';
}

/** A test message that was sent, and what came of it. */
export interface SentTest {
  deliveryId: string;
  messageId: string;
  endpointId: string;
  body: string;
  startedAtMicros: bigint;
  outcome: AttemptOutcome;
}

/** Stores a test message that was sent, as a delivery that has ended with its one attempt; in the caller's transaction. */
export async function recordSentTest(inside: OrgDb, test: SentTest): Promise<void> {
  const { outcome } = test;
  const startedAt = isoFromMicros(test.startedAtMicros);
  await inside.run(
    'insert into webhook_messages (org_id, id, type, body, created_at) values ($1, $2, $3, $4, $5::timestamptz)',
    [inside.orgId, test.messageId, TEST_MESSAGE_TYPE, test.body, startedAt],
  );
  await inside.run(
    `insert into webhook_deliveries (org_id, id, endpoint_id, message_id, status, attempts, next_attempt_at, last_status, last_error, created_at, finished_at)
     values ($1, $2, $3, $4, $5, 1, null, $6, $7, $8::timestamptz, now())`,
    [
      inside.orgId,
      test.deliveryId,
      test.endpointId,
      test.messageId,
      outcome.result === 'delivered' ? 'delivered' : 'failed',
      outcome.httpStatus,
      outcome.error,
      startedAt,
    ],
  );
  await inside.run(
    `insert into webhook_attempts (org_id, delivery_id, number, started_at, duration_ms, http_status, error, answer)
     values ($1, $2, 1, $3::timestamptz, $4, $5, $6, $7)`,
    [
      inside.orgId,
      test.deliveryId,
      startedAt,
      outcome.durationMs,
      outcome.httpStatus,
      outcome.error,
      outcome.answer,
    ],
  );
}
