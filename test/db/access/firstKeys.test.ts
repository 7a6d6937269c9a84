import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDemo, resetDemo } from '../../../bin/demo/demoRun.js';
import { describeKey, makeKey } from '../../../bin/service/prepareDatabase.js';
import { listAuditRecords } from '../../../db/access/auditLog.js';
import type { NewKey } from '../../../db/access/keys.js';
import { OrgDb } from '../../../db/orgDb.js';
import { parseKey } from '../../../domain/access/keyRules.js';
import { insertFirstOrganization } from '../../../usecases/installation/organization.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { makeTestFolder } from '../../support/testFolder.js';

let test: TestDatabase;
beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test.close());

const logOf = async (orgId: string) =>
  (await listAuditRecords(new OrgDb(test.database, orgId), {}, { limit: 10, offset: 0 })).map(
    ({ seq, action, actor, subject, details }) => ({
      seq,
      action,
      actor,
      subject,
      details: JSON.parse(details),
    }),
  );

describe('a key that no key has made', () => {
  it('of the first start is the first row of the organization’s audit log; a second start makes neither', async () => {
    const key = describeKey(makeKey(), 'first admin key', 'admin') as NewKey;
    const [first, second] = [randomUUID(), randomUUID()];
    expect(await insertFirstOrganization(test.database, { id: first, name: 'One' }, key)).toBe(true);
    const other = describeKey(makeKey(), 'first admin key', 'admin') as NewKey;
    expect(await insertFirstOrganization(test.database, { id: second, name: 'Two' }, other)).toBe(false);
    expect(await logOf(first)).toEqual([
      {
        seq: 1,
        action: 'key.created',
        actor: { kind: 'command', id: 'start' },
        subject: { type: 'key', id: key.id },
        details: { name: 'first admin key', role: 'admin' },
      },
    ]);
    expect(await logOf(second)).toEqual([]);
  });

  it('of the demo is recorded in its audit log, and so is another one that replaces a lost one', async () => {
    const [before, after] = [makeTestFolder('demo'), makeTestFolder('demo')];
    const made = await openDemo(test.database, before, Date.now());
    expect(await openDemo(test.database, before, Date.now())).toEqual(made);
    const again = await openDemo(test.database, after, Date.now());
    const row = (seq: number, key: string) => ({
      seq,
      action: 'key.created',
      actor: { kind: 'command', id: 'demo' },
      subject: { type: 'key', id: parseKey(key)?.keyId },
      details: { name: 'demo admin key', role: 'admin' },
    });
    expect(await logOf(made.organization.id)).toEqual([row(2, again.adminKey), row(1, made.adminKey)]);
    expect(await resetDemo(test.database, after)).toBeGreaterThan(0);
  });
});
