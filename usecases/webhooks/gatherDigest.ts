import { getOrganization } from '../../db/installation/organizations.js';
import type { OrgDb } from '../../db/orgDb.js';
import {
  gatherDeliveries,
  insertDigest,
  listGatheredMessages,
  lockDigests,
  postponeToDigest,
} from '../../db/webhooks/webhookDigests.js';
import { newUuid, publicId } from '../../domain/ids.js';
import { isoFromMicros } from '../../domain/period.js';
import { DIGEST_LINES_MAX, type DigestLine, digestBody, digestTimes } from '../../domain/webhooks/digest.js';
import type { StoredMessage } from '../../domain/webhooks/notices.js';
import { noticeOfMessage } from './sendAttempt.js';

/**
 * Makes the digest of the messages that were published before the latest digest hour; later ones wait for the next. In
 * the caller's transaction: each message is in one digest, and a day without messages has none. false: the endpoint has
 * no digests any more, and its messages are sent one by one.
 */
export async function gatherDigest(
  inside: OrgDb,
  endpointId: string,
  { nowMicros, baseUrl }: { nowMicros(): bigint; baseUrl(): string },
): Promise<boolean> {
  if (!(await lockDigests(inside, endpointId))) return false;
  const now = nowMicros();
  const { settings } = await getOrganization(inside);
  const { lastMicros, nextMicros } = digestTimes(settings.timeZone, now);
  const deliveryId = newUuid(now);
  const count = await gatherDeliveries(inside, endpointId, deliveryId, lastMicros);
  if (count > 0) {
    const notices: DigestLine[] = [];
    for (const { id, type, body } of await listGatheredMessages(inside, deliveryId, DIGEST_LINES_MAX)) {
      const notice = await noticeOfMessage(inside, JSON.parse(body) as StoredMessage, baseUrl());
      notices.push({ message_id: publicId('msg', id), type, ...notice });
    }
    const data = { webhook_endpoint_id: publicId('whk', endpointId), count, notices };
    const body = digestBody(isoFromMicros(lastMicros), data);
    await insertDigest(inside, { deliveryId, messageId: newUuid(now), endpointId, body });
  }
  await postponeToDigest(inside, endpointId, nextMicros);
  return true;
}
