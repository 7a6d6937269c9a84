import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { USAGE_GROUPS_MAX } from '../../../api/usage/usage/wire.js';
import { foldUsage } from '../../../db/usage/rollups.js';
import { picoFromNumber } from '../../../domain/money.js';
import { foldAll } from '../../db/support/compareTotals.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { anEvent, aTime, ingest } from '../support/requests.js';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

interface Item {
  key: string;
  cost_usd: number;
  input_tokens: number;
  output_tokens: number;
  call_count: number;
  unpriced_calls: number;
}

async function get(org: TestOrganization, path: string) {
  const { status, body } = await api.get(path, org.adminKey);
  expect(status, `${path} ${JSON.stringify(body)}`).toBe(200);
  return body;
}

const summary = (org: TestOrganization, query = '') => get(org, `/api/v1/usage/summary${query}`);

/** Adds JSON dollars exactly: a float sum would hide a missing pico-dollar. */
function addUsd(amounts: readonly number[]): number {
  const sum = amounts.reduce((total, amount) => total + (picoFromNumber(amount) ?? 0n), 0n);
  return Number(sum) / 1e12;
}

async function anOrganization(...events: object[]): Promise<TestOrganization> {
  const org = await api.addOrganization();
  if (events.length > 0) await ingest(api, events, org.ingestKey);
  return org;
}

describe('the usage summary', () => {
  it('covers the last 30 days by model by default, and states these defaults', async () => {
    const old = new Date(Date.now() - 30 * 86_400_000 - 600_000).toISOString();
    const young = new Date(Date.now() - 30 * 86_400_000 + 600_000).toISOString();
    const org = await anOrganization(
      anEvent({ timestamp: young, request_id: 'in' }),
      anEvent({ timestamp: old, request_id: 'out' }),
      anEvent({ model: 'gpt-4o-mini', input_tokens: 1_000, output_tokens: 0 }),
    );
    const before = Date.now();
    const body = await summary(org);
    expect(body).toMatchObject({
      group_by: 'model',
      call_count: 2,
      total_cost_usd: 0.0009,
      total_input_tokens: 1_100,
      total_output_tokens: 50,
      unpriced_calls: 0,
    });
    expect(body.breakdown.map(({ key, call_count, cost_usd }: Item) => [key, call_count, cost_usd])).toEqual([
      ['gpt-4o', 1, 0.00075],
      ['gpt-4o-mini', 1, 0.00015],
    ]);
    expect(Date.parse(body.to)).toBeGreaterThanOrEqual(before);
    expect(Date.parse(body.to)).toBeLessThanOrEqual(Date.now());
    expect(Math.abs(Date.parse(body.to) - Date.parse(body.from) - 30 * 86_400_000)).toBeLessThan(10);
  });

  it('is all zeros without events', async () => {
    const body = await summary(await anOrganization());
    expect(body).toMatchObject({ call_count: 0, total_cost_usd: 0, total_input_tokens: 0, breakdown: [] });
  });

  it('holds a call right after its 202, whatever is folded', async () => {
    const org = await anOrganization();
    for (let index = 1; index <= 12; index += 1) {
      await ingest(api, [anEvent({ timestamp: new Date().toISOString() })], org.ingestKey);
      expect((await summary(org)).call_count).toBe(index);
      if (index % 3 === 0) await foldUsage(api.database.database, org.orgId);
    }
    const today = new Date().toISOString().slice(0, 10);
    expect((await summary(org, `?from=${today}&to=${today}`)).call_count).toBe(12);
  });

  it('holds an acknowledged call of a client whose clock is ahead', async () => {
    const org = await anOrganization(anEvent({ timestamp: new Date(Date.now() + 60_000).toISOString() }));
    expect((await summary(org)).call_count).toBe(1);
    const items = (await get(org, '/api/v1/dashboard/breakdown/model')).items;
    expect(items.map((item: Item) => item.call_count)).toEqual([1]);
    expect((await summary(org, `?to=${new Date().toISOString()}`)).call_count).toBe(0);
  });

  it('foots: the breakdown sums to the totals to the last digit, with reported, computed and unpriced separate', async () => {
    const events = [
      anEvent({ cost_usd: 0.1 }),
      anEvent({ cost_usd: 0.2 }),
      anEvent({ cost_usd: 0.000000000001 }),
      anEvent({ model: 'gpt-4o-mini', input_tokens: 1, output_tokens: 1 }),
      anEvent({ model: 'a-model-without-a-price' }),
      anEvent({ model: 'a-model-without-a-price', cost_usd: 0.29 }),
      anEvent({ is_batch: true }),
      anEvent({ status: 'error', input_tokens: undefined, output_tokens: undefined }),
      anEvent({ input_tokens: undefined, output_tokens: undefined }),
    ];
    const org = await anOrganization(...events);
    const body = await summary(org);
    const breakdown = body.breakdown as Item[];
    expect(addUsd(breakdown.map((item) => item.cost_usd))).toBe(body.total_cost_usd);
    expect(breakdown.reduce((sum, item) => sum + item.call_count, 0)).toBe(body.call_count);
    expect(breakdown.reduce((sum, item) => sum + item.input_tokens, 0)).toBe(body.total_input_tokens);
    // 0.1 + 0.2 + 1e-12 + 0.29 reported; gpt-4o-mini 1 × 0.15 + 1 × 0.6 and the batch at half, computed.
    expect(body.reported_cost_usd).toBe(0.590000000001);
    const computedOnly = 0.00000075 + 0.000375;
    expect(body.total_cost_usd).toBe(addUsd([0.590000000001, computedOnly]));
    expect(body.computed_cost_usd).toBe(addUsd([0.00075, 0.00075, 0.00075, computedOnly]));
    // One call has a model without a price, the other has no usage.
    expect(body.unpriced_calls).toBe(2);
    expect(breakdown.find((item) => item.key === 'a-model-without-a-price')).toMatchObject({
      call_count: 2,
      unpriced_calls: 1,
    });
    const listed = (await get(org, '/api/v1/events')).events as { cost_usd: number }[];
    expect(addUsd(listed.map((event) => event.cost_usd))).toBe(body.total_cost_usd);
  });

  it('groups by each dimension, the dearest first, a missing value as <unset>', async () => {
    const org = await anOrganization(
      anEvent({
        session_id: 's1',
        project_id: 'p1',
        user_id: 'u1',
        team_id: 't1',
        feature: 'f1',
        cost_usd: 1,
      }),
      anEvent({
        session_id: 's2',
        project_id: 'p1',
        user_id: 'u2',
        team_id: 't2',
        feature: 'f1',
        cost_usd: 5,
        provider: 'anthropic',
        model: 'claude-sonnet-4-5',
      }),
      anEvent({ cost_usd: 2 }),
    );
    const keys = async (dimension: string) =>
      (await summary(org, `?group_by=${dimension}`)).breakdown.map(({ key, cost_usd }: Item) => [
        key,
        cost_usd,
      ]);
    expect(await keys('model')).toEqual([
      ['claude-sonnet-4-5', 5],
      ['gpt-4o', 3],
    ]);
    expect(await keys('provider')).toEqual([
      ['anthropic', 5],
      ['openai', 3],
    ]);
    expect(await keys('session')).toEqual([
      ['s2', 5],
      ['<unset>', 2],
      ['s1', 1],
    ]);
    expect(await keys('project')).toEqual([
      ['p1', 6],
      ['<unset>', 2],
    ]);
    expect(await keys('user')).toEqual([
      ['u2', 5],
      ['<unset>', 2],
      ['u1', 1],
    ]);
    expect(await keys('team')).toEqual([
      ['t2', 5],
      ['<unset>', 2],
      ['t1', 1],
    ]);
    expect(await keys('feature')).toEqual([
      ['f1', 6],
      ['<unset>', 2],
    ]);
    for (const wrong of ['day', 'key', 'source', 'Model', '', 'cost_usd; drop table events']) {
      const { status, body } = await api.get(
        `/api/v1/usage/summary?group_by=${encodeURIComponent(wrong)}`,
        org.adminKey,
      );
      expect([status, body.errors?.[0]?.field], wrong).toEqual([400, 'group_by']);
      for (const name of ['model', 'session', 'project', 'user']) expect(body.message).toContain(name);
    }
  });

  it('orders equal costs by their key', async () => {
    const org = await anOrganization(...['b', 'a', 'c'].map((team_id) => anEvent({ team_id, cost_usd: 1 })));
    expect((await summary(org, '?group_by=team')).breakdown.map((item: Item) => item.key)).toEqual([
      'a',
      'b',
      'c',
    ]);
  });

  it('lists 1,000 groups and puts the others into one, so that the sum still holds', async () => {
    const org = await anOrganization(
      ...Array.from({ length: USAGE_GROUPS_MAX + 5 }, (_, index) =>
        anEvent({ user_id: `user-${String(index).padStart(4, '0')}`, cost_usd: 1 }),
      ),
    );
    const body = await summary(org, '?group_by=user');
    expect(body.breakdown.length).toBe(USAGE_GROUPS_MAX + 1);
    expect(body.breakdown.at(-1)).toMatchObject({ key: '<other>', cost_usd: 5, call_count: 5 });
    expect(addUsd(body.breakdown.map((item: Item) => item.cost_usd))).toBe(body.total_cost_usd);
  });

  it('takes its window as inclusive, dates as whole days, and refuses one that runs backwards', async () => {
    const times = [
      '2026-02-01T23:59:59.999999Z',
      '2026-02-02T00:00:00Z',
      '2026-02-02T10:30:00.5Z',
      '2026-02-02T23:59:59.999999Z',
      '2026-02-03T00:00:00Z',
    ];
    const org = await anOrganization(...times.map((timestamp) => anEvent({ timestamp })));
    const cases: [string, number][] = [
      ['from=2026-02-02&to=2026-02-02', 3],
      ['from=2026-02-01&to=2026-02-03', 5],
      ['from=2026-02-02T10:30:00.5Z&to=2026-02-02T10:30:00.5Z', 1],
      ['from=2026-02-02T10:30:00.500001Z&to=2026-02-03', 2],
      ['from=2026-02-01T23:59:59.999999Z&to=2026-02-02T00:00:00Z', 2],
      ['from=2020-01-01', 5],
      ['to=2026-02-02T00:00:00Z', 2],
    ];
    for (const fold of [false, true]) {
      if (fold) await foldAll(api.database.superuser, org.orgDb);
      for (const [query, count] of cases)
        expect((await summary(org, `?${query}`)).call_count, query).toBe(count);
      for (const dimension of ['session', 'user'])
        expect((await summary(org, `?${cases[0]?.[0]}&group_by=${dimension}`)).call_count).toBe(3);
    }
    const backwards = await api.get('/api/v1/usage/summary?from=2026-02-03&to=2026-02-02');
    expect([backwards.status, backwards.body.code]).toEqual([400, 'invalid_range']);
  });

  it('counts a repeated call once and a blocked one not at all', async () => {
    const call = anEvent({ cost_usd: 1 });
    const org = await anOrganization(
      call,
      anEvent({ status: 'blocked', prevented_usd: 9, input_tokens: undefined, output_tokens: undefined }),
    );
    const again = await api.post('/api/v1/ingest/events', { events: [call] }, org.ingestKey);
    expect(again.body).toMatchObject({ accepted: 1, duplicates: 1 });
    expect(await summary(org)).toMatchObject({ call_count: 1, total_cost_usd: 1 });
  });
});

describe('usage records', () => {
  it('are calls, newest first, with the filters and pages of the list of events', async () => {
    const org = await anOrganization(
      ...Array.from({ length: 7 }, (_, index) =>
        anEvent({ timestamp: aTime(index), team_id: `t${index % 2}` }),
      ),
    );
    const all = await get(org, '/api/v1/usage/records?include_payload=true');
    expect(all).toMatchObject({ count: 7, offset: 0, group_by: null, has_more: false, next_cursor: null });
    expect(Object.keys(all.records[0]).sort()).toEqual(
      [
        'id',
        'timestamp',
        'provider',
        'model',
        'session_id',
        'team_id',
        'feature',
        'project_id',
        'user_id',
        'is_batch',
        'input_tokens',
        'output_tokens',
        'cache_read',
        'cache_creation',
        'reasoning_tok',
        'cached_tok',
        'cost_usd',
        'duration_ms',
      ].sort(),
    );
    const listed = (await get(org, '/api/v1/events')).events as Record<string, unknown>[];
    expect(all.records).toEqual(
      listed.map((event) =>
        Object.fromEntries(Object.keys(all.records[0]).map((name) => [name, event[name]])),
      ),
    );
    expect((await get(org, '/api/v1/usage/records?team_id=t1')).count).toBe(3);
    const seen: string[] = [];
    for (let path: string | null = '/api/v1/usage/records?limit=3'; path !== null; ) {
      const page = await get(org, path);
      seen.push(...page.records.map((record: { id: string }) => record.id));
      path = page.next_cursor === null ? null : `/api/v1/usage/records?limit=3&cursor=${page.next_cursor}`;
    }
    expect(seen).toEqual(listed.map((event) => event.id));
  });

  it('by group are items of the breakdown with their first and last call, paged without a gap', async () => {
    const org = await anOrganization(
      ...Array.from({ length: 7 }, (_, index) =>
        anEvent({ timestamp: aTime(index), team_id: `t${index}`, cost_usd: 7 - index, feature: 'f' }),
      ),
    );
    const path = '/api/v1/usage/records?group_by=team';
    const all = await get(org, path);
    expect(all).toMatchObject({ count: 7, group_by: 'team', has_more: false });
    expect(all.records[0]).toMatchObject({ key: 't0', cost_usd: 7, call_count: 1 });
    expect(all.records[0].first_seen).toBe(all.records[0].last_seen);
    for (const query of [
      '',
      '&feature=f',
      '&provider=openai',
      '&since=2020-01-01&until=9999-12-31',
      '&kind=sdk_event',
      '&session_id=',
    ])
      expect((await get(org, path + query)).records, query).toEqual(all.records);
    const keys: string[] = [];
    for (let next: string | null = `${path}&limit=3`; next !== null; ) {
      const page = await get(org, next);
      keys.push(...page.records.map((record: Item) => record.key));
      next = page.next_cursor === null ? null : `${path}&limit=3&cursor=${page.next_cursor}`;
    }
    expect(keys).toEqual(['t0', 't1', 't2', 't3', 't4', 't5', 't6']);
    expect((await get(org, `${path}&limit=2&offset=5`)).records.map((record: Item) => record.key)).toEqual([
      't5',
      't6',
    ]);
  });
});

describe('the breakdown of the dashboard', () => {
  const breakdown = (org: TestOrganization, dimension: string, query = '') =>
    get(org, `/api/v1/dashboard/breakdown/${dimension}${query}`);

  it('answers each dimension with items that sum to its total, filtered by labels', async () => {
    const org = await anOrganization(
      anEvent({
        timestamp: '2026-02-02T10:00:00Z',
        team_id: 't1',
        feature: 'f1',
        session_id: 's1',
        cost_usd: 1,
      }),
      anEvent({
        timestamp: '2026-02-03T10:00:00Z',
        team_id: 't2',
        feature: 'f1',
        session_id: 's1',
        cost_usd: 2,
      }),
      anEvent({
        timestamp: '2026-02-04T10:00:00Z',
        team_id: 't1',
        provider: 'anthropic',
        model: 'claude-sonnet-4-5',
        cost_usd: 4,
      }),
    );
    const window = '?since=2026-02-01&until=2026-02-05';
    for (const fold of [false, true]) {
      if (fold) await foldAll(api.database.superuser, org.orgDb);
      for (const dimension of ['model', 'provider', 'team', 'feature', 'session', 'day']) {
        for (const [query, total] of [
          ['', 7],
          ['&team_id=t1', 5],
          ['&feature=f1', 3],
          ['&provider=anthropic', 4],
          ['&team_id=t1&feature=f1', 1],
          ['&team_id=none', 0],
        ] as const) {
          const body = await breakdown(org, dimension, window + query);
          expect(body, dimension + query).toMatchObject({ dimension, total_cost_usd: total });
          expect(addUsd(body.items.map((item: Item) => item.cost_usd)), dimension + query).toBe(total);
        }
      }
      const days = (await breakdown(org, 'day', window)).items.map(({ key, cost_usd }: Item) => [
        key,
        cost_usd,
      ]);
      expect(days).toEqual([
        ['2026-02-02', 1],
        ['2026-02-03', 2],
        ['2026-02-04', 4],
      ]);
      const features = (await breakdown(org, 'feature', window)).items.map(({ key, cost_usd }: Item) => [
        key,
        cost_usd,
      ]);
      expect(features).toEqual([
        ['<unset>', 4],
        ['f1', 3],
      ]);
    }
  });

  it('covers the 30 days that end with a date on its own', async () => {
    const days = ['2026-03-01T23:59:59.999999Z', '2026-03-02T00:00:00Z', '2026-03-31T23:59:59Z'];
    const org = await anOrganization(...days.map((timestamp) => anEvent({ timestamp, cost_usd: 1 })));
    const summary = await api.get('/api/v1/usage/summary?to=2026-03-31', org.adminKey);
    expect(summary.body.total_cost_usd).toBe(2);
    const { body } = await api.get('/api/v1/dashboard/breakdown/day?until=2026-03-31', org.adminKey);
    expect(body.items.map(({ key }: Item) => key)).toEqual(['2026-03-02', '2026-03-31']);
  });

  it('covers the last 30 days by default and refuses another dimension and a window that runs backwards', async () => {
    const org = await anOrganization(
      anEvent(),
      anEvent({ timestamp: new Date(Date.now() - 31 * 86_400_000).toISOString() }),
    );
    expect((await breakdown(org, 'model')).items.map((item: Item) => item.call_count)).toEqual([1]);
    for (const path of ['user', 'project', 'x', 'Model', 'day?since=2026-02-03&until=2026-02-02'])
      expect((await api.get(`/api/v1/dashboard/breakdown/${path}`, org.adminKey)).status, path).toBe(400);
  });
});
