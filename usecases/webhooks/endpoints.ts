import { randomBytes } from 'node:crypto';
import type { DeliverMail } from '../../adapters/mail/smtpMailer.js';
import type { SafeFetch } from '../../adapters/outbound/safeFetch.js';
import type { OrgDb } from '../../db/orgDb.js';
import {
  type EndpointChanges,
  type EndpointTarget,
  findWebhookEndpoint,
  insertWebhookEndpoint,
  type NewWebhookEndpoint,
  removeWebhookEndpoint,
  replaceWebhookSecrets,
  updateWebhookEndpoint,
  type WebhookEndpoint,
} from '../../db/webhooks/webhookEndpoints.js';
import { DomainError, invalidField } from '../../domain/errors.js';
import { findUuid, newUuid, publicId } from '../../domain/ids.js';
import { domainOfAddress } from '../../domain/webhooks/mailAddress.js';
import {
  type EndpointSecrets,
  findSecrets,
  formatSecret,
  rotateSecrets,
  SECRET_BYTES,
  sealSecrets,
} from '../../domain/webhooks/secret.js';
import type { SecretKeys } from '../../platform/secretKeys.js';
import { type RequestAuthor, recordAction } from '../access/recordAction.js';
import { mailNotConfigured } from './sendAttempt.js';
import { unsubscribeHash, unsubscribeToken } from './unsubscribe.js';

/** Most webhook endpoints of an organization. Each message is sent to each of them. */
export const WEBHOOK_ENDPOINTS_MAX = 50;

function webhookNotFound(): DomainError {
  return new DomainError('not_found', 'there is no webhook endpoint with this id');
}

/** The uuid in an endpoint's public id. Error: not_found. */
export function uuidOfWebhook(id: string): string {
  const uuid = findUuid('whk', id);
  if (uuid === undefined) throw webhookNotFound();
  return uuid;
}

/** Error: not_found. */
export async function getWebhook(orgDb: OrgDb, id: string): Promise<WebhookEndpoint> {
  const endpoint = await findWebhookEndpoint(orgDb, id);
  if (!endpoint) throw webhookNotFound();
  return endpoint;
}

export const webhookSubject = (uuid: string) => ({ type: 'webhook_endpoint', id: publicId('whk', uuid) });

/**
 * The part of an address that alerts and the audit log show: its path may contain a secret of the receiver, and more
 * people may read them than endpoints.
 */
export function placeOf({ url, recipient }: { url?: string | null; recipient?: string | null }): string {
  return url ? new URL(url).host : domainOfAddress(recipient ?? '');
}

export const drawSecret = (): string => formatSecret(randomBytes(SECRET_BYTES));

/**
 * Resolves the address of a new endpoint before the transaction, which must not wait for DNS. Errors: invalid_body,
 * mail_not_configured.
 */
export async function readyToCreate(
  target: EndpointTarget,
  { outbound, deliverMail }: { outbound: SafeFetch; deliverMail?: DeliverMail | undefined },
): Promise<EndpointTarget> {
  if (target.format !== 'email')
    return { ...target, url: await outbound.assertPublicAddress(target.url, 'url') };
  if (!deliverMail) throw mailNotConfigured();
  return target;
}

/**
 * Creates an endpoint whose address was resolved before; this is the only time its secret is shown. null: its messages
 * are not signed. Error: too_many_items.
 */
export async function createWebhook(
  orgDb: OrgDb,
  wanted: Omit<NewWebhookEndpoint, 'id' | 'createdBy'>,
  author: RequestAuthor,
  { secretKeys, nowMicros }: { secretKeys: SecretKeys; nowMicros: () => bigint },
): Promise<{ endpoint: WebhookEndpoint; secret: string | null }> {
  const id = newUuid(nowMicros());
  const { target } = wanted;
  const secret = target.format === 'slack' || target.format === 'teams' ? null : drawSecret();
  const isMail = target.format === 'email';
  return orgDb.transaction(async (inside) => {
    const row = {
      ...{ ...wanted, id, createdBy: author.caller.keyId },
      unsubscribeHash: isMail && secret ? unsubscribeHash(unsubscribeToken(secret)) : undefined,
    };
    const seal =
      secret === null
        ? undefined
        : () => sealSecrets(secretKeys, inside.orgId, id, { current: secret, previous: null });
    const endpoint = await insertWebhookEndpoint(inside, row, WEBHOOK_ENDPOINTS_MAX, seal);
    if (!endpoint)
      throw new DomainError(
        'too_many_items',
        `an organization can have ${WEBHOOK_ENDPOINTS_MAX} webhook endpoints: remove some that are no longer used`,
      );
    const details = {
      ...{ host: placeOf(target), event_types: wanted.eventTypes, enabled: wanted.enabled },
      ...(target.format === 'standard' ? {} : { format: target.format }),
    };
    await recordAction(inside, author, 'webhook.created', webhookSubject(id), details);
    return { endpoint, secret: isMail ? null : secret };
  });
}

/** Resolves a changed address before the transaction, which must not wait for DNS. Errors: not_found, invalid_body. */
export async function readyToChange(
  orgDb: OrgDb,
  id: string,
  change: EndpointChanges,
  outbound: SafeFetch,
): Promise<EndpointChanges> {
  const { format } = await getWebhook(orgDb, id);
  if (change.url === undefined) return change;
  if (format === 'email')
    throw invalidField(
      'body',
      'url',
      'an e-mail endpoint has none; make a new endpoint instead',
      'invalid_body',
    );
  return { ...change, url: await outbound.assertPublicAddress(change.url, 'url') };
}

/**
 * Changes an endpoint; absent fields keep their values. `changed` lists the fields of the request. Error: not_found.
 */
export async function changeWebhook(
  orgDb: OrgDb,
  id: string,
  change: EndpointChanges,
  changed: readonly string[],
  author: RequestAuthor,
): Promise<WebhookEndpoint> {
  return orgDb.transaction(async (inside) => {
    const after = await updateWebhookEndpoint(inside, id, change);
    if (!after) throw webhookNotFound();
    if (!after.isChanged) return after.endpoint;
    const { url, eventTypes, enabled, digest } = change;
    const details = {
      changed: [...changed].sort(),
      host: url && placeOf({ url }),
      event_types: eventTypes,
      enabled,
      digest,
    };
    await recordAction(inside, author, 'webhook.changed', webhookSubject(id), details);
    return after.endpoint;
  });
}

/** Removes an endpoint with its secret, and cancels its pending deliveries. Error: not_found. */
export async function deleteWebhook(orgDb: OrgDb, id: string, author: RequestAuthor): Promise<void> {
  await orgDb.transaction(async (inside) => {
    const removed = await removeWebhookEndpoint(inside, id);
    if (!removed) throw webhookNotFound();
    const details = { host: placeOf(removed) };
    await recordAction(inside, author, 'webhook.removed', webhookSubject(id), details);
  });
}

/** An endpoint with its new secret; the previous one keeps signing until its grace period ends. */
export interface RotatedWebhook {
  endpoint: WebhookEndpoint;
  secret: string;
  previousUntilMicros: bigint | null;
}

/** Replaces the secret of an endpoint. Errors: not_found; credentials_missing where its format is not signed. */
export async function rotateWebhookSecret(
  orgDb: OrgDb,
  { id, graceSeconds }: { id: string; graceSeconds: number },
  author: RequestAuthor,
  { secretKeys, nowMicros }: { secretKeys: SecretKeys; nowMicros: () => bigint },
): Promise<RotatedWebhook> {
  const secret = drawSecret();
  return orgDb.transaction(async (inside) => {
    let secrets: EndpointSecrets = { current: secret, previous: null };
    const endpoint = await replaceWebhookSecrets(inside, id, ({ ciphertext, format }) => {
      if (format !== 'standard')
        throw new DomainError(
          'credentials_missing',
          `messages of the format ${format} are not signed, so the endpoint has no secret to replace`,
        );
      // A present secret that cannot be decrypted signs nothing, so the new one replaces it without a grace period.
      const before = findSecrets(secretKeys, inside.orgId, { id, ciphertext });
      if (before) secrets = rotateSecrets(before, secret, nowMicros(), graceSeconds);
      return sealSecrets(secretKeys, inside.orgId, id, secrets);
    });
    if (!endpoint) throw webhookNotFound();
    const { previous } = secrets;
    const details = { grace_seconds: previous === null ? 0 : graceSeconds };
    await recordAction(inside, author, 'webhook.secret_rotated', webhookSubject(id), details);
    return { endpoint, secret, previousUntilMicros: previous?.untilMicros ?? null };
  });
}
