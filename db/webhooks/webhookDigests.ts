import { isoFromMicros } from '../../domain/period.js';
import { DIGEST_MESSAGE_TYPE, type MessageType } from '../../domain/webhooks/messages.js';
import { insertRow } from '../entity.js';
import type { OrgDb } from '../orgDb.js';
import { WAITS_FOR_DIGEST } from './webhookDeliveries.js';

/**
 * Locks an endpoint whose messages wait for digests; false: they no longer do. A change of its digests waits for the
 * caller's transaction, and then also releases what that one lets wait.
 */
export async function lockDigests(inside: OrgDb, endpointId: string): Promise<boolean> {
  const locked = await inside.rows(
    `select from webhook_endpoints where org_id = $1 and id = $2 and digest = 'daily' for no key update`,
    [inside.orgId, endpointId],
  );
  return locked.length > 0;
}

/** Puts what was published before a time into a digest; returns the number of messages. A repeat finds none. */
export async function gatherDeliveries(
  inside: OrgDb,
  endpointId: string,
  digestDeliveryId: string,
  beforeMicros: bigint,
): Promise<number> {
  return inside.run(
    `update webhook_deliveries d set status = 'gathered', digest_delivery_id = $3, next_attempt_at = null, finished_at = now()
     where org_id = $1 and endpoint_id = $2 and status = 'pending' and created_at < $4::timestamptz and ${WAITS_FOR_DIGEST}`,
    [inside.orgId, endpointId, digestDeliveryId, isoFromMicros(beforeMicros)],
  );
}

export interface GatheredMessage {
  id: string;
  type: MessageType;
  body: string;
}

/** The first messages of a digest. */
export async function listGatheredMessages(
  orgDb: OrgDb,
  digestDeliveryId: string,
  limit: number,
): Promise<GatheredMessage[]> {
  return orgDb.rows<GatheredMessage>(
    `select m.id, m.type, m.body from webhook_deliveries d
       join webhook_messages m on m.org_id = d.org_id and m.id = d.message_id
     where d.org_id = $1 and d.digest_delivery_id = $2 order by d.created_at, d.id limit $3`,
    [orgDb.orgId, digestDeliveryId, limit],
  );
}

/** Stores a digest, due now. */
export async function insertDigest(
  inside: OrgDb,
  digest: { deliveryId: string; messageId: string; endpointId: string; body: string },
): Promise<void> {
  const { deliveryId, messageId, endpointId, body } = digest;
  const { orgId } = inside;
  await insertRow(inside, 'webhook_messages', { orgId, id: messageId, type: DIGEST_MESSAGE_TYPE, body });
  await insertRow(inside, 'webhook_deliveries', { orgId, id: deliveryId, endpointId, messageId });
}

/** Lets what waits for a digest sleep until then. */
export async function postponeToDigest(
  inside: OrgDb,
  endpointId: string,
  untilMicros: bigint,
): Promise<void> {
  await inside.run(
    `update webhook_deliveries d set next_attempt_at = $3::timestamptz
     where org_id = $1 and endpoint_id = $2 and status = 'pending' and next_attempt_at < $3::timestamptz and ${WAITS_FOR_DIGEST}`,
    [inside.orgId, endpointId, isoFromMicros(untilMicros)],
  );
}
