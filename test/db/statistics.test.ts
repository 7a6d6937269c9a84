import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openDatabase } from '../../db/client.js';
import { refreshStatistics } from '../../db/statistics.js';
import { importBill, runGaps } from '../support/bills.js';
import { createTestDatabase, directly, PATIENT, type TestDatabase } from '../support/database.js';
import { startWorkingApi } from '../support/workingApi.js';
import { withoutAutovacuum } from './support/withoutAutovacuum.js';

/** Which of these tables have been analyzed. */
async function analyzedOf({ superuser }: TestDatabase, tables: readonly string[]): Promise<string[]> {
  const { rows } = await superuser.query<{ relname: string }>(
    'select relname from pg_stat_user_tables where relname = any($1) and last_analyze is not null order by 1',
    [tables],
  );
  return rows.map(({ relname }) => relname);
}

/** Adds this many organizations, as rows of an ordinary table. */
async function addRows({ superuser }: TestDatabase, count: number): Promise<void> {
  await superuser.query(
    `insert into organizations (id, name) select gen_random_uuid(), repeat('x', 200) from generate_series(1, $1)`,
    [count],
  );
}

describe('the statistics of tables', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
    await withoutAutovacuum(database);
  });
  afterAll(() => database?.close());

  it('are there after a bulk write, and again when a table has grown by half, and not before', async () => {
    expect(await analyzedOf(database, ['organizations'])).toEqual([]);
    await addRows(database, 400);
    expect(await refreshStatistics(database.database)).toContain('organizations');
    expect(await analyzedOf(database, ['organizations'])).toEqual(['organizations']);
    await addRows(database, 40);
    expect(await refreshStatistics(database.database)).not.toContain('organizations');
    await addRows(database, 800);
    expect(await refreshStatistics(database.database)).toContain('organizations');
    const { rows } = await database.superuser.query(
      `select reltuples from pg_class where relname = 'organizations'`,
    );
    expect(rows).toEqual([{ reltuples: 1_240 }]);
  });

  it('are made of a small sample, which has 25 ranges of a column', async () => {
    const { rows } = await database.superuser.query(
      `select cardinality(histogram_bounds::text::uuid[]) as bounds from pg_stats
       where tablename = 'organizations' and attname = 'id'`,
    );
    expect(rows).toEqual([{ bounds: 26 }]);
  });

  it('are made of partitions too', async () => {
    await database.superuser.query(
      `insert into events (org_id, timestamp, id, end_at, kind, status, provider, billed_by, model, api_key_hash, api_key_id, session_id, is_batch,
         input_tokens, output_tokens, cache_read, cache_creation, reasoning_tok, cached_tok, unmetered, cost_usd, computed_cost_usd, cost_source,
         usage_source, input_semantics, told_classes, biller_from_host, duration_ms, stop_reason, service_name, scope_name)
       select $1, now(), gen_random_uuid(), now(), 'otel_span', 'ok', 'openai', 'openai', 'm', '', 'key_test', '', false, 1, 1, 0, 0, 0, 0,
         false, 1, 1, 'computed', 'otel', 'inclusive', 3, true, 1000, 'stop', '', ''`,
      [randomUUID()],
    );
    const partition = `events_${new Date().toISOString().slice(0, 7).replace('-', '_')}`;
    expect(await refreshStatistics(database.database)).toEqual([partition]);
  });

  it('are made for a login that owns nothing, and cannot be asked for by a request', async () => {
    const role = `service_${randomBytes(6).toString('hex')}`;
    await database.superuser.query(
      `create role ${role} login password 'x' noinherit; grant app_rw, app_system, app_workspace to ${role}`,
    );
    const url = new URL(directly(database.url));
    url.username = role;
    url.password = 'x';
    const login = openDatabase({ url: url.toString(), poolMax: 2, applicationName: 'test', ...PATIENT });
    try {
      await addRows(database, 4_000);
      expect(await refreshStatistics(login)).toEqual(['organizations']);
      for (const as of ['app_rw', 'app_workspace'] as const) {
        const tenant = as === 'app_rw' ? { orgId: randomUUID() } : { orgId: randomUUID(), projectId: 'p' };
        const analyze = login.transactOne(as, tenant, (connection) =>
          connection.query(`select analyze_table('organizations')`),
        );
        await expect(analyze, as).rejects.toThrow(/permission denied/);
      }
    } finally {
      await login.close();
      await database.superuser.query(`drop role ${role}`);
    }
  });

  it('are asked for of tables alone, and of no other name', async () => {
    for (const name of ['pg_authid', 'organizations; drop table findings', 'findings_of_series', '']) {
      const { rows } = await database.superuser.query('select analyze_table($1) as is_done', [name]);
      expect(rows, name).toEqual([{ is_done: false }]);
    }
  });
});

describe('the worker', () => {
  it('analyzes bills when an import has ended, and what a gap run has written when it has', async () => {
    const api = await startWorkingApi();
    try {
      await withoutAutovacuum(api.database);
      const bill = 'date,model,token_class,quantity,amount_usd\n2026-10-03,gpt-4o-mini,input,1000000,0.15\n';
      await importBill(api, bill, { provider: 'openai' });
      const bills = ['billing_days', 'billing_rows'];
      await expect.poll(() => analyzedOf(api.database, bills)).toEqual(bills);
      expect((await runGaps(api, '?period=90d')).status).toBe('succeeded');
      const found = ['gap_buckets', 'gap_published', 'gap_run_units'];
      await expect.poll(() => analyzedOf(api.database, found)).toEqual(found);
    } finally {
      await api.close();
    }
  });
});
