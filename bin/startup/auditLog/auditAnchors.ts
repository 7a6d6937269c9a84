import type { Logger } from 'pino';
import type { Database } from '../../../db/client.js';
import { AuditAnchors } from '../../../dispatch/auditAnchors.js';
import { ANCHOR_PURPOSE } from '../../../domain/access/auditLog/anchors.js';
import type { Config } from '../../../platform/config.js';
import { MonthlyLines } from '../../../platform/monthlyLines.js';
import type { SecretKeys } from '../../../platform/secretKeys.js';

/** Anchors outlast the rows that they were made of by this, so that no row is ever without. */
const ANCHOR_MARGIN_DAYS = 62;

/** Starts anchoring the audit log outside the database; returns the function that stops it, after a last round. */
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
