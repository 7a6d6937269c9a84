import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OrgDb } from '../../db/orgDb.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { insertTenantRows } from './support/tenantRows.js';

/**
 * The login of the service may take any of its roles, so text of a request that reached Postgres as a statement could
 * escape its organization. It never does: each text is sent as a parameter, and a statement with parameters is a single
 * statement (Postgres's extended query protocol).
 */
let test: TestDatabase;
let orgDb: OrgDb;
let other: string;

beforeAll(async () => {
  test = await createTestDatabase();
  orgDb = new OrgDb(test.database, (await insertTenantRows(test.superuser)).orgId);
  other = (await insertTenantRows(test.superuser)).orgId;
});
afterAll(() => test.close());

const wordsOf = (orgId: string) => [
  `'; reset role; select * from events; --`,
  `'; set role app_system; --`,
  `'; set app.org_id = '${orgId}'; --`,
  `' or org_id = '${orgId}' or '1' = '1`,
  `\\'; rollback; begin; --`,
  `$1; reset role`,
  `$$; reset role; $$`,
  `*/ reset role; /*`,
];

const WHO = `select $1::text as words, current_user as role, current_setting('app.org_id') as org,
  (select count(*)::int from events where model = $1::text) as found, (select count(*)::int from events) as visible`;

describe('texts of a request', () => {
  it('stay texts, whatever they contain, alone and in a transaction', async () => {
    const calm = { role: 'app_rw', org: orgDb.orgId, found: 0, visible: 1 };
    for (const words of wordsOf(other)) {
      expect(await orgDb.rows(WHO, [words])).toEqual([{ words, ...calm }]);
      expect(await orgDb.rows(WHO, [words], 'who')).toEqual([{ words, ...calm }]);
      const both = await orgDb.transaction(async (inside) => [
        ...(await inside.rows(WHO, [words])),
        ...(await inside.rows(WHO, ['calm'])),
      ]);
      expect(both).toEqual([
        { words, ...calm },
        { words: 'calm', ...calm },
      ]);
    }
  });

  it('are never a second statement: one with parameters is one', async () => {
    await expect(orgDb.rows('select $1::text; reset role', ['x'])).rejects.toMatchObject({ code: '42601' });
    expect(await orgDb.rows('select current_user as role')).toEqual([{ role: 'app_rw' }]);
  });

  it('cannot be an organization: its id is a uuid, or nothing is sent at all', async () => {
    const wrong = [...wordsOf(other), '', ' ', `${other}'`, other.toUpperCase(), `${other}\n`, 'null'];
    for (const orgId of wrong) {
      const handle = new OrgDb(test.database, orgId);
      await expect(handle.rows('select 1'), orgId).rejects.toThrow(TypeError);
      await expect(
        handle.transaction((inside) => inside.rows('select 1')),
        orgId,
      ).rejects.toThrow(TypeError);
    }
  });

  it('of an unknown organization find nothing', async () => {
    const nobody = new OrgDb(test.database, randomUUID());
    expect(await nobody.rows('select * from events')).toEqual([]);
  });
});
