import { randomUUID } from 'node:crypto';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listAuditRecords, recordAudit } from '../../../../db/access/auditLog.js';
import { insertOrganization } from '../../../../db/installation/organizations.js';
import { OrgDb } from '../../../../db/orgDb.js';
import { AuditAnchors } from '../../../../dispatch/auditAnchors.js';
import { ANCHOR_PURPOSE } from '../../../../domain/access/auditLog.js';
import { publicId } from '../../../../domain/ids.js';
import { createLogger } from '../../../../platform/logger.js';
import { MonthlyLines } from '../../../../platform/monthlyLines.js';
import { makeSecretKey } from '../../../../platform/secretBox.js';
import { SecretKeys } from '../../../../platform/secretKeys.js';
import { makeTestFolder } from '../../../support/testFolder.js';
import {
  removeDataDir,
  runCommand,
  startInstallation,
  type TestInstallation,
} from './support/installation.js';

let installation: TestInstallation;
let orgId: string;
const folders: string[] = [];

beforeAll(async () => {
  installation = await startInstallation();
  writeFileSync(join(installation.dataDir, 'secret-key'), `${makeSecretKey()}\n`, { mode: 0o600 });
  orgId = randomUUID();
  await insertOrganization(installation.database, { id: orgId, name: 'Test' });
}, 300_000);

afterAll(async () => {
  await installation?.close();
  for (const folder of [...folders, installation.dataDir]) removeDataDir(folder);
});

async function addRows(at: TestInstallation, count: number): Promise<void> {
  for (let row = 0; row < count; row += 1)
    await recordAudit(new OrgDb(at.database, orgId), {
      action: 'key.created',
      actor: { kind: 'key', id: 'key_0123456789' },
      subject: null,
      details: { row },
      requestId: null,
    });
}

/** Anchors as the worker of an installation does. */
async function anchor(at: TestInstallation): Promise<void> {
  const keys = SecretKeys.fromFile(join(at.dataDir, 'secret-key'));
  await new AuditAnchors({
    database: at.database,
    files: new MonthlyLines(join(at.dataDir, 'audit-anchors')),
    sign: (text) => keys.sign(ANCHOR_PURPOSE, text),
    logger: createLogger({ name: 'test', level: 'silent' }),
    keepDays: 800,
  }).anchorHeads();
}

const verify = (dataDir: string, ...args: string[]) =>
  runCommand('audit-log verify', args, { DATA_DIR: dataDir });

describe('./trueup audit-log verify', () => {
  it('finds nothing wrong in an unchanged log, and prints how many records it checked', async () => {
    await addRows(installation, 5);
    await anchor(installation);
    const { exit, output } = await verify(installation.dataDir);
    expect(output).toMatch(
      /OK +org_[0-9a-f]{32} \(Test\): 5 rows to row 5 follow from each other; 1 of them were compared with anchors\.\nThe audit log is as it was written\.\n$/,
    );
    expect(exit).toBe(0);
  });

  it('ends with exit code 1 and one sentence for what it finds', async () => {
    const { superuser } = installation;
    const client = await superuser.connect();
    const change = (to: string) =>
      client.query(
        `begin; set local session_replication_role = 'replica'; update audit_log set actor_id = '${to}' where seq = 2; commit`,
      );
    await change('key_somebody0');
    const { exit, output } = await verify(installation.dataDir, '--org', publicId('org', orgId));
    await change('key_0123456789');
    client.release();
    expect(output).toMatch(
      /^FOUND .*: row 2 was edited: its hash is not that of what stands in it\.\n1 finding: the audit log is not as it was written\.\n$/,
    );
    expect(exit).toBe(1);
  });

  it('prints its usage, and names a missing organization and missing anchors', async () => {
    expect(await verify(installation.dataDir, '--org', 'nobody')).toMatchObject({ exit: 1 });
    expect((await verify(installation.dataDir, '--anchors', '/nowhere')).output).toMatch(
      /^There is no \/nowhere/,
    );
    expect((await verify(installation.dataDir, '--wrong')).output).toMatch(/Usage: trueup audit-log verify/);
  });
});

describe('a rotation of the secret key', () => {
  it('is recorded in the log, and the anchors from before it are still compared', async () => {
    const end = await runCommand('secrets rotate', [], { DATA_DIR: installation.dataDir });
    expect(end, end.output).toMatchObject({ exit: 0 });
    await anchor(installation);
    const { exit, output } = await verify(installation.dataDir);
    expect(output).toMatch(/OK .* 6 rows to row 6 .*; 2 of them were compared/);
    expect(output).toMatch(/the signatures of 1 anchors could not be checked/);
    expect(exit).toBe(0);
    // An anchor of the new key covers the whole chain.
    expect((await verify(installation.dataDir, '--strict')).exit).toBe(0);
    const [newest] = await listAuditRecords(
      new OrgDb(installation.database, orgId),
      {},
      { limit: 1, offset: 0 },
    );
    expect(newest).toMatchObject({
      action: 'secret.rotated',
      actor: { kind: 'command', id: 'secrets:rotate' },
    });
  });
});

describe('a restored backup', () => {
  it('continues its chain, reports what was lost, and is distinguished from a deleted end', async () => {
    const file = join(makeTestFolder('backups'), 'b.tar.gz');
    folders.push(join(file, '..'));
    const settings = { DATA_DIR: installation.dataDir };
    expect(await runCommand('backup', ['--to', file], settings)).toMatchObject({ exit: 0 });
    await addRows(installation, 4);
    await anchor(installation);
    await installation.stop();

    const end = await runCommand('restore', [file, '--replace'], settings);
    expect(end, end.output).toMatchObject({ exit: 0 });
    installation = await startInstallation(installation.dataDir);
    await addRows(installation, 2);
    await anchor(installation);
    const { exit, output } = await verify(installation.dataDir);
    expect(output).toMatch(
      /NOTE .*: a restore of .* took the chain back to row 7; rows up to 10 of before are lost with it\./,
    );
    expect(output).toMatch(/OK .*: 9 rows to row 9 follow from each other; 4 of them were compared/);
    expect(exit).toBe(0);
    const restored = await listAuditRecords(
      new OrgDb(installation.database, orgId),
      { action: 'database.restored' },
      { limit: 5, offset: 0 },
    );
    expect(restored.map(({ seq }) => seq)).toEqual([7]);
  }, 300_000);

  it('is still distinguished after a rotation of the secret key', async () => {
    const settings = { DATA_DIR: installation.dataDir };
    expect(await runCommand('secrets rotate', [], settings)).toMatchObject({ exit: 0 });
    await anchor(installation);
    expect((await verify(installation.dataDir)).output).toMatch(/took the chain back to row 7/);
    expect((await verify(installation.dataDir)).exit).toBe(0);
  });

  it('without the anchors of before has those that were in the backup', async () => {
    const file = join(makeTestFolder('backups'), 'b.tar.gz');
    const into = makeTestFolder('restored');
    folders.push(join(file, '..'), into);
    expect(await runCommand('backup', ['--to', file], { DATA_DIR: installation.dataDir })).toMatchObject({
      exit: 0,
    });
    const end = await runCommand('restore', [file, '--into', into], { DATA_DIR: installation.dataDir });
    expect(end, end.output).toMatchObject({ exit: 0 });
    const kinds = new MonthlyLines(join(into, 'audit-anchors'))
      .listFiles()
      .flatMap((path) => readFileSync(path, 'utf8').trim().split('\n'))
      .map((line) => JSON.parse(line).audit_anchor.kind);
    expect(kinds.at(-1)).toBe('restored');
    expect(kinds).toContain('head');
    expect((await verify(into)).exit).toBe(0);
  }, 300_000);
});

describe('an export and its import', () => {
  it('carry the chain byte by byte', async () => {
    const file = join(makeTestFolder('exports'), 'e.tar.gz');
    const into = makeTestFolder('imported');
    folders.push(join(file, '..'), into);
    await addRows(installation, 2);
    await anchor(installation);
    const out = await runCommand('export data', ['--to', file], { DATA_DIR: installation.dataDir });
    expect(out, out.output).toMatchObject({ exit: 0 });
    const end = await runCommand('import data', [file], { DATA_DIR: into });
    expect(end, end.output).toMatchObject({ exit: 0 });
    // The key is copied along as for encrypted credentials: it has signed the anchors of the restore.
    cpSync(join(installation.dataDir, 'secret-key'), join(into, 'secret-key'));
    const { exit, output } = await verify(into, '--anchors', join(installation.dataDir, 'audit-anchors'));
    expect(output).toMatch(/OK .* follow from each other; \d+ of them were compared/);
    expect(exit).toBe(0);
  }, 300_000);
});
