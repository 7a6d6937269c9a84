import type { Cadence } from '../../domain/reports/schedule.js';
import type {
  Digest,
  DisabledReason,
  EndpointFormat,
  EndpointStatus,
  WebhookEventType,
} from '../../domain/webhooks/messages.js';
import type { Database } from '../client.js';
import { column, defineEntity, findEntity, listNewest, type TimePage } from '../entity.js';
import { bumpRulesRevision } from '../installation/organizations.js';
import { type Sealed, sealUnderLock } from '../locks.js';
import { type OrgDb, unscoped } from '../orgDb.js';
import { textArray } from '../pgArray.js';
import { insertOutboxMessage } from '../runs/outbox.js';

/** Lock order of a change: the organization's row (`bumpRulesRevision`), the endpoint, its deliveries. */

export interface WebhookEndpoint {
  id: string;
  format: EndpointFormat;
  digest: Digest;
  /** null: an e-mail. */
  url: string | null;
  /** The address of an e-mail, else null. */
  recipient: string | null;
  description: string;
  /** Empty: every type. */
  eventTypes: WebhookEventType[];
  status: EndpointStatus;
  disabledReason: DisabledReason | null;
  disabledAtMicros: bigint | null;
  /** null: its format needs none, or no key decrypted them and the operator gave them up. */
  ciphertext: Buffer | null;
  /** Of the schedule of reports whose delivery it is; null: an endpoint of its own. */
  reportCadence: Cadence | null;
  lastDeliveredAtMicros: bigint | null;
  lastFailedAtMicros: bigint | null;
  createdAtMicros: bigint;
  updatedAtMicros: bigint;
  createdBy: string;
}

const ENDPOINT = defineEntity<WebhookEndpoint>('webhook_endpoints', {
  id: column(),
  format: column(),
  digest: column(),
  url: column(),
  recipient: column(),
  description: column(),
  eventTypes: column(),
  status: column(),
  disabledReason: column(),
  disabledAtMicros: column(),
  ciphertext: column(),
  reportCadence: column(),
  lastDeliveredAtMicros: column(),
  lastFailedAtMicros: column(),
  createdAtMicros: column(),
  updatedAtMicros: column(),
  createdBy: column(),
});

/** The receiver of an endpoint's messages, and their form. */
export type EndpointTarget = { digest: Digest } & (
  | { format: Exclude<EndpointFormat, 'email'>; url: string }
  | { format: 'email'; recipient: string }
);

export interface NewWebhookEndpoint {
  id: string;
  target: EndpointTarget;
  description: string;
  eventTypes: readonly WebhookEventType[];
  enabled: boolean;
  createdBy: string;
  /** Of an e-mail: the hash of the token that ends it. */
  unsubscribeHash?: Buffer | undefined;
  reportCadence?: Cadence | undefined;
}

/** Stores an endpoint; undefined: the organization already has `countMax`. In the caller's transaction. */
export async function insertWebhookEndpoint(
  inside: OrgDb,
  endpoint: NewWebhookEndpoint,
  countMax: number,
  seal: (() => Sealed) | undefined,
): Promise<WebhookEndpoint | undefined> {
  // Its lock on the organization's row also serializes two requests for the last free place.
  await bumpRulesRevision(inside);
  const [count] = await inside.rows<{ count: number }>(
    'select count(*) as count from webhook_endpoints where org_id = $1 and removed_at is null and report_cadence is null',
    [inside.orgId],
  );
  if ((count?.count ?? 0) >= countMax) return undefined;
  const { target } = endpoint;
  const sealed = seal && (await sealUnderLock(inside, seal));
  const [stored] = await inside.rows<WebhookEndpoint>(
    `insert into webhook_endpoints (org_id, id, url, description, event_types, status, disabled_reason, disabled_at, ciphertext,
       secret_key_id, created_by, format, digest, recipient, unsubscribe_hash, report_cadence)
     values ($1, $2, $3, $4, $5::text[], case when $6::boolean then 'active' else 'disabled' end,
       case when $6 then null else 'requested' end, case when $6 then null else now() end, $7, $8, $9, $10, $11, $12, $13, $14)
     returning ${ENDPOINT.columns}`,
    [
      inside.orgId,
      endpoint.id,
      target.format === 'email' ? null : target.url,
      endpoint.description,
      textArray([...endpoint.eventTypes]),
      endpoint.enabled,
      sealed?.ciphertext ?? null,
      sealed?.keyId ?? null,
      endpoint.createdBy,
      target.format,
      target.digest,
      target.format === 'email' ? target.recipient : null,
      endpoint.unsubscribeHash ?? null,
      endpoint.reportCadence ?? null,
    ],
  );
  return stored;
}

export function findWebhookEndpoint(orgDb: OrgDb, id: string): Promise<WebhookEndpoint | undefined> {
  return findEntity(orgDb, ENDPOINT, { id, removedAt: null });
}

/**
 * Endpoints that were not removed, newest first, deliveries of reports aside; `after` is the time and id of the previous
 * page's last one.
 */
export function listWebhookEndpoints(orgDb: OrgDb, page: TimePage): Promise<WebhookEndpoint[]> {
  return listNewest(orgDb, ENDPOINT, {
    and: (query) => query.whereNull('removed_at').whereNull('report_cadence'),
    page,
  });
}

export interface EndpointChanges {
  url?: string | undefined;
  digest?: Digest | undefined;
  description?: string | undefined;
  eventTypes?: readonly WebhookEventType[] | undefined;
  /**
   * `true` also reactivates an endpoint whose receiver answered that it is gone; `false` cancels pending deliveries.
   */
  enabled?: boolean | undefined;
}

/** Changes an endpoint; absent fields keep their values. `isChanged` is false where nothing was written. */
export async function updateWebhookEndpoint(
  inside: OrgDb,
  id: string,
  changes: EndpointChanges,
): Promise<{ endpoint: WebhookEndpoint; isChanged: boolean } | undefined> {
  await bumpRulesRevision(inside);
  const [endpoint] = await inside.rows<WebhookEndpoint>(
    `update webhook_endpoints set url = coalesce($3, url), description = coalesce($4, description),
       event_types = coalesce($5::text[], event_types), digest = coalesce($7, digest),
       status = case when $6::boolean is null then status when $6 then 'active' else 'disabled' end,
       disabled_reason = case when $6::boolean is null or (not $6 and status = 'disabled') then disabled_reason
         when $6 then null else 'requested' end,
       disabled_at = case when $6::boolean is null or (not $6 and status = 'disabled') then disabled_at
         when $6 then null else now() end,
       updated_at = now()
     where org_id = $1 and id = $2 and removed_at is null
       and (url, description, event_types, digest, status = 'active') is distinct from
         (coalesce($3, url), coalesce($4, description), coalesce($5::text[], event_types), coalesce($7, digest),
          coalesce($6::boolean, status = 'active'))
     returning ${ENDPOINT.columns}`,
    [
      inside.orgId,
      id,
      changes.url ?? null,
      changes.description ?? null,
      changes.eventTypes ? textArray([...changes.eventTypes]) : null,
      changes.enabled ?? null,
      changes.digest ?? null,
    ],
  );
  if (!endpoint) {
    const unchanged = await findWebhookEndpoint(inside, id);
    return unchanged && { endpoint: unchanged, isChanged: false };
  }
  if (endpoint.status === 'disabled') await cancelPendingDeliveries(inside, id);
  else if (changes.digest === 'none') await releaseGathering(inside, id);
  return { endpoint, isChanged: true };
}

/**
 * Disables an endpoint whose receiver answered that it is gone and cancels pending deliveries. false: it is not active.
 */
export async function disableGoneEndpoint(inside: OrgDb, id: string): Promise<boolean> {
  return disableEndpoint(inside, id, 'gone');
}

async function disableEndpoint(inside: OrgDb, id: string, reason: DisabledReason): Promise<boolean> {
  await bumpRulesRevision(inside);
  const changed = await inside.run(
    `update webhook_endpoints set status = 'disabled', disabled_reason = $3, disabled_at = now(), updated_at = now()
     where org_id = $1 and id = $2 and status = 'active' and removed_at is null`,
    [inside.orgId, id, reason],
  );
  if (changed === 0) return false;
  await cancelPendingDeliveries(inside, id);
  return true;
}

/**
 * Removes an endpoint, erases its secrets and cancels its pending deliveries. In the caller's transaction. undefined:
 * it does not exist.
 */
export async function removeWebhookEndpoint(inside: OrgDb, id: string): Promise<WebhookEndpoint | undefined> {
  await bumpRulesRevision(inside);
  const [removed] = await inside.rows<WebhookEndpoint>(
    `update webhook_endpoints set removed_at = now(), updated_at = now(), ciphertext = null, secret_key_id = null,
       unsubscribe_hash = null
     where org_id = $1 and id = $2 and removed_at is null returning ${ENDPOINT.columns}`,
    [inside.orgId, id],
  );
  if (removed) await cancelPendingDeliveries(inside, id);
  return removed;
}

/** Cancels pending deliveries of a disabled or removed endpoint; returns their number. */
export async function cancelPendingDeliveries(orgDb: OrgDb, endpointId: string): Promise<number> {
  return orgDb.run(
    `update webhook_deliveries set status = 'cancelled', next_attempt_at = null, finished_at = now()
     where org_id = $1 and endpoint_id = $2 and status = 'pending' and not exists (
       select from webhook_endpoints e where e.org_id = $1 and e.id = $2 and e.status = 'active' and e.removed_at is null)`,
    [orgDb.orgId, endpointId],
  );
}

/** Replaces an endpoint's secrets; `next` encrypts under the lock. undefined: the endpoint does not exist. */
export async function replaceWebhookSecrets(
  inside: OrgDb,
  id: string,
  next: (stored: WebhookEndpoint) => Sealed,
): Promise<WebhookEndpoint | undefined> {
  await bumpRulesRevision(inside);
  const stored = await findEntity(inside, ENDPOINT, { id, removedAt: null }, 'for update');
  if (!stored) return undefined;
  const { ciphertext, keyId } = await sealUnderLock(inside, () => next(stored));
  const [resealed] = await inside.rows<WebhookEndpoint>(
    `update webhook_endpoints set ciphertext = $3, secret_key_id = $4, updated_at = now()
     where org_id = $1 and id = $2 returning ${ENDPOINT.columns}`,
    [inside.orgId, id, ciphertext, keyId],
  );
  return resealed;
}

/** The e-mail endpoint whose mails contain the token of this hash, of whatever organization. */
export async function findMailSubscription(
  database: Database,
  hash: Buffer,
): Promise<{ orgId: string; endpointId: string } | undefined> {
  return unscoped(database, 'a token that ends mails names its organization', async (system) => {
    const [row] = await system.rows<{ orgId: string; endpointId: string }>(
      'select org_id as "orgId", id as "endpointId" from webhook_endpoints where unsubscribe_hash = $1',
      [hash],
    );
    return row;
  });
}

/** Makes what waited for a digest due now. */
async function releaseGathering(inside: OrgDb, id: string): Promise<void> {
  const released = await inside.run(
    `update webhook_deliveries set next_attempt_at = now()
     where org_id = $1 and endpoint_id = $2 and status = 'pending' and attempts = 0 and next_attempt_at > now()`,
    [inside.orgId, id],
  );
  if (released > 0) await insertOutboxMessage(inside, 'webhook.deliver', id);
}

/** Disables an endpoint whose recipient ended it, and cancels pending deliveries. false: it is not active. */
export async function disableUnsubscribedEndpoint(inside: OrgDb, id: string): Promise<boolean> {
  return disableEndpoint(inside, id, 'unsubscribed');
}

/** Takes a delivery out of its schedule of reports. */
export async function removeReportDelivery(inside: OrgDb, cadence: Cadence, id: string): Promise<void> {
  await inside.run(
    `update report_schedules set updated_at = now(), deliveries =
       (select coalesce(jsonb_agg(d), '[]') from jsonb_array_elements(deliveries) d where d ->> 'id' is distinct from $3)
     where org_id = $1 and cadence = $2`,
    [inside.orgId, cadence, id],
  );
}
