import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { OrgDb, type SqlValue } from '../../../db/orgDb.js';
import { listCoverage } from '../../../db/reconciliation/coverage.js';
import {
  countPublishedBuckets,
  listMatches,
  listPublishedBuckets,
  sumMatches,
  sumMonth,
} from '../../../db/reconciliation/gapExplorer.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';

let database: TestDatabase;
let orgDb: OrgDb;
beforeAll(async () => {
  database = await createTestDatabase();
  orgDb = new OrgDb(database.database, randomUUID());
  await storeHistory();
}, 300_000);
afterAll(() => database?.close());

const DAYS = { fromDay: '2026-10-25', toDay: '2026-11-01' };
const WINDOW = { ...DAYS, provider: null };
const FILTER = {
  ...DAYS,
  ...{ provider: undefined, accountId: undefined, grade: undefined, matchStatus: undefined },
};
const PAGE = { limit: 100, offset: 0, after: undefined };
const NONE = { flaggedOnly: false, unmatchedOnly: false };

const READS: Record<string, (inside: OrgDb) => Promise<unknown>> = {
  'a page of matches': (inside) => listMatches(inside, FILTER, PAGE),
  'the totals of matches': (inside) => sumMatches(inside, FILTER),
  'a page of the gap explorer': (inside) =>
    listPublishedBuckets(inside, { ...WINDOW, hourly: false }, NONE, PAGE),
  'a page of hours': (inside) => listPublishedBuckets(inside, { ...WINDOW, hourly: true }, NONE, PAGE),
  'the counts of the gap explorer': (inside) => countPublishedBuckets(inside, { ...WINDOW, hourly: false }),
  'the summary of a month': (inside) => sumMonth(inside, DAYS.fromDay, DAYS.toDay),
  coverage: (inside) => listCoverage(inside, 'day', FILTER),
};

/** A hundred days of two hundred models, published by one run; the test reads one week of them. */
async function storeHistory(): Promise<void> {
  const { superuser } = database;
  const values = [orgDb.orgId, randomUUID()];
  await superuser.query(
    `insert into gap_runs (org_id, id, period, status, window_start, window_end, finished_at) values ($1, $2, '90d', 'succeeded', now(), now(), now())`,
    values,
  );
  await superuser.query(
    `insert into gap_buckets (org_id, run_id, width, bucket, provider, provider_account_id, model, match_status, grade, visibility, provisional,
       flagged, provider_cost_usd, our_cost_usd, matched_usd, cells, waterfall)
     select $1, $2, 'day', timestamptz '2026-10-31T00:00:00Z' - on_day * interval '1 day', 'openai', 'org-1', 'model-' || model, 'matched', 'HIGH', 'V3',
       false, false, 1, 1, 1, '[]', '[]' from generate_series(0, 99) on_day, generate_series(1, 200) model`,
    values,
  );
  await superuser.query(
    `insert into gap_published (org_id, provider, provider_account_id, day, run_id, counted_sources)
     select distinct org_id, provider, provider_account_id, (bucket at time zone 'UTC')::date, run_id, 'x' from gap_buckets where org_id = $1 and run_id = $2`,
    values,
  );
  await superuser.query('analyze gap_buckets, gap_published');
}

/** The query plans of a read. */
async function plansOf(read: (inside: OrgDb) => Promise<unknown>): Promise<string> {
  const plans: string[] = [];
  await orgDb.transaction(async (inside) => {
    const explaining = Object.create(inside, {
      rows: {
        value: async (sql: string, values: SqlValue[]) => {
          const rows = await inside.rows<Record<string, string>>(`explain ${sql}`, values);
          plans.push(...rows.flatMap((row) => Object.values(row)));
          return [];
        },
      },
    }) as OrgDb;
    await read(explaining);
  });
  return plans.join('\n');
}

describe('reading the buckets of published days', () => {
  it.each(Object.entries(READS))(
    '%s looks up those of its days, under row-level security, without a scan of all',
    async (_, read) => {
      const plan = await plansOf(read);
      const lookups = plan
        .split('\n')
        .filter((line) => line.includes('Index Cond:') && /\bbucket (=|>=)/.test(line));
      expect(lookups.length, plan).toBeGreaterThan(0);
    },
  );
});
