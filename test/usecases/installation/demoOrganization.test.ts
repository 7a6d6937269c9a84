import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { describeKey, makeKey } from '../../../bin/service/prepareDatabase.js';
import type { NewKey } from '../../../db/access/keys.js';
import { findDemoOrganization } from '../../../db/installation/organizations.js';
import {
  insertDemoOrganization,
  removeDemoOrganization,
} from '../../../usecases/installation/organization.js';
import { drawTenant, insertTenantRows, listTenantTables } from '../../db/support/tenantRows.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';

let test: TestDatabase;

beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test.close());

const aKey = () => describeKey(makeKey(), 'demo', 'admin') as NewKey;
const aDemo = (id: string) => ({ id, name: 'Demo Labs', endDay: '2026-11-20' });

/** Number of an organization's rows, by table; empty tables are absent. */
async function rowsOf(orgId: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const table of await listTenantTables(test.superuser)) {
    const column = table === 'organizations' ? 'id' : 'org_id';
    const { rows } = await test.superuser.query(
      `select count(*)::int as rows from ${table} where ${column} = $1`,
      [orgId],
    );
    if (rows[0].rows > 0) counts[table] = rows[0].rows;
  }
  return counts;
}

describe('the demo’s organization', () => {
  it('is made once, with its key; a second one is not made beside it', async () => {
    const id = randomUUID();
    expect(await insertDemoOrganization(test.database, aDemo(id), aKey())).toBe(true);
    expect(await insertDemoOrganization(test.database, aDemo(randomUUID()), aKey())).toBe(false);
    expect(await findDemoOrganization(test.database)).toEqual(aDemo(id));
    // The key, its row of the audit log and the head of that.
    expect(await removeDemoOrganization(test.database, id)).toBe(3);
    expect(await findDemoOrganization(test.database)).toBeUndefined();
  });

  it('is removed with every row that it has in any table, and no other organization loses a row', async () => {
    const [demo, other] = [drawTenant(), drawTenant()];
    for (const tenant of [demo, other]) await insertTenantRows(test.superuser, tenant);
    const tables = await listTenantTables(test.superuser);
    const before = await rowsOf(other.orgId);
    expect(Object.keys(await rowsOf(demo.orgId))).toEqual(tables);
    expect(Object.keys(before)).toEqual(tables);
    await test.superuser.query(`update organizations set demo_end_day = '2026-11-20' where id = $1`, [
      demo.orgId,
    ]);
    expect(await removeDemoOrganization(test.database, demo.orgId)).toBeGreaterThanOrEqual(tables.length - 1);
    expect(await rowsOf(demo.orgId)).toEqual({});
    expect(await rowsOf(other.orgId)).toEqual(before);
  });

  it('is the only one that can be removed: any other organization keeps all that it has', async () => {
    const tenant = drawTenant();
    await insertTenantRows(test.superuser, tenant);
    const before = await rowsOf(tenant.orgId);
    await expect(removeDemoOrganization(test.database, tenant.orgId)).rejects.toMatchObject({
      code: 'not_found',
    });
    await expect(removeDemoOrganization(test.database, randomUUID())).rejects.toMatchObject({
      code: 'not_found',
    });
    expect(await rowsOf(tenant.orgId)).toEqual(before);
  });

  it('cannot be marked by a request: only an organization’s name and settings are its own to change', async () => {
    const tenant = drawTenant();
    await insertTenantRows(test.superuser, tenant);
    const asTenant = (sql: string) =>
      test.database.transact('app_rw', tenant, (connection) => connection.query({ text: sql, values: [] }));
    await expect(asTenant(`update organizations set demo_end_day = '2026-11-20'`)).rejects.toMatchObject({
      code: '42501',
    });
    await expect(asTenant(`update organizations set settings = '{}'`)).resolves.toBeDefined();
  });
});
