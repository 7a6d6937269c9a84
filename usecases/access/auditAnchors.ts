import type { Logger } from 'pino';
import { listAuditHeads } from '../../db/access/auditLog.js';
import {
  type AuditAnchor,
  anchorLine,
  anchorText,
  type Signature,
} from '../../domain/access/auditLog/anchors.js';
import { microsFromDate } from '../../domain/period.js';
import type { MonthlyLines } from '../../platform/monthlyLines.js';
import type { UseCaseDeps } from '../useCaseDeps.js';

export interface AuditAnchorDeps extends UseCaseDeps {
  /** Where the anchors are written: outside the database. */
  files: MonthlyLines;
  /** Signs with a key that is not in the database. */
  sign(text: string): Signature;
  logger: Logger;
  /** Anchors older than this are removed, days: the rows that they were made of are gone by then. */
  keepDays: number;
}

/**
 * Writes the end of each organization's audit log outside the database: into a file and as a line of the service's log.
 * Whoever can change every row in the database can change neither unseen. `anchored` holds what this process wrote
 * before; an unchanged end is not written again. Returns the number of organizations written.
 */
export async function anchorAuditLogs(
  { database, files, sign, logger, keepDays }: AuditAnchorDeps,
  anchored: Map<string, string>,
): Promise<number> {
  const now = new Date();
  const changed = (await listAuditHeads(database)).filter(
    ({ orgId, seq, hash }) => anchored.get(orgId) !== `${seq} ${hash}`,
  );
  const lines = changed.map(({ orgId, seq, hash }) => {
    const anchor: AuditAnchor = { kind: 'head', orgId, seq, hash, atMicros: microsFromDate(now) };
    return anchorLine(anchor, sign(anchorText(anchor)));
  });
  // The log first: where the folder cannot be written, its lines are the anchors.
  for (const line of lines) logger.info(line, 'audit log anchored');
  files.append(
    lines.map((line) => JSON.stringify(line)),
    now,
  );
  for (const { orgId, seq, hash } of changed) anchored.set(orgId, `${seq} ${hash}`);
  files.prune(keepDays, now);
  return changed.length;
}
