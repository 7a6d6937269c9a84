import type { DisabledReason, EndpointStatus, WebhookEventType } from '../../domain/webhooks/messages.js';
import { column, defineEntity, findEntity, listNewest, type TimePage } from '../entity.js';
import { bumpRulesRevision } from '../installation/organizations.js';
import { type Sealed, sealUnderLock } from '../locks.js';
import type { OrgDb } from '../orgDb.js';
import { textArray } from '../pgArray.js';

/** Lock order of a change: the organization's row (`bumpRulesRevision`), the endpoint, its deliveries. */

export interface WebhookEndpoint {
  id: string;
  url: string;
  description: string;
  /** Empty: every type. */
  eventTypes: WebhookEventType[];
  status: EndpointStatus;
  disabledReason: DisabledReason | null;
  disabledAtMicros: bigint | null;
  /** null: no key decrypted them and the operator gave them up. */
  ciphertext: Buffer | null;
  lastDeliveredAtMicros: bigint | null;
  lastFailedAtMicros: bigint | null;
  createdAtMicros: bigint;
  updatedAtMicros: bigint;
  createdBy: string;
}

const ENDPOINT = defineEntity<WebhookEndpoint>('webhook_endpoints', {
  id: column(),
  url: column(),
  description: column(),
  eventTypes: column(),
  status: column(),
  disabledReason: column(),
  disabledAtMicros: column(),
  ciphertext: column(),
  lastDeliveredAtMicros: column(),
  lastFailedAtMicros: column(),
  createdAtMicros: column(),
  updatedAtMicros: column(),
  createdBy: column(),
});

export interface NewWebhookEndpoint {
  id: string;
  url: string;
  description: string;
  eventTypes: readonly WebhookEventType[];
  enabled: boolean;
  createdBy: string;
}

/** Stores an endpoint; undefined: the organization already has `countMax`. In the caller's transaction. */
export async function insertWebhookEndpoint(
  inside: OrgDb,
  endpoint: NewWebhookEndpoint,
  countMax: number,
  seal: () => Sealed,
): Promise<WebhookEndpoint | undefined> {
  // Its lock on the organization's row also serializes two requests for the last free place.
  await bumpRulesRevision(inside);
  const [count] = await inside.rows<{ count: number }>(
    'select count(*) as count from webhook_endpoints where org_id = $1 and removed_at is null',
    [inside.orgId],
  );
  if ((count?.count ?? 0) >= countMax) return undefined;
  const { ciphertext, keyId } = await sealUnderLock(inside, seal);
  const [stored] = await inside.rows<WebhookEndpoint>(
    `insert into webhook_endpoints (org_id, id, url, description, event_types, status, disabled_reason, disabled_at, ciphertext, secret_key_id, created_by)
     values ($1, $2, $3, $4, $5::text[], case when $6::boolean then 'active' else 'disabled' end,
       case when $6 then null else 'requested' end, case when $6 then null else now() end, $7, $8, $9)
     returning ${ENDPOINT.columns}`,
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
  return stored;
}

export function findWebhookEndpoint(orgDb: OrgDb, id: string): Promise<WebhookEndpoint | undefined> {
  return findEntity(orgDb, ENDPOINT, { id, removedAt: null });
}

/** Endpoints that were not removed, newest first; `after` is the time and id of the previous page's last one. */
export function listWebhookEndpoints(orgDb: OrgDb, page: TimePage): Promise<WebhookEndpoint[]> {
  return listNewest(orgDb, ENDPOINT, { and: (query) => query.whereNull('removed_at'), page });
}

export interface EndpointChanges {
  url?: string | undefined;
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
     returning ${ENDPOINT.columns}`,
    [
      inside.orgId,
      id,
      changes.url ?? null,
      changes.description ?? null,
      changes.eventTypes ? textArray([...changes.eventTypes]) : null,
      changes.enabled ?? null,
    ],
  );
  if (!endpoint) {
    const unchanged = await findWebhookEndpoint(inside, id);
    return unchanged && { endpoint: unchanged, isChanged: false };
  }
  if (endpoint.status === 'disabled') await cancelPendingDeliveries(inside, id);
  return { endpoint, isChanged: true };
}

/**
 * Disables an endpoint whose receiver answered that it is gone and cancels pending deliveries. false: it is not active.
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

/**
 * Removes an endpoint, erases its secrets and cancels its pending deliveries. In the caller's transaction. undefined:
 * it does not exist.
 */
export async function removeWebhookEndpoint(inside: OrgDb, id: string): Promise<WebhookEndpoint | undefined> {
  await bumpRulesRevision(inside);
  const [removed] = await inside.rows<WebhookEndpoint>(
    `update webhook_endpoints set removed_at = now(), updated_at = now(), ciphertext = null, secret_key_id = null
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
