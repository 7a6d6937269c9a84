import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { fetchedRates } from '../../../db/migrations/0031_fetched_rates.js';
import { MIGRATIONS } from '../../../db/migrations/index.js';
import { startTestApi, type TestApi } from '../../support/api.js';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

it('days that were fetched before rates were kept have that of their connection: none is asked for again by the migration', async () => {
  const { superuser } = api.database;
  const store = async (account: string, settings: object) => {
    const [connection, source] = [randomUUID(), randomUUID()];
    await superuser.query(
      `insert into billing_connections (org_id, id, provider, name, status, provider_account_id, settings, backfill_from)
       values ($1, $2, 'azure_openai', 'x', 'active', $3, $4, '2026-08-01')`,
      [api.orgId, connection, account, settings],
    );
    await superuser.query(
      `insert into billing_sources (org_id, id, kind, connection_id, provider, filename, sha256, size_bytes, status, format)
       values ($1, $2::uuid, 'api', $3, 'azure_openai', 'x', replace($2::uuid::text || $2::uuid::text, '-', ''), 1, 'succeeded', 'azure_query_pages')`,
      [api.orgId, source, connection],
    );
    await superuser.query(
      `insert into billing_days (org_id, provider, provider_account_id, day, feed, report, charge_category, source_id, source_rank,
         source_fetched_at, row_count, amount_usd, connection_id, content_hash)
       values ($1, 'azure_openai', $2, '2026-08-01', 'cost', '', 'usage', $3, 30, now(), 1, 1, $4, 'x')`,
      [api.orgId, account, source, connection],
    );
  };
  await store('euro', { fxRate: '1.0842' });
  await store('dollar', {});
  const client = await superuser.connect();
  try {
    const later = MIGRATIONS.slice(MIGRATIONS.indexOf(fetchedRates)).toReversed();
    for (const { down } of later) await client.query(`begin; ${down}; commit`);
    for (const { up } of later.toReversed()) await client.query(`begin; ${up}; commit`);
  } finally {
    client.release();
  }
  const { rows } = await superuser.query(
    'select provider_account_id as account, trim_scale(fx_rate)::text as rate from billing_days where org_id = $1 order by 1',
    [api.orgId],
  );
  expect(rows).toEqual([
    { account: 'dollar', rate: null },
    { account: 'euro', rate: '1.0842' },
  ]);
});
