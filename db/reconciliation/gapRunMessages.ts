import { type EndedGapRun, gapRunMessage } from '../../domain/webhooks/gapRunMessage.js';
import type { OrgDb } from '../orgDb.js';
import { publishMessages } from '../webhooks/webhookMessages.js';

/** Leaves the message of a gap run that the caller's transaction has just ended; of any other run nothing. */
export async function publishGapRunEnd(inside: OrgDb, id: string): Promise<void> {
  const [row] = await inside.rows<{
    status: EndedGapRun['status'];
    period: string;
    provider: string | null;
    total: number | null;
    flagged: number | null;
    finished_at: bigint;
  }>(
    `select status, period, provider, (result ->> 'total')::bigint as total, (result ->> 'flagged')::bigint as flagged, finished_at
     from gap_runs where org_id = $1 and id = $2 and finished_at = now()`,
    [inside.orgId, id],
  );
  if (!row) return;
  await publishMessages(inside, [gapRunMessage({ id, ...row, finishedAtMicros: row.finished_at })]);
}
