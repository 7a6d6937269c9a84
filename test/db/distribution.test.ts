import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

/**
 * The schema can be divided by organization (docs/scale.md): over Postgres servers, or by Citus with `org_id` as the
 * distribution column. `catalogue.test.ts` proves that every key of an organization's table begins with it; here is the
 * rest: which tables every server needs as a whole.
 */
let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.close());

/** Tables of the whole installation, without an organization's rows. */
const COMMON = [
  'imported_prices',
  'price_feeds',
  'price_imports',
  'price_models',
  'price_state',
  'price_versions',
  'retention_runs',
  'schema_migrations',
  'sweep_state',
];

const TABLES = `from pg_class c where c.relkind in ('r', 'p') and c.relnamespace = 'public'::regnamespace and not c.relispartition`;
const HAS_ORGANIZATION = `exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'org_id' and not a.attisdropped)`;

async function namesOf(sql: string): Promise<string[]> {
  const { rows } = await database.superuser.query<{ name: string }>(sql);
  return rows.map(({ name }) => name);
}

describe('the schema', () => {
  it('has an organization in every table that is not common to the installation', async () => {
    const without = await namesOf(
      `select c.relname as name ${TABLES} and c.relname <> 'organizations' and not ${HAS_ORGANIZATION} order by 1`,
    );
    expect(without).toEqual(COMMON);
  });

  it('refers from no common table to an organization’s table', async () => {
    const others = await namesOf(
      `select format('%s to %s', k.conrelid::regclass, k.confrelid::regclass) as name from pg_constraint k
       where k.contype = 'f' and k.conparentid = 0
         and k.conrelid not in (select c.oid ${TABLES} and ${HAS_ORGANIZATION})
         and k.confrelid in (select c.oid ${TABLES} and ${HAS_ORGANIZATION})`,
    );
    expect(others).toEqual([]);
  });
});
