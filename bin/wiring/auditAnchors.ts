import type { Logger } from 'pino';
import { recordAudit } from '../../db/access/auditLog.js';
import type { Database } from '../../db/client.js';
import { listOrganizations } from '../../db/installation/organizations.js';
import { OrgDb } from '../../db/orgDb.js';
import { AuditAnchors } from '../../dispatch/auditAnchors.js';
import {
  ANCHOR_PURPOSE,
  anchorLine,
  anchorText,
  CHECKPOINT_PURPOSE,
  parseAnchorLine,
} from '../../domain/access/auditLog.js';
import type { Config } from '../../platform/config.js';
import { MonthlyLines, readLines } from '../../platform/monthlyLines.js';
import type { SecretKeys } from '../../platform/secretKeys.js';
import { resignAuditCheckpoints } from '../../usecases/access/auditChain.js';

/** Days by which anchors outlast the rows that they cover, so that no row is ever without. */
const ANCHOR_MARGIN_DAYS = 62;

/** Starts anchoring the audit log outside of the database; returns the function that stops it, after a last round. */
export function startAuditAnchors(
  config: Config,
  database: Database,
  secretKeys: SecretKeys,
  logger: Logger,
): () => Promise<void> {
  const anchors = new AuditAnchors({
    database,
    files: new MonthlyLines(config.auditAnchorDir),
    sign: (text) => secretKeys.sign(ANCHOR_PURPOSE, text),
    logger,
    keepDays: config.auditRetentionDays + ANCHOR_MARGIN_DAYS,
  });
  anchors.start();
  return () => anchors.stop();
}

/**
 * Signs with the current key the signatures of older keys that a check of the audit log requires: the checkpoints, and
 * the anchors that record a restore. For a rotation, before the older key is removed; repeatable.
 */
export async function renewAuditSignatures(
  database: Database,
  keys: SecretKeys,
  anchorFolder: string,
): Promise<void> {
  await resignAuditCheckpoints(
    database,
    keys.currentId,
    (text) => keys.sign(CHECKPOINT_PURPOSE, text),
    (text, signed) => keys.checkSignature(CHECKPOINT_PURPOSE, text, signed),
  );
  const files = new MonthlyLines(anchorFolder);
  const renewed = new Map<string, string>();
  const current = new Set<string>();
  for await (const line of readLines(files.listFiles())) {
    const found = parseAnchorLine(line);
    if (!found || found === 'unreadable' || found.anchor.kind !== 'restored') continue;
    const text = anchorText(found.anchor);
    if (keys.checkSignature(ANCHOR_PURPOSE, text, found.signed) !== 'good') continue;
    if (found.signed.keyId === keys.currentId) current.add(text);
    else renewed.set(text, JSON.stringify(anchorLine(found.anchor, keys.sign(ANCHOR_PURPOSE, text))));
  }
  for (const text of current) renewed.delete(text);
  files.append([...renewed.values()], new Date());
}

/** Records in every organization's audit log that stored secrets are encrypted with another key. */
export async function recordRotation(database: Database, keys: SecretKeys): Promise<void> {
  for (const { id } of await listOrganizations(database))
    await recordAudit(new OrgDb(database, id), {
      action: 'secret.rotated',
      actor: { kind: 'command', id: 'secrets:rotate' },
      subject: null,
      details: { secret_key_id: keys.currentId },
      requestId: null,
    });
}
