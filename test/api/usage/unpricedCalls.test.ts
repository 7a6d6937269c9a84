import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { foldAll } from '../../db/support/compareTotals.js';
import { testSeed } from '../../fakes/seededRandom.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { propertyRuns } from '../../support/propertyRuns.js';
import { anEvent, aTime, ingest } from '../support/requests.js';

// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
type Json = any;

const SEED = testSeed();
const RUNS = propertyRuns(2);
const PROJECT = 'search';
const NO_USAGE = { input_tokens: undefined, output_tokens: undefined };

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
}, 300_000);
afterAll(() => api?.close());

const sumOf = (items: Json[], name: string): number => items.reduce((sum, item) => sum + item[name], 0);

/** Every count of unpriced calls in the API, by its path. */
async function countsOf(key: string): Promise<Record<string, number>> {
  const get = async (path: string): Promise<Json> => {
    const { status, body } = await api.get(path, key);
    expect(status, path).toBe(200);
    return body;
  };
  const counts: Record<string, number> = {};
  for (const group of ['model', 'session', 'project', 'user', 'provider', 'team', 'feature']) {
    const summary = await get(`/api/v1/usage/summary?group_by=${group}`);
    counts[`summary by ${group}`] = summary.unpriced_calls;
    counts[`breakdown by ${group}`] = sumOf(summary.breakdown, 'unpriced_calls');
    const { records } = await get(`/api/v1/usage/records?group_by=${group}`);
    counts[`records by ${group}`] = sumOf(records, 'unpriced_calls');
  }
  for (const dimension of ['model', 'provider', 'team', 'feature', 'session', 'day'])
    counts[`dashboard by ${dimension}`] = sumOf(
      (await get(`/api/v1/dashboard/breakdown/${dimension}`)).items,
      'unpriced_calls',
    );
  counts['labels of a team'] =
    sumOf((await get('/api/v1/dashboard/breakdown/model?team_id=a')).items, 'unpriced_calls') +
    sumOf((await get('/api/v1/dashboard/breakdown/model?team_id=b')).items, 'unpriced_calls');
  counts['ingest health'] = sumOf((await get('/api/v1/ingest/health')).sources, 'unpriced');
  const { models, unmetered } = await get('/api/v1/pricing/unpriced');
  counts['models without a price, and calls without usage'] =
    sumOf(models, 'calls') + sumOf(unmetered, 'calls');
  return counts;
}

async function listUnpriced(key: string): Promise<Json[]> {
  const { events } = (await api.get('/api/v1/events?limit=1000', key)).body;
  return events.filter((event: Json) => event.cost_source === 'unpriced');
}

it('counts as unpriced exactly the events marked so, in every total, folded or not, of all and of one project', async () => {
  const call = fc.record({
    model: fc.constantFrom('gpt-4o', 'a-model-without-a-price'),
    status: fc.constantFrom('ok', 'cancelled', 'error', 'blocked'),
    hasUsage: fc.boolean(),
    team_id: fc.constantFrom('a', 'b'),
    project_id: fc.constantFrom(PROJECT, undefined),
    session_id: fc.constantFrom('s-1', 's-2'),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 20 }), async (calls) => {
      const org = await api.addOrganization();
      const workspaceId = await api.addWorkspace(org.orgId, PROJECT);
      const workspaceKey = await api.addKey(org.orgId, 'member', { workspaceId });
      await ingest(
        api,
        calls.map(({ hasUsage, ...labels }, at) =>
          anEvent({ ...labels, timestamp: aTime(at), ...(hasUsage ? {} : NO_USAGE) }),
        ),
        org.ingestKey,
      );
      for (const isFolded of [false, true]) {
        if (isFolded) await foldAll(api.database.superuser, org.orgDb);
        for (const key of [org.adminKey, workspaceKey]) {
          const { length } = await listUnpriced(key);
          const counts = await countsOf(key);
          expect(counts).toEqual(Object.fromEntries(Object.keys(counts).map((name) => [name, length])));
        }
      }
    }),
    { seed: SEED, numRuns: RUNS },
  );
});

it('counts five calls without a known cost as five, and lists those without usage separately', async () => {
  const org = await api.addOrganization();
  await ingest(
    api,
    [
      ...[1, 2, 3].map((at) => anEvent({ model: 'a-model-without-a-price', timestamp: aTime(at) })),
      ...[4, 5].map((at) => anEvent({ timestamp: aTime(at), ...NO_USAGE })),
      anEvent({ timestamp: aTime(6), status: 'error', ...NO_USAGE }),
      anEvent({ timestamp: aTime(7), cost_usd: 0.5, ...NO_USAGE }),
    ],
    org.ingestKey,
  );
  const { body } = await api.get('/api/v1/usage/summary', org.adminKey);
  expect(body).toMatchObject({ call_count: 7, unpriced_calls: 5, total_cost_usd: 0.5 });
  expect(await listUnpriced(org.adminKey)).toHaveLength(5);
  const unpriced = (await api.get('/api/v1/pricing/unpriced', org.adminKey)).body;
  expect(unpriced.models.map(({ model, calls }: Json) => [model, calls])).toEqual([
    ['a-model-without-a-price', 3],
  ]);
  // The call that reported its cost sent no usage either.
  expect(unpriced.unmetered.map(({ model, calls }: Json) => [model, calls])).toEqual([['gpt-4o', 3]]);
});

it('counts the same in a closed month and in what came since', async () => {
  const org = await api.addOrganization();
  const lastMonth = new Date(Date.now());
  lastMonth.setUTCDate(0);
  const month = lastMonth.toISOString().slice(0, 7);
  const inMonth = (day: number, more: object) =>
    anEvent({ timestamp: `${month}-0${day}T12:00:00Z`, ...more });
  const unknown = { model: 'a-model-without-a-price' };
  await ingest(api, [inMonth(1, unknown), inMonth(2, NO_USAGE), inMonth(3, {})], org.ingestKey);
  expect((await api.post(`/api/v1/periods/${month}/close`, {}, org.adminKey)).status).toBeLessThan(300);
  await ingest(api, [inMonth(4, NO_USAGE), inMonth(5, unknown), inMonth(6, {})], org.ingestKey);
  for (const isFolded of [false, true]) {
    if (isFolded) await foldAll(api.database.superuser, org.orgDb);
    const { body } = await api.get(`/api/v1/periods/${month}`, org.adminKey);
    expect([body.frozen.own, body.adjustments, body.current].map((one) => one.unpriced_calls)).toEqual([
      2, 2, 4,
    ]);
  }
});
