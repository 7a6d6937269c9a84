import { cpSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { listAuditHeads } from '../../../db/access/auditHeads.js';
import { recordAudit } from '../../../db/access/auditLog.js';
import type { Database } from '../../../db/client.js';
import { listOrganizations } from '../../../db/installation/organizations.js';
import { OrgDb } from '../../../db/orgDb.js';
import {
  ANCHOR_PURPOSE,
  type AuditAnchor,
  anchorLine,
  anchorText,
  parseAnchorLine,
} from '../../../domain/access/auditLog/anchors.js';
import { FIRST_PREV_HASH } from '../../../domain/access/auditLog/record.js';
import { microsFromDate } from '../../../domain/period.js';
import type { Config } from '../../../platform/config.js';
import { MonthlyLines, readLines } from '../../../platform/monthlyLines.js';
import type { SecretKeys } from '../../../platform/secretKeys.js';

/** Name of the anchors' folder in a data directory. */
export const ANCHORS_NAME = 'audit-anchors';

/** The anchors' folder where a setting names one outside of the data directory; undefined where it comes with the data. */
export function outsideAnchorFolder(config: Config): string | undefined {
  const { auditAnchorDir, dataDir } = config;
  return auditAnchorDir === join(dataDir, ANCHORS_NAME) ? undefined : auditAnchorDir;
}

/**
 * Writes the restore into every organization's audit log, and returns the lines of anchors that say where each chain
 * goes on from here: what anchors of before have seen after that is lost with the restore, and no tampering. `known` are
 * files with anchors of before; organizations that only they know are told to be gone.
 */
export async function recordRestore(
  database: Database,
  keys: SecretKeys,
  backup: { takenAt: string },
  known: readonly string[],
): Promise<string[]> {
  for (const { id, isDemo } of await listOrganizations(database))
    if (!isDemo)
      await recordAudit(new OrgDb(database, id), {
        action: 'database.restored',
        actor: { kind: 'command', id: 'restore' },
        subject: null,
        details: { backup_taken_at: backup.takenAt },
        requestId: null,
      });
  const places = new Map<string, { seq: number; hash: string }>();
  for await (const line of readLines(known)) {
    const found = parseAnchorLine(line);
    if (found && found !== 'unreadable') places.set(found.anchor.orgId, { seq: 0, hash: FIRST_PREV_HASH });
  }
  for (const { orgId, seq, hash } of await listAuditHeads(database)) places.set(orgId, { seq, hash });
  const atMicros = microsFromDate(new Date());
  return [...places].map(([orgId, { seq, hash }]) => {
    const anchor: AuditAnchor = { kind: 'restored', orgId, seq, hash, atMicros };
    return JSON.stringify(anchorLine(anchor, keys.sign(ANCHOR_PURPOSE, anchorText(anchor))));
  });
}

/** Takes the anchors of the installation that is replaced along: they tell of what the restore gives up. */
export function carryAnchors(from: string, to: string): void {
  if (!existsSync(from)) return;
  mkdirSync(to, { recursive: true, mode: 0o700 });
  for (const file of new MonthlyLines(from).listFiles()) cpSync(file, join(to, file.slice(from.length + 1)));
}
