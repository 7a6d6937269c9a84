import type { OrgDb } from '../../db/orgDb.js';
import { publishToEndpoints } from '../../db/webhooks/webhookDeliveries.js';
import { findWebhookEndpoint, insertWebhookEndpoint } from '../../db/webhooks/webhookEndpoints.js';
import type { Cadence, Delivery } from '../../domain/reports/schedule.js';
import { type AnnouncedReport, reportMessage } from '../../domain/webhooks/messages.js';
import { sealSecrets } from '../../domain/webhooks/secret.js';
import type { SecretKeys } from '../../platform/secretKeys.js';
import { drawSecret } from './endpoints.js';
import { unsubscribeHash, unsubscribeToken } from './unsubscribe.js';

/**
 * Sends a scheduled report to the addresses of its schedule, with the document attached; webhook endpoints get
 * `report.generated` by `announceReport`, which comes before. In the caller's transaction. Each address is an e-mail
 * endpoint with the id of its delivery, so that attempts, repeats and the end by the recipient are those of webhooks.
 */
export async function deliverReport(
  inside: OrgDb,
  report: AnnouncedReport,
  { cadence, deliveries }: { cadence: Cadence; deliveries: readonly Delivery[] },
  { secretKeys }: { secretKeys: SecretKeys },
): Promise<void> {
  const mails = deliveries.filter((delivery) => delivery.type === 'email');
  if (mails.length === 0) return;
  for (const { id, to } of mails) await ensureEndpoint(inside, { id, to, cadence }, secretKeys);
  await publishToEndpoints(
    inside,
    reportMessage(report),
    mails.map(({ id }) => id),
  );
}

async function ensureEndpoint(
  inside: OrgDb,
  { id, to, cadence }: { id: string; to: string; cadence: Cadence },
  secretKeys: SecretKeys,
): Promise<void> {
  if (await findWebhookEndpoint(inside, id)) return;
  const secret = drawSecret();
  const endpoint = {
    ...{
      id,
      description: '',
      eventTypes: ['report.generated' as const],
      enabled: true,
      createdBy: 'schedule',
    },
    target: { format: 'email' as const, recipient: to, digest: 'none' as const },
    unsubscribeHash: unsubscribeHash(unsubscribeToken(secret)),
    reportCadence: cadence,
  };
  // A schedule has its own limit of deliveries.
  await insertWebhookEndpoint(inside, endpoint, Number.MAX_SAFE_INTEGER, () =>
    sealSecrets(secretKeys, inside.orgId, id, { current: secret, previous: null }),
  );
}
