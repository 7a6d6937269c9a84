import { afterAll, beforeAll, expect, it } from 'vitest';
import { unpricedCounts } from '../../../db/migrations/0041_unpriced_counts.js';
import { MIGRATIONS } from '../../../db/migrations/index.js';
import { anEvent, aSpan, aTrace, ingest } from '../../api/support/requests.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { foldAll } from '../support/compareTotals.js';

const UNKNOWN = { model: 'a-model-without-a-price' };
const NO_USAGE = { input_tokens: undefined, output_tokens: undefined };
const PROJECT = { project_id: 'search' };

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
}, 300_000);
afterAll(() => api?.close());

/** The stored counts of an organization, by table. */
async function storedOf({ orgId }: TestOrganization): Promise<Record<string, number>> {
  const tables = {
    usage_rollups: `dimension = 'session'`,
    adjustment_rollups: `dimension = 'source'`,
    label_cells: 'true',
    adjustment_labels: 'true',
    project_cells: 'true',
    project_adjustments: 'true',
    period_totals: `part = 'own'`,
    billing_cells: 'true',
  };
  const counts: Record<string, number> = {};
  for (const [table, where] of Object.entries(tables)) {
    const { rows } = await api.database.superuser.query<{ calls: string }>(
      `select coalesce(sum(unpriced), 0) as calls from ${table} where org_id = $1 and ${where}`,
      [orgId],
    );
    counts[table] = Number(rows[0]?.calls);
  }
  return counts;
}

it('stored counts of unpriced calls have calls without usage in them from the migration on', async () => {
  const org = await api.addOrganization();
  const lastMonth = new Date();
  lastMonth.setUTCDate(0);
  const month = lastMonth.toISOString().slice(0, 7);
  const inMonth = (day: number, more: object) =>
    anEvent({ timestamp: `${month}-0${day}T12:00:00Z`, ...more });
  const today = (more: object) => anEvent({ timestamp: new Date().toISOString(), ...more });
  await ingest(
    api,
    [
      inMonth(1, { ...UNKNOWN, ...PROJECT }),
      inMonth(2, { ...NO_USAGE, ...PROJECT }),
      inMonth(3, { ...UNKNOWN, status: 'error' }),
      inMonth(4, {}),
    ],
    org.ingestKey,
  );
  expect((await api.post(`/api/v1/periods/${month}/close`, {}, org.adminKey)).status).toBeLessThan(300);
  // Late calls of the closed month, calls of the open one, and a call whose usage came with its second report.
  await ingest(
    api,
    [
      inMonth(5, { ...NO_USAGE, ...PROJECT }),
      inMonth(6, { ...UNKNOWN, ...PROJECT }),
      today(NO_USAGE),
      today(UNKNOWN),
      today({ status: 'error', ...NO_USAGE }),
    ],
    org.ingestKey,
  );
  const id = { 'gen_ai.response.id': 'reported-twice' };
  const report = (span: object) => api.post('/api/v1/ingest/trace', aTrace(span), org.ingestKey);
  const first = aSpan({
    ...id,
    'gen_ai.usage.input_tokens': undefined,
    'gen_ai.usage.output_tokens': undefined,
  });
  expect((await report(first)).status).toBe(202);
  await foldAll(api.database.superuser, org.orgDb);
  expect((await report(aSpan(id))).status).toBe(202);
  await foldAll(api.database.superuser, org.orgDb);
  // Not folded yet: no stored count includes it.
  await ingest(api, [today(NO_USAGE)], org.ingestKey);

  const unpricedOf = async () =>
    (await api.get(`/api/v1/usage/summary?from=${month}-01`, org.adminKey)).body.unpriced_calls;
  const now = {
    usage_rollups: 5,
    adjustment_rollups: 2,
    label_cells: 5,
    adjustment_labels: 2,
    project_cells: 2,
    project_adjustments: 2,
    period_totals: 3,
    billing_cells: 4,
  };
  expect(await storedOf(org)).toEqual(now);
  expect(await unpricedOf()).toBe(8);
  const client = await api.database.superuser.connect();
  try {
    const later = MIGRATIONS.slice(MIGRATIONS.indexOf(unpricedCounts)).toReversed();
    for (const { down } of later) await client.query(`begin; ${down}; commit`);
    // As an earlier version counted them: a model without a price, but no failures and no calls without usage.
    expect(await storedOf(org)).toEqual({
      usage_rollups: 2,
      adjustment_rollups: 1,
      label_cells: 2,
      adjustment_labels: 1,
      project_cells: 1,
      project_adjustments: 1,
      period_totals: 1,
      billing_cells: 3,
    });
    for (const { up } of later.toReversed()) await client.query(`begin; ${up}; commit`);
  } finally {
    client.release();
  }
  expect(await storedOf(org)).toEqual(now);
  expect(await unpricedOf()).toBe(8);
});
