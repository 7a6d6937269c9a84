import { createHash } from 'node:crypto';
import type { Logger } from 'pino';
import {
  deleteAuditRecords,
  findAuditCheckpoint,
  findAuditHead,
  findFirstAuditSeq,
  listAuditedBefore,
  listAuditHeads,
  listCheckpointsSignedOtherwise,
  recordAudit,
  streamAuditRecords,
  upsertAuditCheckpoint,
} from '../../db/access/auditLog.js';
import type { Database } from '../../db/client.js';
import { lockByName } from '../../db/locks.js';
import { OrgDb } from '../../db/orgDb.js';
import {
  type AuditAnchor,
  type AuditCheckpoint,
  anchorLine,
  anchorText,
  type ChainFault,
  type ChainResult,
  ChainWalk,
  checkpointText,
  type Signature,
  type SignatureVerdict,
} from '../../domain/access/auditLog.js';
import { MICROS_PER_DAY, microsFromDate } from '../../domain/period.js';
import type { MonthlyLines } from '../../platform/monthlyLines.js';
import type { UseCaseDeps } from '../useCaseDeps.js';

/** Rows that one transaction drops. */
const BATCH_ROWS = 20_000;

export type SignText = (text: string) => Signature;

/**
 * Drops each organization's audit rows that are older than `keepDays` and replaces them by a signed checkpoint, from
 * which later checks follow the chain. A broken part of a chain is neither dropped nor covered by a checkpoint;
 * `onBroken` is called instead. Returns the number of dropped rows. After a kill at any moment the next call continues.
 */
export async function checkpointAuditLog(
  database: Database,
  keepDays: number,
  sign: SignText,
  onBroken: (orgId: string, fault: ChainFault) => void,
): Promise<number> {
  const before = microsFromDate(new Date()) - BigInt(keepDays) * MICROS_PER_DAY;
  let dropped = 0;
  for (const orgId of await listAuditedBefore(database, before)) {
    const orgDb = new OrgDb(database, orgId);
    for (let batch = BATCH_ROWS; batch === BATCH_ROWS; dropped += batch) {
      const outcome = await checkpointBatch(orgDb, before, sign);
      if ('fault' in outcome) onBroken(orgId, outcome.fault);
      batch = 'fault' in outcome ? 0 : outcome.rows;
    }
  }
  return dropped;
}

/**
 * Signs checkpoints of keys other than `keyId` again, before those keys are removed; a checkpoint is signed only when
 * `check` verifies it. Returns the number of checkpoints whose key is not available; they stay unchanged.
 */
export async function resignAuditCheckpoints(
  database: Database,
  keyId: string,
  sign: SignText,
  check: (text: string, signed: Signature) => SignatureVerdict,
): Promise<number> {
  let left = 0;
  for (const orgId of await listCheckpointsSignedOtherwise(database, keyId)) {
    await new OrgDb(database, orgId).transaction(async (inside) => {
      const found = await findAuditCheckpoint(inside);
      if (!found || found.signed.keyId === keyId) return;
      const verdict = check(checkpointText(found.checkpoint), found.signed);
      if (verdict === 'good') await storeCheckpoint(inside, found.checkpoint, sign);
      else left += 1;
    });
  }
  return left;
}

async function checkpointBatch(
  orgDb: OrgDb,
  before: bigint,
  sign: SignText,
): Promise<{ rows: number } | { fault: ChainFault }> {
  return orgDb.transaction(async (inside) => {
    // Only one of two simultaneous runs may write a checkpoint.
    await lockByName(inside, 'auditCheckpoint', inside.orgId);
    const earlier = (await findAuditCheckpoint(inside))?.checkpoint;
    const walk = new ChainWalk({ digest: auditDigest, start: earlier });
    let [last, rows] = [earlier, 0];
    for await (const records of streamAuditRecords(inside, earlier?.seq ?? 0)) {
      const old = records.filter((record) => record.atMicros < before).slice(0, BATCH_ROWS - rows);
      for (const record of old) walk.next(record);
      rows += old.length;
      const newest = old.at(-1);
      if (newest) last = { ...newest, madeAtMicros: 0n };
      if (old.length < records.length) break;
    }
    if (rows === 0 || !last) return { rows: 0 };
    const [fault] = walk.end(last).faults;
    if (fault) return { fault };
    await storeCheckpoint(inside, { ...last, madeAtMicros: microsFromDate(new Date()) }, sign);
    await deleteAuditRecords(inside, last.seq);
    await recordAudit(inside, {
      action: 'audit_log.checkpointed',
      actor: { kind: 'system', id: 'retention' },
      subject: null,
      details: { through_seq: last.seq, rows },
      requestId: null,
    });
    return { rows };
  });
}

/** Signs a checkpoint and replaces the former one. */
function storeCheckpoint(inside: OrgDb, checkpoint: AuditCheckpoint, sign: SignText): Promise<void> {
  return upsertAuditCheckpoint(inside, checkpoint, sign(checkpointText(checkpoint)));
}

/** sha256 over the bytes of a hash and a text, as `audit_hash` computes it in the database. */
export function auditDigest(prevHash: string, text: string): string {
  return createHash('sha256').update(Buffer.from(prevHash, 'hex')).update(text, 'utf8').digest('hex');
}

/** Result of checking one organization's log. */
export interface AuditVerification extends ChainResult {
  checkpoint: { checkpoint: AuditCheckpoint; verdict: SignatureVerdict; keyId: string } | undefined;
  /** Time of the last row according to the log's head. */
  lastAtMicros: bigint | undefined;
  /** A row that exists although the checkpoint covers it as dropped. */
  leftoverSeq: number | undefined;
}

/**
 * Follows an organization's chain from its checkpoint, or its beginning, to its end in one snapshot, and compares it
 * with the anchored hashes. Holds one page of rows in memory.
 */
export async function verifyAuditLog(
  orgDb: OrgDb,
  options: {
    anchors?: ReadonlyMap<number, readonly string[]>;
    checkSignature(text: string, signed: Signature): SignatureVerdict;
  },
): Promise<AuditVerification> {
  return orgDb.transaction(async (inside) => {
    const head = await findAuditHead(inside);
    const found = await findAuditCheckpoint(inside);
    const verdict = found && options.checkSignature(checkpointText(found.checkpoint), found.signed);
    const first = await findFirstAuditSeq(inside);
    const walk = new ChainWalk({
      digest: auditDigest,
      ...(options.anchors ? { anchors: options.anchors } : {}),
      start: found?.checkpoint,
    });
    for await (const records of streamAuditRecords(inside, found?.checkpoint.seq ?? 0))
      for (const record of records) walk.next(record);
    return {
      ...walk.end(head),
      lastAtMicros: head?.atMicros,
      checkpoint:
        found && verdict ? { checkpoint: found.checkpoint, verdict, keyId: found.signed.keyId } : undefined,
      leftoverSeq: found && first !== undefined && first <= found.checkpoint.seq ? first : undefined,
    };
  }, 'repeatable read');
}

export interface AuditAnchorDeps extends UseCaseDeps {
  /** Writes anchors outside of the database. */
  files: MonthlyLines;
  /** Signs with a key that is stored outside of the database. */
  sign(text: string): Signature;
  logger: Logger;
  /** Days after which anchors are removed; the rows that they cover are dropped by then. */
  keepDays: number;
}

/**
 * Writes the end of each organization's audit log outside of the database: to a file and to the service's log. Anyone
 * who can change every database row still cannot change these unnoticed. `anchored` holds this process's earlier
 * anchors; an unchanged end is not written again. Returns the number of organizations written.
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
  // The log is written first: where the folder is not writable, its lines are the anchors.
  for (const line of lines) logger.info(line, 'audit log anchored');
  files.append(
    lines.map((line) => JSON.stringify(line)),
    now,
  );
  for (const { orgId, seq, hash } of changed) anchored.set(orgId, `${seq} ${hash}`);
  files.prune(keepDays, now);
  return changed.length;
}
