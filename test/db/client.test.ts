import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../db/client.js';
import { OrgDb, transactionForEach, unscoped } from '../../db/orgDb.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

let test: TestDatabase;

beforeAll(async () => {
  test = await createTestDatabase({ poolMax: 1 });
});

afterAll(() => test.close());

const scopeSql = `select current_user as role, current_setting('app.org_id', true) as org`;

const REJECTION = `insert into ingest_rejections (org_id, hour, service_name, scope_name, reason, count)
  values ($1::uuid, date_trunc('hour', now()), '', '', 'x', 1)`;

describe('a transaction', () => {
  it('has its role and organization in its first statement, which is sent before its opening is answered', async () => {
    const orgId = randomUUID();
    const orgDb = new OrgDb(test.database, orgId);
    const scope = [{ role: 'app_rw', org: orgId }];
    expect(await orgDb.rows(scopeSql)).toEqual(scope);
    expect(await orgDb.transaction((inside) => inside.rows(scopeSql))).toEqual(scope);
  });

  it('leaves nothing of its role and organization to the next one on its connection', async () => {
    await new OrgDb(test.database, randomUUID()).rows('select 1');
    const rows = await unscoped(test.database, 'what the last transaction left', (system) =>
      system.rows(scopeSql),
    );
    expect(rows).toEqual([{ role: 'app_system', org: '' }]);
  });

  it('of one statement that fails stores nothing, throws the reason, and leaves a usable connection', async () => {
    const orgDb = new OrgDb(test.database, randomUUID());
    const insert = `insert into ingest_rejections (org_id, hour, service_name, scope_name, reason, count)
      select $1::uuid, now(), '', '', 'x', 1 / (2 - n) from generate_series(1, 2) n`;
    await expect(orgDb.run(insert, [orgDb.orgId])).rejects.toThrow('division by zero');
    expect(await orgDb.rows('select 1 from ingest_rejections')).toEqual([]);
  });

  it('of several statements is rolled back as a whole when the caller fails', async () => {
    const orgDb = new OrgDb(test.database, randomUUID());
    const work = orgDb.transaction(async (inside) => {
      await inside.run(REJECTION, [orgDb.orgId]);
      throw new Error('the caller gave up');
    });
    await expect(work).rejects.toThrow('the caller gave up');
    expect(await orgDb.rows('select 1 from ingest_rejections')).toEqual([]);
  });

  it('whose work ignores the failure of a statement throws, because nothing of it is stored', async () => {
    const orgDb = new OrgDb(test.database, randomUUID());
    const work = orgDb.transaction(async (inside) => {
      await inside.run(REJECTION, [orgDb.orgId]);
      await inside.rows('select 1 / 0').catch(() => undefined);
    });
    await expect(work).rejects.toThrow('nothing is stored');
    expect(await orgDb.rows('select 1 from ingest_rejections')).toEqual([]);
  });

  it('of one statement whose failure is ignored throws', async () => {
    const orgId = randomUUID();
    const one = test.database.transactOne('app_rw', { orgId }, (connection) =>
      connection.query('select 1 / 0').catch(() => 'ignored'),
    );
    await expect(one).rejects.toThrow('nothing is stored');
    expect(await new OrgDb(test.database, orgId).rows('select 1 as one')).toEqual([{ one: 1 }]);
  });

  it('of several organizations throws when one of them ignores the failure of its statement', async () => {
    const orgIds = [randomUUID(), randomUUID()];
    const work = transactionForEach(test.database, orgIds, 1_000, async (inside, index) => {
      if (index === 0) await inside.run(REJECTION, [inside.orgId]);
      else await inside.rows('select 1 / ($1::int - 1)', [1]).catch(() => undefined);
    });
    await expect(work).rejects.toThrow('nothing is stored');
    for (const orgId of orgIds)
      expect(await new OrgDb(test.database, orgId).rows('select 1 from ingest_rejections')).toEqual([]);
  });

  it('whose work undoes a failed statement in a savepoint is stored', async () => {
    const orgDb = new OrgDb(test.database, randomUUID());
    await orgDb.transaction(async (inside) => {
      await inside.run(REJECTION, [orgDb.orgId]);
      await inside.attempt((attempt) => attempt.rows('select 1 / 0'));
    });
    expect(await orgDb.rows('select 1 as one from ingest_rejections')).toEqual([{ one: 1 }]);
  });

  it('that cannot be opened throws the reason, not what its statements met behind it', async () => {
    const options = { ...test.database.options, statementTimeoutMs: -5 };
    const broken = openDatabase(options);
    const orgDb = new OrgDb(broken, randomUUID());
    await expect(orgDb.rows('select 1')).rejects.toThrow('statement_timeout');
    await expect(orgDb.transaction((inside) => inside.rows('select 1'))).rejects.toThrow('statement_timeout');
    await broken.close();
  });
});
