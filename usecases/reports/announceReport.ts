import type { OrgDb } from '../../db/orgDb.js';
import { findReport } from '../../db/reports/reports.js';
import { publishMessages } from '../../db/webhooks/webhookDeliveries.js';
import { reportMessage } from '../../domain/webhooks/messages.js';

/** Sends word of a report that the caller's transaction has just ended to the receivers of webhooks; a failed one is announced to none. */
export async function announceReport(inside: OrgDb, id: string): Promise<void> {
  const report = await findReport(inside, id);
  if (report) await publishMessages(inside, [reportMessage(report)]);
}
