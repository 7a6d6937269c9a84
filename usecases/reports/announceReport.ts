import type { OrgDb } from '../../db/orgDb.js';
import { findReport } from '../../db/reports/reports.js';
import { publishMessages } from '../../db/webhooks/webhookDeliveries.js';
import { reportMessage } from '../../domain/webhooks/messages.js';

/** Publishes the webhook message of a report that the caller's transaction has just ended; a failed one has none. */
export async function announceReport(inside: OrgDb, id: string): Promise<void> {
  const report = await findReport(inside, id);
  if (report) await publishMessages(inside, [reportMessage(report)]);
}
