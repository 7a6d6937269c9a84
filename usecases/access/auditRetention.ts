import { findAuditCheckpoint, recordAudit, streamAuditRecords } from '../../db/access/auditLog.js';
import type { Database } from '../../db/client.js';
import { lockByName } from '../../db/locks.js';
import { OrgDb, unscoped } from '../../db/orgDb.js';
import {
  type AuditCheckpoint,
  checkpointText,
  type Signature,
  type SignatureVerdict,
} from '../../domain/access/auditLog/anchors.js';
import { type ChainFault, ChainWalk } from '../../domain/access/auditLog/chain.js';
import { isoFromMicros, MICROS_PER_DAY, microsFromDate } from '../../domain/period.js';
import { auditDigest } from './auditVerification.js';

/** Rows that go in one transaction. */
const BATCH_ROWS = 20_000;

export type SignText = (text: string) => Signature;

/**
 * Drops the rows of every organization's audit log that are older than `keepDays` and leaves a signed checkpoint in
 * their place, from which the chain is followed later. A piece of chain that is broken is not dropped and no checkpoint
 * vouches for it: `onBroken` is told. Returns how many rows went. Killed at any moment, the next call goes on.
 */
export async function checkpointAuditLog(
  database: Database,
  keepDays: number,
  sign: SignText,
  onBroken: (orgId: string, fault: ChainFault) => void,
): Promise<number> {
  const before = microsFromDate(new Date()) - BigInt(keepDays) * MICROS_PER_DAY;
  let dropped = 0;
  for (const orgId of await listOrganizationsWithRowsBefore(database, before)) {
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
 * Signs the checkpoints anew that another key than `keyId` has signed, where `check` finds that they are good: before
 * that key is taken away. Returns how many are signed with a key that is not at hand, and stay so.
 */
export async function resignAuditCheckpoints(
  database: Database,
  keyId: string,
  sign: SignText,
  check: (text: string, signed: Signature) => SignatureVerdict,
): Promise<number> {
  let left = 0;
  for (const orgId of await listOrganizationsSignedOtherwise(database, keyId)) {
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

async function listOrganizationsSignedOtherwise(database: Database, keyId: string): Promise<string[]> {
  const rows = await unscoped(database, 'the secret key belongs to the instance', (system) =>
    system.rows<{ org_id: string }>(
      'select org_id from audit_checkpoints where key_id <> $1 order by org_id',
      [keyId],
    ),
  );
  return rows.map((row) => row.org_id);
}

async function listOrganizationsWithRowsBefore(database: Database, before: bigint): Promise<string[]> {
  const rows = await unscoped(database, 'retention of every organization’s audit log', (system) =>
    system.rows<{ id: string }>(
      `select o.id from organizations o
       where exists (select from audit_log a where a.org_id = o.id and a.at < $1::timestamptz) order by o.id`,
      [isoFromMicros(before)],
    ),
  );
  return rows.map(({ id }) => id);
}

async function checkpointBatch(
  orgDb: OrgDb,
  before: bigint,
  sign: SignText,
): Promise<{ rows: number } | { fault: ChainFault }> {
  return orgDb.transaction(async (inside) => {
    // Two runs at once must not both make a checkpoint.
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
    await replaceRows(inside, { ...last, madeAtMicros: microsFromDate(new Date()) }, sign);
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

async function replaceRows(inside: OrgDb, checkpoint: AuditCheckpoint, sign: SignText): Promise<void> {
  await storeCheckpoint(inside, checkpoint, sign);
  await inside.unscoped('rows of the audit log go only by retention', (system) =>
    system.run('delete from audit_log where org_id = $1 and seq <= $2', [inside.orgId, checkpoint.seq]),
  );
}

async function storeCheckpoint(inside: OrgDb, checkpoint: AuditCheckpoint, sign: SignText): Promise<void> {
  const signed = sign(checkpointText(checkpoint));
  await inside.unscoped('checkpoints are made by maintenance alone', (system) =>
    system.run(
      `insert into audit_checkpoints (org_id, seq, at, hash, made_at, key_id, signature)
       values ($1, $2, $3::timestamptz, $4, $5::timestamptz, $6, $7)
       on conflict (org_id) do update set seq = excluded.seq, at = excluded.at, hash = excluded.hash,
         made_at = excluded.made_at, key_id = excluded.key_id, signature = excluded.signature`,
      [
        inside.orgId,
        checkpoint.seq,
        isoFromMicros(checkpoint.atMicros),
        Buffer.from(checkpoint.hash, 'hex'),
        isoFromMicros(checkpoint.madeAtMicros),
        signed.keyId,
        Buffer.from(signed.signature, 'hex'),
      ],
    ),
  );
}
