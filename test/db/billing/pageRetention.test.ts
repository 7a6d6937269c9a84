import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pruneFetchedPages } from '../../../db/billing/fetchedPages.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';

const KEPT_DAYS = 30;

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const query = (sql: string, values: unknown[] = []) => api.database.superuser.query(sql, values);

interface Fetched {
  /** Days ago. */
  seen: number;
  /** The state of the rows that were read from it: a day in force, a closed day that was restated, or none. */
  tells: 'day' | 'restated' | 'nothing';
  closes?: boolean;
}

async function connect({ orgId }: TestOrganization): Promise<string> {
  const id = randomUUID();
  await query(
    `insert into billing_connections (org_id, id, provider, name, status, provider_account_id, backfill_from)
     values ($1, $2, 'openai', 'x', 'active', 'org-1', '2026-01-01')`,
    [orgId, id],
  );
  return id;
}

/** A sync of one part with one page. */
async function fetched(orgId: string, connection: string, what: Fetched): Promise<string> {
  const [run, source, page] = [randomUUID(), randomUUID(), randomUUID()];
  const at = new Date(Date.now() - what.seen * 86_400_000).toISOString();
  const result = { settled_days: what.closes ? ['2026-01-02'] : [], restated: [], changed_days: [] };
  await query(
    `insert into sync_runs (org_id, id, connection_id, trigger, status, finished_at) values ($1, $2, $3, 'schedule', 'succeeded', $4)`,
    [orgId, run, connection, at],
  );
  await query(
    `insert into billing_sources (org_id, id, kind, connection_id, provider, filename, sha256, size_bytes, status, format, started_at)
     values ($1, $2::uuid, 'api', $3, 'openai', 'x', replace($2::uuid::text || $2::uuid::text, '-', ''), 1, 'succeeded', 'openai_pages', $4)`,
    [orgId, source, connection, at],
  );
  await query(
    `insert into sync_chunks (org_id, run_id, ordinal, report, feed, bucket_width, starts_at, ends_at, status, source_id, result)
     values ($1, $2, 0, 'costs', 'cost', '1d', '2026-01-01', '2026-01-04', 'done', $3, $4)`,
    [orgId, run, source, JSON.stringify(result)],
  );
  await query(
    `insert into billing_fetched_pages (org_id, id, connection_id, run_id, report, request_key, request_path, page_no, sha256, body, fetched_at, last_seen_at)
     values ($1, $2::uuid, $3, $4, 'costs', 'k', '/', 0, replace($2::uuid::text || $2::uuid::text, '-', ''), 'x', $5, $5)`,
    [orgId, page, connection, run, at],
  );
  await query(
    `insert into sync_pages (org_id, run_id, ordinal, page_no, page_id, buckets, fetched_at) values ($1, $2, 0, 0, $3, '[]', $4)`,
    [orgId, run, page, at],
  );
  if (what.tells !== 'nothing')
    await query(
      `insert into billing_days (org_id, provider, provider_account_id, day, feed, report, charge_category, source_id, source_rank,
         source_fetched_at, row_count, amount_usd, superseded_at)
       values ($1, 'openai', 'org-1', '2026-01-02', 'cost', '', 'usage', $2, 30, $3, 1, 1, case when $4 then now() end)`,
      [orgId, source, at, what.tells === 'restated'],
    );
  return page;
}

const pagesOf = async (orgId: string) =>
  (await query('select id from billing_fetched_pages where org_id = $1', [orgId])).rows.map(({ id }) => id);

describe('of the versions of a page', () => {
  it('every one stays that a day rests on, or that closed one; the others are removed when they are old', async () => {
    const organization = await api.addOrganization();
    const { orgId } = organization;
    const id = await connect(organization);
    const kept = [
      await fetched(orgId, id, { seen: 400, tells: 'day' }),
      await fetched(orgId, id, { seen: 400, tells: 'restated' }),
      await fetched(orgId, id, { seen: 400, tells: 'nothing', closes: true }),
      await fetched(orgId, id, { seen: KEPT_DAYS - 1, tells: 'nothing' }),
    ];
    await fetched(orgId, id, { seen: KEPT_DAYS + 1, tells: 'nothing' });
    // Another connection's are its own matter.
    const other = await connect(organization);
    kept.push(await fetched(orgId, other, { seen: 400, tells: 'nothing' }));
    expect(await pruneFetchedPages(api.database.database, { orgId, id }, KEPT_DAYS)).toBe(1);
    expect((await pagesOf(orgId)).sort()).toEqual(kept.sort());
    const left = async (table: string) =>
      (await query(`select count(*)::int as n from ${table} where org_id = $1`, [orgId])).rows[0].n;
    expect(await left('sync_pages')).toBe(kept.length);
    expect(await left('sync_chunks')).toBe(kept.length);
    // An attempt whose days were replaced does not count; its page may still be evidence.
    expect(await left('billing_sources')).toBe(kept.length - 1);
    expect(await left('sync_runs')).toBe(kept.length + 1);
    expect(await pruneFetchedPages(api.database.database, { orgId, id }, KEPT_DAYS)).toBe(0);
  });

  it('that were fetched hour by hour a handful is left for each day', async () => {
    const organization = await api.addOrganization();
    const { orgId } = organization;
    const id = await connect(organization);
    for (let hour = 0; hour < 450; hour += 1)
      await fetched(orgId, id, { seen: 40, tells: hour === 449 ? 'day' : 'nothing' });
    expect(await pruneFetchedPages(api.database.database, { orgId, id }, KEPT_DAYS)).toBe(449);
    expect(await pagesOf(orgId)).toHaveLength(1);
  });
});
