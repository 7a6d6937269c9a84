import { randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startAuditAnchors } from '../../bin/wiring/auditAnchors.js';
import { recordAudit } from '../../db/access/auditLog.js';
import { insertOrganization } from '../../db/installation/organizations.js';
import { OrgDb } from '../../db/orgDb.js';
import { ANCHOR_PURPOSE, anchorText, parseAnchorLine } from '../../domain/access/auditLog.js';
import { parseConfig } from '../../platform/config.js';
import { MonthlyLines, readLines } from '../../platform/monthlyLines.js';
import { makeSecretKey } from '../../platform/secretBox.js';
import { SecretKeys } from '../../platform/secretKeys.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { makeTestFolder } from '../support/testFolder.js';

let test: TestDatabase;
let orgDb: OrgDb;
const keys = SecretKeys.of(makeSecretKey());
const folders: string[] = [];

beforeAll(async () => {
  test = await createTestDatabase();
  const id = randomUUID();
  await insertOrganization(test.database, { id, name: 'Test' });
  orgDb = new OrgDb(test.database, id);
  await addRow();
});
afterAll(async () => {
  await test.close();
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

const addRow = () =>
  recordAudit(orgDb, {
    action: 'key.created',
    actor: { kind: 'key', id: 'k' },
    subject: null,
    details: {},
    requestId: null,
  });

/** Starts anchoring as the worker does; returns its log lines. */
function start(prepare: (folder: string) => void = () => undefined) {
  const dataDir = makeTestFolder('anchoring');
  folders.push(dataDir);
  const config = parseConfig({ DATA_DIR: dataDir });
  prepare(config.auditAnchorDir);
  const logged: string[] = [];
  const stream = new Writable({
    write: (chunk, _encoding, done) => {
      logged.push(String(chunk));
      done();
    },
  });
  const stop = startAuditAnchors(config, test.database, keys, pino(stream));
  const seqs = async () => {
    const found: number[] = [];
    for await (const line of readLines(new MonthlyLines(config.auditAnchorDir).listFiles())) {
      const parsed = parseAnchorLine(line);
      if (parsed && parsed !== 'unreadable') found.push(parsed.anchor.seq);
    }
    return found;
  };
  return { stop, seqs, logged };
}

describe('the worker', () => {
  it('anchors the audit log when it starts and when it stops, in a file and in its log, signed', async () => {
    const { stop, seqs, logged } = start();
    await expect.poll(seqs).toEqual([1]);
    await addRow();
    await stop();
    expect(await seqs()).toEqual([1, 2]);
    const [first] = logged.flatMap((line) => parseAnchorLine(line) ?? []);
    if (!first || first === 'unreadable') throw new Error('no anchor was logged');
    expect(first.anchor).toMatchObject({ kind: 'head', orgId: orgDb.orgId, seq: 1 });
    expect(keys.checkSignature(ANCHOR_PURPOSE, anchorText(first.anchor), first.signed)).toBe('good');
    expect(keys.checkSignature('something else', anchorText(first.anchor), first.signed)).toBe('forged');
  });

  it('that cannot write the folder logs it and still has the anchors in its log', async () => {
    const { stop, logged } = start((folder) => {
      mkdirSync(join(folder, '..'), { recursive: true });
      writeFileSync(folder, 'in the way');
      chmodSync(folder, 0o400);
    });
    await stop();
    expect(logged.filter((line) => parseAnchorLine(line)).length).toBeGreaterThan(0);
    expect(logged.join('')).toContain('was not anchored');
  });
});
