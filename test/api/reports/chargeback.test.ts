import { parse } from 'csv-parse/sync';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { REQUEST_BUCKETS_MAX } from '../../../usecases/usage/chargeback.js';
import type { TestApi, TestOrganization } from '../../support/api.js';
import { importBill, runGaps } from '../../support/bills.js';
import { daysAgo } from '../../support/publishedDays.js';
import { startWorkingApi } from '../../support/workingApi.js';
import { anEvent, aTime, ingest, ingestMany, send } from '../support/requests.js';

const CHARGEBACK = '/api/v1/reports/chargeback';
// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas; tests read what they need
type Json = any;

let api: TestApi;
beforeAll(async () => {
  api = await startWorkingApi();
}, 300_000);
afterAll(() => api?.close());

async function ask(org: TestOrganization, query: string, key = org.adminKey): Promise<Json> {
  const { status, body } = await api.get(`${CHARGEBACK}?${query}`, key);
  expect(status, JSON.stringify(body)).toBe(200);
  return body;
}

const call = (over: object) =>
  anEvent({ input_tokens: 10, output_tokens: 5, cache_read: 3, cache_creation: 2, ...over });

const sumOf = (buckets: Json[], name: string): number =>
  buckets.reduce((sum, bucket) => sum + bucket[name], 0);

describe('the chargeback', () => {
  it('has a bucket for each value, calls without one in <unset>, and cents that sum to the total', async () => {
    const org = await api.addOrganization();
    const calls = [
      call({ cost_usd: 0.004, team_id: 'a', timestamp: aTime(1) }),
      call({ cost_usd: 0.004, team_id: 'b', timestamp: aTime(2) }),
      call({ cost_usd: 0.004, team_id: 'c', timestamp: aTime(3) }),
      call({ cost_usd: 1.003, timestamp: aTime(4) }),
    ];
    await ingest(api, calls, org.ingestKey);
    const body = await ask(org, 'dimension=team_id&period=7d');
    expect(body).toEqual({
      organization_id: `org_${org.orgId.replaceAll('-', '')}`,
      dimension: 'team_id',
      since: `${daysAgo(6)}T00:00:00Z`,
      until: `${daysAgo(0)}T23:59:59.999999Z`,
      count: 4,
      total_cost_cents: 102,
      total_cost_usd: 1.015,
      buckets: [
        { bucket: '<unset>', cost_cents: 100, cost_usd: 1.003, tokens: 20, rows: 1 },
        { bucket: 'a', cost_cents: 1, cost_usd: 0.004, tokens: 20, rows: 1 },
        { bucket: 'b', cost_cents: 1, cost_usd: 0.004, tokens: 20, rows: 1 },
        { bucket: 'c', cost_cents: 0, cost_usd: 0.004, tokens: 20, rows: 1 },
      ],
      allocation: 'none',
      allocated: null,
      as_of: null,
      adjustments: null,
    });
    expect((await ask(org, 'period=today')).buckets).toEqual([]);
    const summary = (await api.get('/api/v1/usage/summary?group_by=team', org.adminKey)).body;
    expect(body.total_cost_usd).toBe(summary.total_cost_usd);
  });

  it('sums to the same total by every dimension, keys of calls and of requests among them', async () => {
    const org = await api.addOrganization();
    const labels = { feature: 'f', project_id: 'p', user_id: 'u' };
    const calls = [1, 2, 3, 4, 5].map((at) =>
      call({ cost_usd: at / 7, timestamp: aTime(at), ...(at % 2 ? labels : {}) }),
    );
    await ingest(api, calls, org.ingestKey);
    const events = (await api.get('/api/v1/events', org.adminKey)).body.events as Json[];
    const dimensions = [
      'provider',
      'model',
      'api_key_hash',
      'team_id',
      'feature',
      'project_id',
      'user_id',
      'api_key_id',
    ];
    const totals = new Set<string>();
    for (const dimension of dimensions) {
      const body = await ask(org, `dimension=${dimension}`);
      totals.add(`${body.total_cost_cents} ${body.total_cost_usd}`);
      expect(sumOf(body.buckets, 'cost_cents'), dimension).toBe(body.total_cost_cents);
      expect(sumOf(body.buckets, 'rows')).toBe(5);
      const values = new Set(events.map((event) => event[dimension] ?? '<unset>'));
      expect(new Set(body.buckets.map(({ bucket }: Json) => bucket)), dimension).toEqual(values);
    }
    expect(totals.size).toBe(1);
  });

  it('lists the thousand most expensive requests, and all others as one bucket', async () => {
    const org = await api.addOrganization();
    const calls = Array.from({ length: REQUEST_BUCKETS_MAX + 3 }, (_, at) =>
      call({ cost_usd: 1 + at / 1_000, timestamp: aTime(at) }),
    );
    await ingestMany(api, calls, org.ingestKey);
    const body = await ask(org, 'dimension=api_key_hash');
    expect(body.count).toBe(REQUEST_BUCKETS_MAX + 1);
    expect(body.buckets.find(({ bucket }: Json) => bucket === '<other>')).toMatchObject({
      rows: 3,
      cost_usd: 3.003,
    });
    expect(sumOf(body.buckets, 'cost_cents')).toBe(body.total_cost_cents);
  });

  it('keeps closed months as they were closed, and follows as_of', async () => {
    const org = await api.addOrganization();
    const last = new Date();
    last.setUTCDate(0);
    const day = last.toISOString().slice(0, 10);
    const ofLast = `start_date=${day.slice(0, 7)}-01&end_date=${day}&dimension=team_id`;
    const old = (cost: number) => call({ cost_usd: cost, team_id: 't', timestamp: `${day}T01:00:00Z` });
    await ingest(api, [old(3)], org.ingestKey);
    expect((await api.post(`/api/v1/periods/${day.slice(0, 7)}/close`, {}, org.adminKey)).status).toBe(200);
    await ingest(api, [old(4)], org.ingestKey);
    expect(await ask(org, ofLast)).toMatchObject({
      total_cost_usd: 3,
      adjustments: { cost_usd: 0 },
      buckets: [{ bucket: 't', cost_cents: 300, rows: 1 }],
    });
    const now = await ask(org, `${ofLast}&as_of=2999-01-01`);
    expect(now).toMatchObject({ total_cost_usd: 7, adjustments: { cost_usd: 4 } });
    const byRequest = await ask(org, ofLast.replace('team_id', 'api_key_hash'));
    expect(byRequest.total_cost_cents).toBe(300);
    expect(sumOf(byRequest.buckets, 'cost_cents')).toBe(300);
  });
});

/** Long enough ago that no provider restates it. */
const DAY = daysAgo(40);
const BILL = `date,model,line_item,token_class,quantity,amount_usd,api_key
${DAY},gpt-6-sol,,input,2000000,4,
${DAY},gpt-6-luna,,input,1000000,1,
`;
/** A fee that no call can show. */
const FEE = JSON.stringify({
  object: 'page',
  data: [
    {
      object: 'bucket',
      start_time: Date.parse(daysAgo(39)) / 1_000,
      end_time: Date.parse(daysAgo(38)) / 1_000,
      results: [
        {
          object: 'organization.costs.result',
          amount: { value: 3, currency: 'usd' },
          line_item: 'web search tool calls',
          project_id: 'proj_1',
        },
      ],
    },
  ],
  has_more: false,
  next_page: null,
});

describe('allocation', () => {
  const WINDOW = `start_date=${DAY}&end_date=${daysAgo(30)}`;
  let org: TestOrganization;
  beforeAll(async () => {
    org = await api.addOrganization();
    const calls = (count: number, team?: string) =>
      Array.from({ length: count }, (_, at) =>
        anEvent({
          model: 'gpt-6-sol',
          timestamp: `${DAY}T12:00:0${at}Z`,
          input_tokens: 100_000,
          output_tokens: 0,
          team_id: team,
        }),
      );
    await ingest(api, [...calls(6, 'a'), ...calls(2, 'b'), ...calls(2)], org.ingestKey);
    await importBill(api, BILL, { provider: 'openai', account: 'org-1' }, org.adminKey);
    await importBill(api, FEE, { provider: 'openai', account: 'org-1' }, org.adminKey);
    expect((await runGaps(api, '?period=90d', undefined, org.adminKey)).status).toBe('succeeded');
  }, 200_000);

  const shown = (body: Json) =>
    body.buckets.map((bucket: Json) => [
      bucket.bucket,
      bucket.cost_cents,
      bucket.cost_usd,
      bucket.allocated_usd,
    ]);

  it('shares out what belongs to no bucket, as the settings say or as the request asks', async () => {
    const query = `dimension=team_id&${WINDOW}`;
    expect(await ask(org, query)).toMatchObject({ total_cost_cents: 200, allocated: null });
    const headers = { 'content-type': 'application/json' };
    const settings = JSON.stringify({ chargeback_allocation: 'by_share' });
    const changed = await send(api, {
      method: 'PATCH',
      path: '/api/v1/organization/settings',
      key: org.adminKey,
      headers,
      body: settings,
    });
    expect(changed.status).toBe(200);
    const shared = await ask(org, query);
    expect(shared).toMatchObject({
      allocation: 'by_share',
      total_cost_cents: 800,
      total_cost_usd: 8,
      allocated: { unset_usd: 0.4, unobserved_usd: 3, fees_usd: 3, not_compared_usd: 0 },
    });
    expect(shown(shared)).toEqual([
      ['a', 600, 1.2, 4.8],
      ['b', 200, 0.4, 1.6],
      ['<unset>', 0, 0.4, -0.4],
    ]);
    expect(shown(await ask(org, `${query}&allocation=even`))).toEqual([
      ['a', 440, 1.2, 3.2],
      ['b', 360, 0.4, 3.2],
      ['<unset>', 0, 0.4, -0.4],
    ]);
    expect((await ask(org, `${query}&allocation=none`)).total_cost_cents).toBe(200);
  });

  it('charges what the bill names to the provider or the model that it names', async () => {
    const byModel = await ask(org, `dimension=model&allocation=even&${WINDOW}`);
    expect(shown(byModel)).toEqual([
      ['gpt-6-sol', 400, 2, 2],
      ['web search tool calls', 300, 0, 3],
      ['gpt-6-luna', 100, 0, 1],
    ]);
    expect(shown(await ask(org, `dimension=provider&allocation=by_share&${WINDOW}`))).toEqual([
      ['openai', 800, 2, 6],
    ]);
  });

  it('is not for keys of a workspace, which see their own calls alone', async () => {
    const workspaceId = await api.addWorkspace(org.orgId, 'p');
    const key = await api.addKey(org.orgId, 'member', { workspaceId });
    expect(await ask(org, 'dimension=team_id', key)).toMatchObject({ buckets: [], allocation: 'none' });
    const refused = await api.get(`${CHARGEBACK}?allocation=even`, key);
    expect([refused.status, refused.body.code]).toEqual([403, 'forbidden']);
  });
});

describe('format=csv', () => {
  it('has the buckets of the JSON answer, exact, under the name of the window', async () => {
    const org = await api.addOrganization();
    const calls = [
      call({ cost_usd: 0.0012345, team_id: '=1+1', timestamp: aTime(1) }),
      call({ cost_usd: 0.02, team_id: 'b,c', timestamp: aTime(2) }),
    ];
    await ingest(api, calls, org.ingestKey);
    const query = `dimension=team_id&start_date=${daysAgo(3)}&end_date=${daysAgo(0)}&period=today`;
    const json = await ask(org, query);
    const answer = await send(api, { path: `${CHARGEBACK}?${query}&format=csv`, key: org.adminKey });
    expect(answer.headers['content-disposition']).toBe(
      `attachment; filename="chargeback-team_id-${daysAgo(3)}-${daysAgo(0)}.csv"`,
    );
    expect(answer.headers['content-type']).toBe('text/csv; charset=utf-8; header=present');
    expect(answer.bytes.toString().split('\r\n')[0]).toBe('team_id,cost_cents,cost_usd,tokens,rows');
    const rows = parse(answer.bytes, { columns: true }) as Json[];
    expect(rows).toEqual([
      { team_id: 'b,c', cost_cents: '2', cost_usd: '0.02', tokens: '20', rows: '1' },
      { team_id: "'=1+1", cost_cents: '0', cost_usd: '0.0012345', tokens: '20', rows: '1' },
    ]);
    expect(rows.map((row) => Number(row.cost_cents))).toEqual(
      json.buckets.map((one: Json) => one.cost_cents),
    );
    const allocated = await send(api, {
      path: `${CHARGEBACK}?format=csv&allocation=even`,
      key: org.adminKey,
    });
    expect(allocated.bytes.toString().split('\r\n')[0]).toBe(
      'model,cost_cents,cost_usd,tokens,rows,allocated_usd',
    );
  });
});

it.each([
  ['dimension=session', 'dimension'],
  ['dimension=team', 'dimension'],
  ['period=1d', 'period'],
  ['format=xml', 'format'],
  ['allocation=all', 'allocation'],
  ['start_date=2026-01-01', 'end_date'],
  ['end_date=2026-01-01', 'start_date'],
  ['start_date=2026-01-02&end_date=2026-01-01', 'start_date'],
  ['start_date=2026-02-30&end_date=2026-03-01', 'start_date'],
  ['start_date=2026-02-01T00:00:00Z&end_date=2026-03-01', 'start_date'],
  ['start_date=2025-01-01&end_date=2026-01-02', 'end_date'],
])('%s is 400 and names %s', async (query, field) => {
  const { status, body } = await api.get(`${CHARGEBACK}?${query}`);
  expect([status, body.errors?.[0]?.field]).toEqual([400, field]);
});

it('takes a window of 366 days', async () => {
  expect((await api.get(`${CHARGEBACK}?start_date=2025-01-01&end_date=2026-01-01`)).status).toBe(200);
});
