import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readAnchors, reportAuditLogs, verifyAuditLogs } from '../../../bin/auditLog/verifyAuditLogs.js';
import { findAuditHead, listAuditRecords, recordAudit } from '../../../db/access/auditLog.js';
import { insertOrganization } from '../../../db/installation/organizations.js';
import { OrgDb } from '../../../db/orgDb.js';
import { AuditAnchors } from '../../../dispatch/auditAnchors.js';
import {
  ACTOR_KINDS,
  ANCHOR_PURPOSE,
  AUDIT_ACTIONS,
  type AuditEntry,
  auditFields,
  auditText,
  CHECKPOINT_PURPOSE,
  FIRST_PREV_HASH,
} from '../../../domain/access/auditLog.js';
import { isoFromMicros, microsFromDate } from '../../../domain/period.js';
import { createLogger } from '../../../platform/logger.js';
import { MonthlyLines } from '../../../platform/monthlyLines.js';
import { makeSecretKey } from '../../../platform/secretBox.js';
import { SecretKeys } from '../../../platform/secretKeys.js';
import { auditDigest, checkpointAuditLog, verifyAuditLog } from '../../../usecases/access/auditChain.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';

let test: TestDatabase;
const keys = SecretKeys.of(makeSecretKey());
const folders: string[] = [];

beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(async () => {
  await test.close();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

const entry = (details: AuditEntry['details'] = {}): AuditEntry => ({
  action: 'key.created',
  actor: { kind: 'key', id: 'key_0123456789' },
  subject: { type: 'key', id: 'key_abcdefghij' },
  details,
  requestId: 'request-1',
});

async function addOrganization(): Promise<OrgDb> {
  const id = randomUUID();
  await insertOrganization(test.database, { id, name: 'Test' });
  return new OrgDb(test.database, id);
}

/** An organization with this many rows, added as the service adds them. */
async function addChain(rows: number): Promise<OrgDb> {
  const orgDb = await addOrganization();
  await orgDb.transaction(async (inside) => {
    for (let row = 1; row <= rows; row += 1) await recordAudit(inside, entry({ row }));
  });
  return orgDb;
}

/** An organization with many rows, added by one statement. */
async function addLongChain(rows: number): Promise<OrgDb> {
  const orgDb = await addOrganization();
  const atMicros = microsFromDate(new Date());
  let prev = FIRST_PREV_HASH;
  const records = Array.from({ length: rows }, (_, row) => {
    const record = { orgId: orgDb.orgId, seq: row + 1, atMicros, ...auditFields(entry({ row })) };
    const hash = auditDigest(prev, auditText(record));
    const stored = { seq: record.seq, details: record.details, prev, hash };
    prev = hash;
    return stored;
  });
  const { action, actor, subject, requestId } = entry();
  await asAttacker(
    `insert into audit_log (org_id, seq, at, action, actor_kind, actor_id, subject_type, subject_id, details, request_id, prev_hash, hash)
     select $1, r.seq, $2::timestamptz, $3, $4, $5, $6, $7, r.details, $8, decode(r.prev, 'hex'), decode(r.hash, 'hex')
     from jsonb_to_recordset($9::jsonb) as r (seq bigint, details text, prev text, hash text)`,
    [
      orgDb.orgId,
      isoFromMicros(atMicros),
      action,
      actor.kind,
      actor.id,
      subject?.type,
      subject?.id,
      requestId,
      JSON.stringify(records),
    ],
  );
  await asAttacker(
    'insert into audit_heads select org_id, seq, at, prev_hash, hash from audit_log where org_id = $1 and seq = $2',
    [orgDb.orgId, rows],
  );
  return orgDb;
}

/** Runs statements as an owner of the database, without row-level security, grants and triggers. */
async function asAttacker(statements: string, values: unknown[] = []): Promise<void> {
  const client = await test.superuser.connect();
  try {
    await client.query("begin; set local session_replication_role = 'replica'");
    await client.query(statements, values);
    await client.query('commit');
  } finally {
    client.release();
  }
}

/** Rewrites the chain from a row on, with right hashes, and moves the head to its end. */
async function rebuildFrom(orgId: string, seq: number): Promise<void> {
  const orgDb = new OrgDb(test.database, orgId);
  const records = (await listAuditRecords(orgDb, {}, { limit: 100_000, offset: 0 })).reverse();
  let prev = records[seq - 2]?.hash ?? FIRST_PREV_HASH;
  const rows = records.slice(seq - 1).map((record) => {
    const changed = record.seq === seq ? { ...record, details: '{"row":"another"}' } : record;
    const row = {
      seq: record.seq,
      details: changed.details,
      prev,
      hash: auditDigest(prev, auditText(changed)),
    };
    prev = row.hash;
    return row;
  });
  await asAttacker(
    `update audit_log a set details = r.details, prev_hash = decode(r.prev, 'hex'), hash = decode(r.hash, 'hex')
     from jsonb_to_recordset($2::jsonb) as r (seq bigint, details text, prev text, hash text)
     where a.org_id = $1 and a.seq = r.seq`,
    [orgId, JSON.stringify(rows)],
  );
  await asAttacker(`update audit_heads set hash = decode($2, 'hex') where org_id = $1`, [orgId, prev]);
}

const check = (orgDb: OrgDb) =>
  verifyAuditLog(orgDb, {
    checkSignature: (text, signed) => keys.checkSignature(CHECKPOINT_PURPOSE, text, signed),
  });

/** Anchors everything into a folder; returns the folder. */
async function anchorAll(folder = mkdtempSync(join(tmpdir(), 'trueup-anchors-'))): Promise<string> {
  folders.push(folder);
  const anchors = new AuditAnchors({
    database: test.database,
    files: new MonthlyLines(folder),
    sign: (text) => keys.sign(ANCHOR_PURPOSE, text),
    logger: createLogger({ name: 'test', level: 'silent' }),
    keepDays: 800,
  });
  await anchors.anchorHeads();
  return folder;
}

/** The output of the command about one organization. */
async function verify(
  orgDb: OrgDb,
  folder: string,
  at: SecretKeys | undefined = keys,
  nowMicros = microsFromDate(new Date()),
) {
  const anchors = await readAnchors(folder, true, at);
  return reportAuditLogs(
    await verifyAuditLogs(test.database, { orgId: orgDb.orgId, anchors, keys: at }),
    nowMicros,
  );
}

describe('the audit log', () => {
  it('is one chain whose hashes the database and this program make alike, whatever a row contains', async () => {
    const orgDb = await addOrganization();
    const odd = 'ä "quoted" \\ \u2028 \u0001 \u007f \u0000 \ud800 😀';
    await recordAudit(orgDb, {
      ...entry({ odd, list: [odd], n: 1e21 }),
      actor: { kind: 'command', id: odd },
    });
    await recordAudit(orgDb, { ...entry(), subject: null, requestId: null });
    const [second, first] = await listAuditRecords(orgDb, {}, { limit: 10, offset: 0 });
    expect(first?.prevHash).toBe(FIRST_PREV_HASH);
    expect(second?.prevHash).toBe(first?.hash);
    expect(first && auditDigest(FIRST_PREV_HASH, auditText(first))).toBe(first?.hash);
    expect((await check(orgDb)).faults).toEqual([]);
  });

  it('has no gap and one order where fifty transactions add rows at once', async () => {
    const orgDb = await addOrganization();
    await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        orgDb.transaction(async (inside) => {
          await inside.rows('select pg_sleep(random() * 0.01)');
          await recordAudit(inside, entry({ n }));
        }),
      ),
    );
    const records = await listAuditRecords(orgDb, {}, { limit: 100, offset: 0 });
    expect(records.map((record) => record.seq)).toEqual(Array.from({ length: 50 }, (_, n) => 50 - n));
    const times = records.map((record) => record.atMicros);
    expect(times).toEqual([...times].sort((a, b) => Number(b - a)));
    expect(await check(orgDb)).toMatchObject({ rows: 50, lastSeq: 50, faultCount: 0 });
  });

  it('has no row of a transaction that was rolled back, and no gap in its place', async () => {
    const orgDb = await addChain(2);
    await expect(
      orgDb.transaction(async (inside) => {
        await recordAudit(inside, entry());
        throw new Error('changed my mind');
      }),
    ).rejects.toThrow('changed my mind');
    await recordAudit(orgDb, entry());
    expect(await check(orgDb)).toMatchObject({ rows: 3, lastSeq: 3, faultCount: 0 });
  });

  it('of one organization is untouched by rows of another', async () => {
    const [one, other] = [await addChain(3), await addChain(5)];
    const before = await findAuditHead(one);
    await recordAudit(other, entry());
    expect(await findAuditHead(one)).toEqual(before);
    expect(await check(other)).toMatchObject({ rows: 6, faultCount: 0 });
  });

  it('accepts the actors of the domain and no others, and a well-formed action of any version', async () => {
    const orgDb = await addOrganization();
    for (const kind of ACTOR_KINDS) await recordAudit(orgDb, { ...entry(), actor: { kind, id: 'x' } });
    for (const action of Object.keys(AUDIT_ACTIONS))
      await recordAudit(orgDb, { ...entry(), action: action as AuditEntry['action'] });
    const wrong = { ...entry(), actor: { kind: 'nobody' as 'key', id: 'x' } };
    await expect(recordAudit(orgDb, wrong)).rejects.toThrow(/audit_log_actor_kind_check/);
    expect((await check(orgDb)).faultCount).toBe(0);
  });
});

describe('changing the audit log', () => {
  it.each([
    ['app_rw', `update audit_log set action = 'key.revoked'`],
    ['app_rw', 'delete from audit_log'],
    ['app_rw', 'truncate audit_log'],
    [
      'app_rw',
      'insert into audit_checkpoints select org_id, seq, at, hash, at, $$k$$, hash from audit_heads',
    ],
    ['app_rw', 'delete from audit_heads'],
    ['app_rw', 'update audit_heads set seq = seq - 1'],
    ['app_rw', 'update audit_heads set seq = seq + 1, hash = prev_hash'],
    ['app_rw', `update audit_heads set seq = seq + 1, prev_hash = hash, at = '2000-01-01'`],
    ['app_system', 'update audit_heads set seq = 1000000'],
    ['app_system', `update audit_log set action = 'key.revoked'`],
    ['app_system', 'delete from audit_log'],
    ['app_system', 'truncate audit_log'],
    [undefined, `update audit_log set action = 'key.revoked'`],
    [undefined, 'delete from audit_log'],
    [undefined, 'truncate audit_log'],
  ])('as %s is refused: %s', async (role, statement) => {
    const { orgId } = await addChain(2);
    const client = await test.superuser.connect();
    try {
      await client.query(`begin; set local app.org_id = '${orgId}'`);
      if (role !== undefined) await client.query(`set local role ${role}`);
      await expect(client.query(statement)).rejects.toMatchObject({ code: '42501' });
    } finally {
      await client.query('rollback');
      client.release();
    }
  });

  it.each([
    ['9007199254740992', 'now()'],
    ['2', `'infinity'`],
  ])('adds no row of number %s and time %s, which could not be read any more', async (seq, at) => {
    const { orgId } = await addChain(1);
    const added = test.superuser.query(
      `insert into audit_log select org_id, ${seq}, ${at}, action, actor_kind, actor_id, subject_type, subject_id, details,
         request_id, prev_hash, hash from audit_log where org_id = $1`,
      [orgId],
    );
    await expect(added).rejects.toMatchObject({ code: '23514' });
  });

  it('into what cannot be read is detected too, and the other organizations are checked all the same', async () => {
    const [orgDb, other] = [await addChain(3), await addChain(3)];
    const folder = await anchorAll();
    await asAttacker('alter table audit_log drop constraint audit_log_readable');
    await asAttacker(`update audit_log set at = 'infinity' where org_id = $1 and seq = 2`, [orgDb.orgId]);
    try {
      const { lines, findings } = await verify(orgDb, folder);
      expect(findings).toBe(1);
      expect(lines[0]).toMatch(/^FOUND .*: a row cannot be read \(not a UTC timestamp: infinity\)/);
      expect((await verify(other, folder)).findings).toBe(0);
    } finally {
      await asAttacker('delete from audit_log where org_id = $1', [orgDb.orgId]);
      await asAttacker(
        'alter table audit_log add constraint audit_log_readable check (isfinite(at) and seq <= 9007199254740991)',
      );
    }
  });

  it('is detected where one row among 10,000 was edited, and the row is named', async () => {
    const orgDb = await addLongChain(10_000);
    const folder = await anchorAll();
    expect((await verify(orgDb, folder)).findings).toBe(0);
    await asAttacker(`update audit_log set details = '{"row":1}' where org_id = $1 and seq = 4711`, [
      orgDb.orgId,
    ]);
    const { lines, findings } = await verify(orgDb, folder);
    expect(findings).toBe(1);
    expect(lines[0]).toMatch(/^FOUND .*: row 4711 was edited: its hash is not that of what stands in it\.$/);
  }, 300_000);

  it('is detected where a row was taken from the middle', async () => {
    const orgDb = await addChain(20);
    const folder = await anchorAll();
    await asAttacker('delete from audit_log where org_id = $1 and seq between 7 and 8', [orgDb.orgId]);
    expect((await verify(orgDb, folder)).lines[0]).toMatch(/: rows 7 to 8 missing: deleted from the middle/);
  });

  it('is detected where the end was taken, with the head left and with the head moved back', async () => {
    const orgDb = await addChain(20);
    const folder = await anchorAll();
    await asAttacker('delete from audit_log where org_id = $1 and seq > 17', [orgDb.orgId]);
    expect((await verify(orgDb, folder)).lines[0]).toMatch(
      /: rows 18 to 20 missing: deleted from the end of the chain, whose head/,
    );
    await asAttacker(
      `update audit_heads h set seq = a.seq, at = a.at, prev_hash = a.prev_hash, hash = a.hash
       from audit_log a where h.org_id = $1 and a.org_id = $1 and a.seq = 17`,
      [orgDb.orgId],
    );
    const { lines, findings } = await verify(orgDb, folder);
    expect(findings).toBe(1);
    expect(lines[0]).toMatch(
      /: rows 18 to 20 missing: deleted from the end of the chain; an anchor has seen row 20\.$/,
    );
  });

  it('is detected where the chain was rewritten from its beginning with right hashes', async () => {
    const orgDb = await addChain(20);
    const folder = await anchorAll();
    await rebuildFrom(orgDb.orgId, 1);
    expect((await check(orgDb)).faults).toEqual([]);
    const { lines, findings } = await verify(orgDb, folder);
    expect(findings).toBe(1);
    expect(lines[0]).toMatch(/: the chain was rewritten: row 20 differs from .* lies in rows 1 to 20\.$/);
  });

  it('is narrowed down to the rows between two anchors', async () => {
    const orgDb = await addChain(10);
    const folder = await anchorAll();
    for (let row = 11; row <= 20; row += 1) await recordAudit(orgDb, entry({ row }));
    await anchorAll(folder);
    await rebuildFrom(orgDb.orgId, 15);
    expect((await verify(orgDb, folder)).lines[0]).toMatch(/ lies in rows 11 to 20\.$/);
  });

  it('is detected where the organization is gone as a whole', async () => {
    const orgDb = await addChain(3);
    const folder = await anchorAll();
    await asAttacker(
      'with a as (delete from audit_log where org_id = $1), h as (delete from audit_heads where org_id = $1) delete from organizations where id = $1',
      [orgDb.orgId],
    );
    expect((await verify(orgDb, folder)).lines[0]).toMatch(
      /the organization is gone with all of its rows; an anchor has seen row 3\.$/,
    );
  });
});

describe('anchors', () => {
  it('that are missing are reported: what could not be checked, and exit code 1 only on request', async () => {
    const orgDb = await addChain(3);
    const empty = mkdtempSync(join(tmpdir(), 'trueup-anchors-'));
    folders.push(empty);
    const { lines, findings, isPartial } = await verify(orgDb, empty);
    expect({ findings, isPartial }).toEqual({ findings: 0, isPartial: true });
    expect(lines[0]).toMatch(
      /no anchor was found, so a deleted end and a rewritten chain cannot be detected/,
    );
  });

  it('that no longer arrive are reported, once rows have waited for them for two hours', async () => {
    const orgDb = await addChain(3);
    const folder = await anchorAll();
    await recordAudit(orgDb, entry());
    const soon = await verify(orgDb, folder);
    expect(soon).toMatchObject({ findings: 0, isPartial: false });
    expect(soon.lines[0]).toMatch(/row 4 not anchored yet\.$/);
    const later = await verify(orgDb, folder, keys, microsFromDate(new Date()) + 7_300_000_000n);
    expect(later).toMatchObject({ findings: 0, isPartial: true });
    expect(later.lines[0]).toMatch(/row 4 not anchored for more than two hours: does a worker run/);
  });

  it('that were forged without the secret key are reported and not used', async () => {
    const orgDb = await addChain(3);
    const folder = await anchorAll();
    const files = new MonthlyLines(folder);
    const line = {
      kind: 'restored',
      org_id: orgDb.orgId,
      seq: 0,
      hash: '0'.repeat(64),
      at: Date.now() * 1_000 + 60_000_000,
    };
    const signed = { key_id: keys.currentId, signature: '0'.repeat(64) };
    files.append([JSON.stringify({ audit_anchor: { ...line, ...signed } })], new Date());
    await asAttacker('delete from audit_log where org_id = $1', [orgDb.orgId]);
    await asAttacker('delete from audit_heads where org_id = $1', [orgDb.orgId]);
    const { lines, findings } = await verify(orgDb, folder);
    expect(findings).toBe(2);
    expect(lines.join('\n')).toMatch(/rows 1 to 3 missing: deleted from the end/);
    expect(lines.join('\n')).toMatch(/1 anchors were changed or not signed by this service/);
  });

  it('signed with a key that is not at hand are compared all the same, and the report states it', async () => {
    const orgDb = await addChain(3);
    const folder = await anchorAll();
    const { lines, findings, isPartial } = await verify(orgDb, folder, SecretKeys.of(makeSecretKey()));
    expect({ findings, isPartial }).toEqual({ findings: 0, isPartial: true });
    expect(lines.join('\n')).toMatch(
      /signatures of \d+ anchors could not be checked: the secret key [0-9a-f]{16} is not at hand/,
    );
    await rebuildFrom(orgDb.orgId, 2);
    expect((await verify(orgDb, folder, undefined)).findings).toBe(1);
  });

  it('are read out of a log of the service too, and a line that was broken off is passed over', async () => {
    const orgDb = await addChain(3);
    const folder = await anchorAll();
    const log = join(folder, 'worker.log');
    const lines = new MonthlyLines(folder).listFiles();
    const { readFileSync, writeFileSync } = await import('node:fs');
    const anchored = lines.map((file) => readFileSync(file, 'utf8')).join('');
    const inLog = anchored.replaceAll('{"audit_anchor"', '{"level":30,"name":"worker","audit_anchor"');
    writeFileSync(log, `{"level":30,"msg":"hello"}\n${inLog}${inLog.slice(0, 60)}`);
    const anchors = await readAnchors(log, true, keys);
    expect(anchors.byOrganization.get(orgDb.orgId)?.hashes.size).toBe(1);
    expect(anchors).toMatchObject({ forged: 0, unreadable: 1 });
  });

  it('are made of what has changed since the last round, and not of demos', async () => {
    const orgDb = await addChain(1);
    const demo = await addChain(1);
    await test.superuser.query(`update organizations set demo_end_day = '2026-01-01' where id = $1`, [
      demo.orgId,
    ]);
    const folder = mkdtempSync(join(tmpdir(), 'trueup-anchors-'));
    folders.push(folder);
    const anchors = new AuditAnchors({
      database: test.database,
      files: new MonthlyLines(folder),
      sign: (text) => keys.sign(ANCHOR_PURPOSE, text),
      logger: createLogger({ name: 'test', level: 'silent' }),
      keepDays: 800,
    });
    await anchors.anchorHeads();
    expect(await anchors.anchorHeads()).toBe(0);
    await recordAudit(orgDb, entry());
    await recordAudit(demo, entry());
    expect(await anchors.anchorHeads()).toBe(1);
    const { byOrganization } = await readAnchors(folder, true, keys);
    expect([...(byOrganization.get(orgDb.orgId)?.hashes.keys() ?? [])]).toEqual([1, 2]);
    expect(byOrganization.has(demo.orgId)).toBe(false);
    // A demo never has anchors, so no check waits for them.
    expect(await verify(demo, folder)).toMatchObject({ findings: 0, isPartial: false });
  });
});

describe('retention of the audit log', () => {
  const sign = (text: string) => keys.sign(CHECKPOINT_PURPOSE, text);
  /** Sets the first rows of a chain back in time and computes the hashes that follow. */
  async function ageChain(orgId: string, until: number): Promise<void> {
    await asAttacker(`update audit_log set at = at - interval '800 days' where org_id = $1 and seq <= $2`, [
      orgId,
      until,
    ]);
    const orgDb = new OrgDb(test.database, orgId);
    const records = (await listAuditRecords(orgDb, {}, { limit: 100_000, offset: 0 })).reverse();
    let prev = FIRST_PREV_HASH;
    for (const record of records) {
      const hash = auditDigest(prev, auditText(record));
      await asAttacker(
        `update audit_log set prev_hash = decode($3, 'hex'), hash = decode($4, 'hex') where org_id = $1 and seq = $2`,
        [orgId, record.seq, prev, hash],
      );
      prev = hash;
    }
    await asAttacker(`update audit_heads set hash = decode($2, 'hex') where org_id = $1`, [orgId, prev]);
  }

  it('drops what is old, leaves a signed checkpoint, and the chain is followed from there', async () => {
    const orgDb = await addChain(10);
    await ageChain(orgDb.orgId, 6);
    expect(await checkpointAuditLog(test.database, 730, sign, () => undefined)).toBe(6);
    const found = await check(orgDb);
    expect(found).toMatchObject({ rows: 5, startSeq: 6, lastSeq: 11, faultCount: 0 });
    expect(found.checkpoint).toMatchObject({ verdict: 'good', checkpoint: { seq: 6 } });
    const [newest] = await listAuditRecords(orgDb, {}, { limit: 1, offset: 0 });
    expect(newest).toMatchObject({ action: 'audit_log.checkpointed', details: '{"rows":6,"through_seq":6}' });
    expect(await checkpointAuditLog(test.database, 730, sign, () => undefined)).toBe(0);
  });

  it('drops nothing of a broken chain, and reports it: no checkpoint covers it', async () => {
    const orgDb = await addChain(10);
    await ageChain(orgDb.orgId, 6);
    await asAttacker(`update audit_log set action = 'key.revoked' where org_id = $1 and seq = 3`, [
      orgDb.orgId,
    ]);
    const told: unknown[] = [];
    await checkpointAuditLog(test.database, 730, sign, (orgId, fault) => told.push([orgId, fault]));
    expect(told).toEqual([[orgDb.orgId, { kind: 'row_edited', seq: 3 }]]);
    expect((await check(orgDb)).rows).toBe(10);
  });

  it('leaves no way to remove rows by a checkpoint of one’s own making', async () => {
    const orgDb = await addChain(10);
    const folder = await anchorAll();
    await asAttacker(
      `insert into audit_checkpoints (org_id, seq, at, hash, made_at, key_id, signature)
       select org_id, seq, at, hash, now(), $2, hash from audit_log where org_id = $1 and seq = 6`,
      [orgDb.orgId, keys.currentId],
    );
    await asAttacker('delete from audit_log where org_id = $1 and seq <= 6', [orgDb.orgId]);
    expect((await verify(orgDb, folder)).lines[0]).toMatch(
      /the checkpoint at row 6 was not signed by this service/,
    );
  });

  it('is seen where its rows are still there, and where it is missing', async () => {
    const orgDb = await addChain(10);
    await ageChain(orgDb.orgId, 6);
    await checkpointAuditLog(test.database, 730, sign, () => undefined);
    const folder = await anchorAll();
    await asAttacker('delete from audit_checkpoints where org_id = $1', [orgDb.orgId]);
    expect((await verify(orgDb, folder)).lines[0]).toMatch(/: rows 1 to 6 missing/);
  });
});
