import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  acceptRestore,
  readAnchors,
  reportAuditLogs,
  verifyAuditLogs,
} from '../../../bin/auditLog/verifyAuditLogs.js';
import { listAuditRecords, recordAudit } from '../../../db/access/auditLog.js';
import { insertOrganization } from '../../../db/installation/organizations.js';
import { OrgDb } from '../../../db/orgDb.js';
import { AuditAnchors } from '../../../dispatch/auditAnchors.js';
import { ANCHOR_PURPOSE } from '../../../domain/access/auditLog.js';
import { microsFromDate } from '../../../domain/period.js';
import { createLogger } from '../../../platform/logger.js';
import { MonthlyLines } from '../../../platform/monthlyLines.js';
import { makeSecretKey } from '../../../platform/secretBox.js';
import { SecretKeys } from '../../../platform/secretKeys.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { makeTestFolder } from '../../support/testFolder.js';

let test: TestDatabase;
const keys = SecretKeys.of(makeSecretKey());
beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test.close());

async function addRows(orgDb: OrgDb, count: number): Promise<void> {
  for (let row = 0; row < count; row += 1)
    await recordAudit(orgDb, {
      action: 'key.created',
      actor: { kind: 'key', id: 'key_0123456789' },
      subject: null,
      details: { row, at: randomUUID() },
      requestId: null,
    });
}

async function addOrganization(): Promise<OrgDb> {
  const id = randomUUID();
  await insertOrganization(test.database, { id, name: 'Test' });
  return new OrgDb(test.database, id);
}

/** Simulates a replica that takes over without the last commits. */
async function takeBack({ orgId }: OrgDb, toSeq: number): Promise<void> {
  const client = await test.superuser.connect();
  await client.query("begin; set local session_replication_role = 'replica'");
  await client.query('delete from audit_log where org_id = $1 and seq > $2', [orgId, toSeq]);
  await client.query(
    `update audit_heads h set seq = a.seq, at = a.at, prev_hash = a.prev_hash, hash = a.hash from audit_log a
     where a.org_id = $1 and h.org_id = $1 and a.seq = $2`,
    [orgId, toSeq],
  );
  await client.query('commit');
  client.release();
}

const anchorsIn = (files: MonthlyLines) =>
  new AuditAnchors({
    database: test.database,
    files,
    sign: (text) => keys.sign(ANCHOR_PURPOSE, text),
    logger: createLogger({ name: 'test', level: 'silent' }),
    keepDays: 800,
  });

async function verify(orgDb: OrgDb, { folder }: MonthlyLines) {
  const anchors = await readAnchors(folder, true, keys);
  const verified = await verifyAuditLogs(test.database, { orgId: orgDb.orgId, anchors, keys });
  return reportAuditLogs(verified, microsFromDate(new Date()));
}

const accept = async (files: MonthlyLines) =>
  acceptRestore(test.database, keys, {
    anchors: await readAnchors(files.folder, true, keys),
    files,
    because: 'replica b took over',
  });

describe('a database that lost its last commits by other means than a restore of ours', () => {
  it('is reset to where its chain and its anchors part, also when both have grown since', async () => {
    const files = new MonthlyLines(makeTestFolder('anchors'));
    const [orgDb, untouched] = [await addOrganization(), await addOrganization()];
    const anchors = anchorsIn(files);
    await addRows(untouched, 2);
    for (const more of [4, 2, 2]) {
      await addRows(orgDb, more);
      await anchors.anchorHeads();
    }
    await takeBack(orgDb, 5);
    await addRows(orgDb, 2);
    await anchors.anchorHeads();
    await addRows(orgDb, 3);
    expect((await verify(orgDb, files)).findings).toBeGreaterThan(0);

    expect(await accept(files)).toEqual([
      expect.stringMatching(/: rows after row 4 are lost; the chain goes on\.$/),
    ]);
    const { findings, lines } = await verify(orgDb, files);
    expect(lines.join('\n')).toMatch(/took the chain back to row 4; rows up to 8 of before are lost with it/);
    expect(findings).toBe(0);
    const [told] = await listAuditRecords(orgDb, {}, { limit: 1, offset: 0 });
    expect(told).toMatchObject({ action: 'database.restored', actor: { id: 'audit-log:restored' } });
    expect(JSON.parse(told?.details ?? '')).toEqual({
      agreed_through_seq: 4,
      because: 'replica b took over',
    });
    // An edit from here on is found as before.
    await addRows(orgDb, 2);
    await anchors.anchorHeads();
    await takeBack(orgDb, 11);
    expect((await verify(orgDb, files)).findings).toBeGreaterThan(0);
    expect((await verify(untouched, files)).findings).toBe(0);
    expect(await accept(files)).toHaveLength(1);
    expect(await accept(files)).toEqual([]);
  });

  it('is not what edited a row: nothing is accepted then, and nothing is written', async () => {
    const files = new MonthlyLines(makeTestFolder('anchors'));
    const orgDb = await addOrganization();
    await addRows(orgDb, 4);
    await anchorsIn(files).anchorHeads();
    await takeBack(orgDb, 3);
    const client = await test.superuser.connect();
    await client.query("begin; set local session_replication_role = 'replica'");
    await client.query(`update audit_log set action = 'key.revoked' where org_id = $1 and seq = 2`, [
      orgDb.orgId,
    ]);
    await client.query('commit');
    client.release();
    await expect(accept(files)).rejects.toThrow(/broken in itself/);
    expect((await listAuditRecords(orgDb, {}, { limit: 10, offset: 0 })).length).toBe(3);
    expect((await verify(orgDb, files)).findings).toBeGreaterThan(0);
  });
});
