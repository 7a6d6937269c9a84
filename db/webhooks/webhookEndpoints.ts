import { isoFromMicros } from '../../domain/period.js';
import type { DisabledReason, EndpointStatus, WebhookEventType } from '../../domain/webhooks/message.js';
import { bumpRulesRevision } from '../installation/organizations.js';
import { INSTALLATION_LOCKS } from '../locks.js';
import type { OrgDb } from '../orgDb.js';
import { textArray } from '../pgArray.js';

/**
 * Receivers of an organization's webhooks. Whoever changes one takes the organization's row first (`bumpRulesRevision`),
 * then the endpoint, then its deliveries: two that lock several never wait for each other.
 */

/** A receiver as it is stored, its secrets sealed. */
export interface WebhookEndpoint {
  id: string;
  url: string;
  description: string;
  /** Empty: every type. */
  eventTypes: WebhookEventType[];
  status: EndpointStatus;
  disabledReason: DisabledReason | null;
  disabledAtMicros: bigint | null;
  /** Null when no key opens them any more and the operator has given them up. */
  ciphertext: Buffer | null;
  lastDeliveredAtMicros: bigint | null;
  lastFailedAtMicros: bigint | null;
  createdAtMicros: bigint;
  updatedAtMicros: bigint;
  createdBy: string;
}

interface EndpointRow {
  id: string;
  url: string;
  description: string;
  event_types: WebhookEventType[];
  status: EndpointStatus;
  disabled_reason: DisabledReason | null;
  disabled_at: bigint | null;
  ciphertext: Buffer | null;
  last_delivered_at: bigint | null;
  last_failed_at: bigint | null;
  created_at: bigint;
  updated_at: bigint;
  created_by: string;
}

const COLUMNS = `id, url, description, event_types, status, disabled_reason, disabled_at, ciphertext, last_delivered_at,
  last_failed_at, created_at, updated_at, created_by`;

function fromEndpointRow(row: EndpointRow): WebhookEndpoint {
  return {
    id: row.id,
    url: row.url,
    description: row.description,
    eventTypes: row.event_types,
    status: row.status,
    disabledReason: row.disabled_reason,
    disabledAtMicros: row.disabled_at,
    ciphertext: row.ciphertext,
    lastDeliveredAtMicros: row.last_delivered_at,
    lastFailedAtMicros: row.last_failed_at,
    createdAtMicros: row.created_at,
    updatedAtMicros: row.updated_at,
    createdBy: row.created_by,
  };
}

/** Seals secrets with the key that is current at that moment; called under the lock that a rotation of it takes. */
export type SealSecrets = () => { ciphertext: Buffer; keyId: string };

async function sealUnderLock(
  inside: OrgDb,
  seal: SealSecrets,
): Promise<{ ciphertext: Buffer; keyId: string }> {
  await inside.run('select pg_advisory_xact_lock_shared($1)', [INSTALLATION_LOCKS.secrets]);
  return seal();
}

export interface NewWebhookEndpoint {
  id: string;
  url: string;
  description: string;
  eventTypes: readonly WebhookEventType[];
  enabled: boolean;
  /** Of the key that makes it. */
  createdBy: string;
}

/** Stores a receiver, unless the organization has `countMax` of them: undefined then. In the caller's transaction. */
export async function insertWebhookEndpoint(
  inside: OrgDb,
  endpoint: NewWebhookEndpoint,
  countMax: number,
  seal: SealSecrets,
): Promise<WebhookEndpoint | undefined> {
  // Its lock on the organization's row also lets two who make the last one go one after the other.
  await bumpRulesRevision(inside);
  const [count] = await inside.rows<{ count: number }>(
    'select count(*) as count from webhook_endpoints where org_id = $1 and removed_at is null',
    [inside.orgId],
  );
  if ((count?.count ?? 0) >= countMax) return undefined;
  const { ciphertext, keyId } = await sealUnderLock(inside, seal);
  const rows = await inside.rows<EndpointRow>(
    `insert into webhook_endpoints (org_id, id, url, description, event_types, status, disabled_reason, disabled_at, ciphertext, secret_key_id, created_by)
     values ($1, $2, $3, $4, $5::text[], case when $6::boolean then 'active' else 'disabled' end,
       case when $6 then null else 'requested' end, case when $6 then null else now() end, $7, $8, $9)
     returning ${COLUMNS}`,
    [
      inside.orgId,
      endpoint.id,
      endpoint.url,
      endpoint.description,
      textArray([...endpoint.eventTypes]),
      endpoint.enabled,
      ciphertext,
      keyId,
      endpoint.createdBy,
    ],
  );
  return rows[0] && fromEndpointRow(rows[0]);
}

/** The receiver, unless it was removed. */
export async function findWebhookEndpoint(orgDb: OrgDb, id: string): Promise<WebhookEndpoint | undefined> {
  const rows = await orgDb.rows<EndpointRow>(
    `select ${COLUMNS} from webhook_endpoints where org_id = $1 and id = $2 and removed_at is null`,
    [orgDb.orgId, id],
  );
  return rows[0] && fromEndpointRow(rows[0]);
}

/** Receivers that were not removed, newest first; `after` is the time and id of the last one that was seen. */
export async function listWebhookEndpoints(
  orgDb: OrgDb,
  page: { limit: number; offset: number; after?: { micros: bigint; id: string } | undefined },
): Promise<WebhookEndpoint[]> {
  const rows = await orgDb.rows<EndpointRow>(
    `select ${COLUMNS} from webhook_endpoints where org_id = $1 and removed_at is null
       and ($2::timestamptz is null or (created_at, id) < ($2, $3::uuid))
     order by created_at desc, id desc limit $4 offset $5`,
    [
      orgDb.orgId,
      page.after ? isoFromMicros(page.after.micros) : null,
      page.after?.id ?? null,
      page.limit,
      page.offset,
    ],
  );
  return rows.map(fromEndpointRow);
}

export interface EndpointChanges {
  url?: string | undefined;
  description?: string | undefined;
  eventTypes?: readonly WebhookEventType[] | undefined;
  /** `true` also makes one active again whose receiver had said that it is gone; `false` cancels what is pending. */
  enabled?: boolean | undefined;
}

/**
 * Changes a receiver in the caller's transaction; what is not named stays. Undefined when there is none. Where
 * everything is as it is wanted nothing is written, and `isChanged` is false.
 */
export async function updateWebhookEndpoint(
  inside: OrgDb,
  id: string,
  changes: EndpointChanges,
): Promise<{ endpoint: WebhookEndpoint; isChanged: boolean } | undefined> {
  await bumpRulesRevision(inside);
  const rows = await inside.rows<EndpointRow>(
    `update webhook_endpoints set url = coalesce($3, url), description = coalesce($4, description),
       event_types = coalesce($5::text[], event_types),
       status = case when $6::boolean is null then status when $6 then 'active' else 'disabled' end,
       disabled_reason = case when $6::boolean is null or (not $6 and status = 'disabled') then disabled_reason
         when $6 then null else 'requested' end,
       disabled_at = case when $6::boolean is null or (not $6 and status = 'disabled') then disabled_at
         when $6 then null else now() end,
       updated_at = now()
     where org_id = $1 and id = $2 and removed_at is null
       and (url, description, event_types, status = 'active') is distinct from
         (coalesce($3, url), coalesce($4, description), coalesce($5::text[], event_types),
          coalesce($6::boolean, status = 'active'))
     returning ${COLUMNS}`,
    [
      inside.orgId,
      id,
      changes.url ?? null,
      changes.description ?? null,
      changes.eventTypes ? textArray([...changes.eventTypes]) : null,
      changes.enabled ?? null,
    ],
  );
  const [row] = rows;
  if (!row) {
    const endpoint = await findWebhookEndpoint(inside, id);
    return endpoint && { endpoint, isChanged: false };
  }
  if (row.status === 'disabled') await cancelPendingDeliveries(inside, id);
  return { endpoint: fromEndpointRow(row), isChanged: true };
}

/**
 * Switches off a receiver that says that it is gone, and cancels what is pending. In the caller's transaction. False when
 * it is not active (any more).
 */
export async function disableGoneEndpoint(inside: OrgDb, id: string): Promise<boolean> {
  await bumpRulesRevision(inside);
  const changed = await inside.run(
    `update webhook_endpoints set status = 'disabled', disabled_reason = 'gone', disabled_at = now(), updated_at = now()
     where org_id = $1 and id = $2 and status = 'active' and removed_at is null`,
    [inside.orgId, id],
  );
  if (changed === 0) return false;
  await cancelPendingDeliveries(inside, id);
  return true;
}

/** Removes a receiver and erases its secrets; what is pending is cancelled. In the caller's transaction. Undefined when there is none. */
export async function removeWebhookEndpoint(inside: OrgDb, id: string): Promise<WebhookEndpoint | undefined> {
  await bumpRulesRevision(inside);
  const rows = await inside.rows<EndpointRow>(
    `update webhook_endpoints set removed_at = now(), updated_at = now(), ciphertext = null, secret_key_id = null
     where org_id = $1 and id = $2 and removed_at is null returning ${COLUMNS}`,
    [inside.orgId, id],
  );
  const [row] = rows;
  if (!row) return undefined;
  await cancelPendingDeliveries(inside, id);
  return fromEndpointRow(row);
}

/**
 * Cancels what is to be sent to a receiver that is switched off or removed; returns how many messages. One that was
 * switched on meanwhile loses nothing: what can be seen of it then was told before that.
 */
export async function cancelPendingDeliveries(orgDb: OrgDb, endpointId: string): Promise<number> {
  return orgDb.run(
    `update webhook_deliveries set status = 'cancelled', next_attempt_at = null, finished_at = now()
     where org_id = $1 and endpoint_id = $2 and status = 'pending' and not exists (
       select from webhook_endpoints e where e.org_id = $1 and e.id = $2 and e.status = 'active' and e.removed_at is null)`,
    [orgDb.orgId, endpointId],
  );
}

/**
 * Stores secrets that take the place of those at hand. `next` is given the stored receiver, locked, and seals; in the
 * caller's transaction. Undefined when there is no such receiver.
 */
export async function replaceWebhookSecrets(
  inside: OrgDb,
  id: string,
  next: (stored: WebhookEndpoint) => { ciphertext: Buffer; keyId: string },
): Promise<WebhookEndpoint | undefined> {
  await bumpRulesRevision(inside);
  const [stored] = await inside.rows<EndpointRow>(
    `select ${COLUMNS} from webhook_endpoints where org_id = $1 and id = $2 and removed_at is null for update`,
    [inside.orgId, id],
  );
  if (!stored) return undefined;
  const { ciphertext, keyId } = await sealUnderLock(inside, () => next(fromEndpointRow(stored)));
  const rows = await inside.rows<EndpointRow>(
    `update webhook_endpoints set ciphertext = $3, secret_key_id = $4, updated_at = now()
     where org_id = $1 and id = $2 returning ${COLUMNS}`,
    [inside.orgId, id, ciphertext, keyId],
  );
  return rows[0] && fromEndpointRow(rows[0]);
}
