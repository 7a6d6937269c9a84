import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listSourceDifferences } from '../../db/billing/billCoverage.js';
import { listComparedModels, listFocusCharges } from '../../db/billing/focusCharges.js';
import { sumExplainedDays, sumFindingDays } from '../../db/claims/financialSums.js';
import { listEvents, streamEventLines } from '../../db/events/events.js';
import { listObservedSince } from '../../db/events/observedCalls.js';
import type { OrgDb } from '../../db/orgDb.js';
import { streamReplayedCalls } from '../../db/policies/replayedCalls.js';
import { loadPriceBook } from '../../db/pricing/prices.js';
import { listBilledKeyDays, listCoverage } from '../../db/reconciliation/coverage.js';
import {
  countPublishedBuckets,
  listComparedBuckets,
  listMatchDisputes,
  listMatches,
  listMatchFindings,
  listPublishedBuckets,
  sumMatches,
  sumMonth,
} from '../../db/reconciliation/gapExplorer.js';
import { listCountedDays, listInvoiceTies, listPublishedDays } from '../../db/reconciliation/matchInputs.js';
import type { PriceBook } from '../../domain/pricing/priceBook.js';
import { listSuspectKeys } from '../../usecases/billing/providerKeys.js';
import { auditBills } from '../../usecases/reconciliation/billAudit.js';
import { readMonthStatement } from '../../usecases/reconciliation/monthStatement.js';
import { startTestApi, type TestApi, type TestOrganization } from '../support/api.js';
import { addBill, addCalls, dayAt, gapRunsOf } from '../support/incrementalRuns.js';
import { explainRead, type Touched } from './support/explainedReads.js';
import { withoutAutovacuum } from './support/withoutAutovacuum.js';

/** Reads right after a bulk write, on tables that were not analyzed yet. */

const DAYS = 16;
const FEW = 5;
const MANY = 2 * FEW;
/**
 * Largest growth at twice the data; quadratic growth would be 4. The margin covers indexes that are equally good while
 * a table has a page or two.
 */
const GROWTH_MAX = 3.3;
const NOW_MICROS = BigInt(Date.parse('2026-10-29T12:00:00Z')) * 1_000n;

let api: TestApi;
let book: PriceBook;
let few: TestOrganization;
let many: TestOrganization;

/** Bills and calls of this many accounts, compared and explained by a gap run. */
async function comparedAccounts(accounts: number): Promise<TestOrganization> {
  const organization = await api.addOrganization();
  const days = Array.from({ length: DAYS }, (_, at) => dayAt(at));
  for (let at = 0; at < accounts; at += 1) {
    const account = `account-${at}`;
    await addBill(api, organization.orgId, { account, days, wrong: days.slice(8, 12) });
    // Another copy of some days, which does not count and differs.
    await addBill(api, organization.orgId, { account, days: days.slice(0, 3), rank: 10, times: 2 });
    for (const day of days) await addCalls(api, organization.orgId, { day, account, apiKey: `key-${at}` });
  }
  // Keys that no entry and no call knows.
  await api.database.superuser.query(
    `update billing_rows set api_key = 'stray-' || provider_account_id where org_id = $1 and day = $2`,
    [organization.orgId, dayAt(1)],
  );
  const runs = await gapRunsOf(api, () => NOW_MICROS);
  expect(await runs.run(organization)).toMatchObject({ units: DAYS, run: { status: 'succeeded' } });
  return organization;
}

beforeAll(async () => {
  api = await startTestApi();
  await withoutAutovacuum(api.database);
  book = await loadPriceBook(api.database.database);
  few = await comparedAccounts(FEW);
  many = await comparedAccounts(MANY);
}, 600_000);

afterAll(() => api?.close());

const MONTH = { fromDay: '2026-10-01', toDay: '2026-11-01' };
const WINDOW = { ...MONTH, provider: null };
const FILTER = {
  ...MONTH,
  ...{ provider: undefined, accountId: undefined, grade: undefined, matchStatus: undefined },
};
const SCOPE = { provider: 'openai' as const, day: '2026-10-10' };
const PAGE = { limit: 1_000, offset: 0, after: undefined };
const NONE = { flaggedOnly: false, unmatchedOnly: false };

const READS: Record<string, (orgDb: OrgDb) => Promise<unknown>> = {
  'the statement of a month': (orgDb) =>
    readMonthStatement(orgDb, MONTH.fromDay, NOW_MICROS, { agreed: book, list: book.list }),
  'the compared buckets of a month': (orgDb) => listComparedBuckets(orgDb, MONTH),
  'the summary of a month': (orgDb) => sumMonth(orgDb, MONTH.fromDay, MONTH.toDay),
  'a page of the gap explorer': (orgDb) =>
    listPublishedBuckets(orgDb, { ...WINDOW, hourly: false }, NONE, PAGE),
  'a page of hours': (orgDb) => listPublishedBuckets(orgDb, { ...WINDOW, hourly: true }, NONE, PAGE),
  'the counts of the gap explorer': (orgDb) => countPublishedBuckets(orgDb, { ...WINDOW, hourly: false }),
  'a page of matches': (orgDb) => listMatches(orgDb, FILTER, PAGE),
  'the totals of matches': (orgDb) => sumMatches(orgDb, FILTER),
  'the findings and disputes of matches': async (orgDb) => {
    const days = Array.from({ length: DAYS }, (_, at) => ({
      ...{ provider: 'openai', model: 'gpt-4o-mini', accountId: 'account-0' },
      day: dayAt(at),
    }));
    await listMatchFindings(orgDb, days);
    await listMatchDisputes(orgDb, days);
  },
  'coverage by day': (orgDb) => listCoverage(orgDb, 'day', FILTER),
  'coverage by key': (orgDb) => listBilledKeyDays(orgDb, FILTER),
  'the audit of a provider': (orgDb) =>
    auditBills(
      orgDb,
      { provider: 'openai', fromDay: null, toDay: null, nowMicros: NOW_MICROS },
      { agreed: book, list: book.list },
    ),
  'a day of the FOCUS export': async (orgDb) => {
    await listFocusCharges(orgDb, SCOPE);
    await listComparedModels(orgDb, SCOPE);
  },
  'the differences between copies': (orgDb) => listSourceDifferences(orgDb, { ...WINDOW, limit: 200 }),
  'the ties of invoices': (orgDb) => listInvoiceTies(orgDb, WINDOW),
  'what a gap run decides by': async (orgDb) => {
    await listCountedDays(orgDb, WINDOW);
    await listPublishedDays(orgDb, WINDOW);
    await listObservedSince(orgDb, 'openai');
  },
  'the suspect keys': (orgDb) => listSuspectKeys(orgDb, { ...WINDOW, limit: 200 }),
  'the financial summary': async (orgDb) => {
    await sumFindingDays(orgDb, { fromDay: null, toDay: null });
    await sumExplainedDays(orgDb, { fromDay: '2026-10-01', toDay: '2026-10-31' });
  },
};

const shown = ({ rows, statements }: Touched) =>
  [`${rows} rows`, ...statements.slice(0, 3).map((one) => `${one.rows}: ${one.sql}`)].join('\n');

describe('on a database without statistics', () => {
  it('nothing has been analyzed', async () => {
    const { rows } = await api.database.superuser.query(
      `select relname from pg_class where relname in ('billing_days', 'billing_rows', 'gap_buckets', 'gap_published') and reltuples >= 0`,
    );
    expect(rows).toEqual([]);
  });

  it.each(Object.entries(READS))('%s touches rows in proportion to the data', async (_, read) => {
    const [small, large] = [await explainRead(few.orgDb, read), await explainRead(many.orgDb, read)];
    expect(small.rows).toBeGreaterThan(0);
    expect(large.rows / small.rows, shown(large)).toBeLessThan(GROWTH_MAX);
  });
});

describe('on events without statistics', () => {
  const EVENTS = 20_000;
  const PAGE_EVENTS = 100;
  /** A page passes through a few steps of a plan, each of which may touch it. */
  const STEPS_MAX = 8;
  let org: TestOrganization;

  beforeAll(async () => {
    org = await api.addOrganization();
    await api.database.superuser.query(
      `insert into events (org_id, timestamp, id, end_at, kind, status, provider, billed_by, model, api_key_hash, api_key_id, session_id, is_batch,
         input_tokens, output_tokens, cache_read, cache_creation, reasoning_tok, cached_tok, unmetered, cost_usd, computed_cost_usd, cost_source,
         usage_source, input_semantics, told_classes, biller_from_host, duration_ms, stop_reason, service_name, scope_name)
       select $1, at, gen_random_uuid(), at, 'otel_span', 'ok', 'openai', 'openai', 'gpt-4o-mini', n::text, 'key_test', '', false, 1, 1, 0, 0, 0, 0,
         false, 1, 1, 'computed', 'otel', 'inclusive', 3, true, 1000, 'stop', '', ''
       from generate_series(1, ${EVENTS}) n cross join lateral (select timestamptz '2026-08-01' + n * interval '6 minutes' as at) t`,
      [org.orgId],
    );
  });

  const first = async (pages: AsyncGenerator<unknown>) => {
    await pages.next();
    await pages.return(undefined);
  };
  const window = {
    fromMicros: BigInt(Date.parse('2026-08-01T00:00:00Z')) * 1_000n,
    toMicros: BigInt(Date.parse('2026-11-01T00:00:00Z')) * 1_000n,
  };

  it.each<[string, number, (orgDb: OrgDb) => Promise<unknown>]>([
    [
      'a page of the list',
      PAGE_EVENTS,
      (orgDb) => listEvents(orgDb, window, { limit: PAGE_EVENTS, offset: 0 }, true),
    ],
    [
      'a partition of the export',
      // The next one is read ahead.
      2 * 500,
      (orgDb) => first(streamEventLines(orgDb, { ...window, snapshotMicros: window.toMicros * 2n }, true)),
    ],
    [
      'a page of a savings run',
      2 * PAGE_EVENTS,
      (orgDb) => first(streamReplayedCalls(orgDb, window, PAGE_EVENTS)),
    ],
  ])('%s reads its own events and not all', async (_, events, read) => {
    const touched = await explainRead(org.orgDb, read);
    expect(touched.rows, shown(touched)).toBeLessThan(STEPS_MAX * events);
  });
});
