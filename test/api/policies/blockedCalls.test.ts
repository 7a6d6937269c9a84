import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listObservedCells } from '../../../db/billing/billingCells.js';
import { listDoubleReports } from '../../../db/events/ingestHealth.js';
import { listObservedSince } from '../../../db/events/observedCalls.js';
import { loadPriceBook } from '../../../db/pricing/prices.js';
import { publicId } from '../../../domain/ids.js';
import { microsOfDay } from '../../../domain/period.js';
import { foldAll } from '../../db/support/compareTotals.js';
import { otherPrices, repriceAll } from '../../db/support/repriceAll.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { anEvent, aSpan, aTime, aTrace, ingest, sendJson } from '../support/requests.js';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const RULE = `rul_${'7'.repeat(32)}`;

/** Blocked, with all fields of a wrapper: counts that it guessed, a model that has no price. */
const aBlocked = (overrides: Record<string, unknown> = {}) =>
  anEvent({
    status: 'blocked',
    blocked_rule_id: RULE,
    prevented_usd: 0.29,
    input_tokens: 5_000,
    output_tokens: 900,
    provider_key_id: 'key_blocked',
    session_id: 's1',
    team_id: 'growth',
    feature: 'drafts',
    project_id: 'shop',
    user_id: 'u1',
    ...overrides,
  });

async function get(org: TestOrganization, path: string) {
  const { status, body } = await api.get(path, org.adminKey);
  expect(status, `${path} ${JSON.stringify(body)}`).toBe(200);
  return body;
}

async function anOrganization(...events: object[]): Promise<TestOrganization> {
  const org = await api.addOrganization();
  if (events.length > 0) await ingest(api, events, org.ingestKey);
  return org;
}

const refusalOf = async (item: object) =>
  (await api.post('/api/v1/ingest/events', { events: [item] })).body.rejected[0];

/** Every read of usage and of defects of calls. */
const READS = [
  '/api/v1/usage/summary?from=2026-01-01',
  ...['session', 'project', 'user', 'provider', 'team', 'feature'].map(
    (group) => `/api/v1/usage/summary?from=2026-01-01&group_by=${group}`,
  ),
  '/api/v1/usage/records',
  '/api/v1/usage/records?group_by=model',
  ...['model', 'provider', 'team', 'feature', 'session', 'day'].map(
    (dimension) => `/api/v1/dashboard/breakdown/${dimension}?since=2026-01-01`,
  ),
  '/api/v1/dashboard/breakdown/model?since=2026-01-01&team_id=growth&feature=drafts',
  '/api/v1/pricing/unpriced',
  '/api/v1/ingest/health',
];

describe('a blocked call', () => {
  it('is shown with its rule and the cost it avoided, and costs nothing', async () => {
    const org = await anOrganization(aBlocked());
    const listed = (await get(org, '/api/v1/events')).events;
    expect(listed).toEqual([
      expect.objectContaining({
        status: 'blocked',
        blocked_rule_id: RULE,
        prevented_usd: 0.29,
        cost_usd: 0,
        computed_cost_usd: 0,
        cost_source: 'computed',
        price_gaps: [],
        input_tokens: 5_000,
      }),
    ]);
    expect(await get(org, `/api/v1/events/${listed[0].id}`)).toEqual(listed[0]);
    const exported = await fetch(
      `${api.baseUrl}/api/v1/events/export?start=2026-01-01&end=2026-12-31&format=json`,
      {
        headers: { authorization: `Bearer ${org.adminKey}` },
      },
    );
    expect(await exported.json()).toEqual(listed);
    expect(await get(org, `/api/v1/events/${listed[0].id}/cost`)).toMatchObject({
      cost_usd: 0,
      unpriced_reason: 'blocked',
      computed: null,
      expected: null,
      repriced: false,
    });
  });

  it.each([
    ['with counts', {}],
    ['without counts', { input_tokens: undefined, output_tokens: undefined }],
    ['of a model without a price', { model: 'no-such-model' }],
    [
      'of a model without a price, without counts',
      { model: 'nope', input_tokens: undefined, output_tokens: undefined },
    ],
    ['of nobody known', { base_url: 'http://localhost:8000' }],
    ['as a batch with a service tier', { is_batch: true, service_tier: 'flex' }],
    ['that names no rule and no amount', { blocked_rule_id: undefined, prevented_usd: undefined }],
  ])('%s is in no total and no count, before a fold and after it', async (_how, overrides) => {
    const made = [anEvent({ session_id: 's1', team_id: 'growth', feature: 'drafts', project_id: 'shop' })];
    const [without, org] = [
      await anOrganization(...made),
      await anOrganization(...made, aBlocked(overrides)),
    ];
    const comparable = async (of: TestOrganization, path: string) => {
      const body = await get(of, path);
      // Times of the question, and ids of the two organizations.
      return JSON.stringify(body, (name, value) =>
        ['from', 'to', 'since', 'until', 'as_of', 'id', 'version'].includes(name) ? undefined : value,
      );
    };
    for (const isFolded of [false, true]) {
      if (isFolded) for (const { orgDb } of [org, without]) await foldAll(api.database.superuser, orgDb);
      for (const path of READS)
        expect(await comparable(org, path), `${path} folded ${isFolded}`).toBe(
          await comparable(without, path),
        );
    }
    expect((await get(org, '/api/v1/events')).count).toBe(2);
  });

  it('reached no provider: nothing of it is compared with a bill', async () => {
    const org = await anOrganization(aBlocked({ timestamp: '2026-03-05T10:00:00Z' }));
    for (const isFolded of [false, true]) {
      if (isFolded) await foldAll(api.database.superuser, org.orgDb);
      expect(await listObservedCells(org.orgDb, { provider: 'openai', day: '2026-03-05' })).toEqual([]);
      expect(await listObservedSince(org.orgDb, 'openai')).toEqual(new Map());
      expect(await listDoubleReports(org.orgDb, microsOfDay('2026-03-01'))).toEqual([]);
    }
    const { rows } = await api.database.superuser.query('select from billing_cells where org_id = $1', [
      org.orgId,
    ]);
    expect(rows).toEqual([]);
  });

  it('stays without a cost when stored calls are priced again, also one that was stored with a cost', async () => {
    const timestamp = '2026-03-05T10:00:00Z';
    const org = await anOrganization(aBlocked({ timestamp }), anEvent({ timestamp }));
    // Simulates blocked calls as an earlier version stored them, without the migration that corrects them.
    await api.database.superuser.query(
      `update events set cost_usd = 1, computed_cost_usd = 1 where org_id = $1 and status = 'blocked'`,
      [org.orgId],
    );
    const window = { fromMicros: microsOfDay('2026-03-01'), toMicros: microsOfDay('2026-04-01') };
    const book = otherPrices(await loadPriceBook(api.database.database), 2n);
    const runId = await repriceAll(org.orgDb, book, window);
    const { events } = await get(org, '/api/v1/events');
    expect(
      Object.fromEntries(events.map((one: Record<string, unknown>) => [one.status, one.cost_usd])),
    ).toEqual({
      blocked: 0,
      ok: 0.0015,
    });
    expect(await get(org, `/api/v1/pricing/reprice-runs/${publicId('run', runId)}`)).toMatchObject({
      result: { events: 1, changed: 1 },
    });
    expect(await get(org, '/api/v1/usage/summary?from=2026-03-01')).toMatchObject({
      call_count: 1,
      total_cost_usd: 0.0015,
    });
  });

  it('is held to policies as any call, except by what it cost', async () => {
    const org = await api.addOrganization();
    const put = async (type: string, config: object) => {
      const { status } = await sendJson(api, {
        method: 'PUT',
        path: `/api/v1/policies/${type}`,
        key: org.adminKey,
        json: { config },
      });
      expect(status).toBe(200);
    };
    await put('approved_models', { models: ['gpt-4o-mini'] });
    await put('banned_patterns', { regexes: ['(?i)secret'] });
    await put('approval_required_threshold_cents', { threshold_cents: 1 });
    const payload = { prompt: 'the SECRET plan' };
    await ingest(api, [aBlocked({ payload, prevented_usd: 900_000 })], org.ingestKey);
    const { alerts } = await get(org, '/api/v1/alerts');
    expect(alerts.map((alert: { policy_type: string }) => alert.policy_type).sort()).toEqual([
      'approved_models',
      'banned_patterns',
    ]);
    expect(alerts[0].cost_usd).toBe(0);
  });

  it('that is sent again is the same event', async () => {
    const event = aBlocked();
    const org = await anOrganization(event);
    const again = await api.post('/api/v1/ingest/events', { events: [event] }, org.ingestKey);
    expect(again.body).toMatchObject({ accepted: 1, duplicates: 1 });
    expect((await get(org, '/api/v1/events')).count).toBe(1);
  });
});

describe('a wrapper’s fields for blocking', () => {
  it.each<[string, Record<string, unknown>, string]>([
    ['an amount of a call that was made', { prevented_usd: 0.01 }, 'prevented_usd'],
    ['an amount of a call that failed', { status: 'error', prevented_usd: 1 }, 'prevented_usd'],
    ['a rule of a call that was made', { blocked_rule_id: RULE }, 'blocked_rule_id'],
    ['a cost of a blocked call', { status: 'blocked', cost_usd: 0.29 }, 'cost_usd'],
  ])('%s is refused by its name', async (_what, overrides, field) => {
    const refusal = await refusalOf(anEvent(overrides));
    expect(refusal).toMatchObject({ index: 0, code: 'invalid_field' });
    expect(refusal.message).toMatch(new RegExp(`^${field}: `));
  });

  it('have no effect when they are zero', async () => {
    const org = await anOrganization(
      anEvent({ prevented_usd: 0, blocked_rule_id: null, timestamp: aTime(1) }),
      aBlocked({ cost_usd: 0 }),
    );
    const { events } = await get(org, '/api/v1/events');
    expect(events.map(({ prevented_usd }: { prevented_usd: number }) => prevented_usd)).toEqual([0.29, null]);
  });
});

describe('one request, blocked and then let through', () => {
  const TIME = aTime(50);
  const blocked = (ids: object) => aBlocked({ timestamp: TIME, ...ids });
  const made = (ids: object) =>
    anEvent({ timestamp: TIME, cost_usd: 0.5, input_tokens: 10, output_tokens: 5, ...ids });

  /** The totals after both, in one request or in two, in either order. */
  async function settle(requests: readonly object[][]) {
    const org = await anOrganization();
    for (const events of requests) await ingest(api, events, org.ingestKey);
    await foldAll(api.database.superuser, org.orgDb);
    const { call_count, total_cost_usd, total_input_tokens } = await get(org, '/api/v1/usage/summary');
    const { events } = await get(org, '/api/v1/events');
    return { sums: { call_count, total_cost_usd, total_input_tokens }, events };
  }
  const ORDERS = (ids: object) => [
    [[blocked(ids)], [made(ids)]],
    [[made(ids)], [blocked(ids)]],
    [[blocked(ids), made(ids)]],
    [[made(ids), blocked(ids)]],
  ];

  it('is two events where only the wrapper’s own request id and the time are the same, and the cost counts', async () => {
    for (const requests of ORDERS({ request_id: 'own-1' })) {
      const { sums, events } = await settle(requests);
      expect(sums).toEqual({ call_count: 1, total_cost_usd: 0.5, total_input_tokens: 10 });
      expect(events.map(({ status }: { status: string }) => status).sort()).toEqual(['blocked', 'ok']);
    }
  });

  it('is the call that was let through where the provider’s response id shows that it is one', async () => {
    for (const requests of ORDERS({ request_id: 'own-2', response_id: 'chatcmpl-both' })) {
      const { sums, events } = await settle(requests);
      expect(sums).toEqual({ call_count: 1, total_cost_usd: 0.5, total_input_tokens: 10 });
      expect(events).toEqual([
        expect.objectContaining({
          status: 'ok',
          cost_usd: 0.5,
          blocked_rule_id: null,
          prevented_usd: null,
          // Labels are as good from the one as from the other.
          team_id: 'growth',
        }),
      ]);
    }
  });

  it('counts the span of the call, whatever a wrapper with the same response id reports', async () => {
    const span = aTrace(aSpan({ 'gen_ai.response.id': 'chatcmpl-span', 'gen_ai.response.cost_usd': 0.25 }));
    const block = aBlocked({ request_id: 'chatcmpl-span' });
    for (const isBlockFirst of [true, false]) {
      const org = await anOrganization();
      const steps = [
        () => ingest(api, [block], org.ingestKey),
        () => api.post('/api/v1/ingest/trace', span, org.ingestKey),
      ];
      for (const step of isBlockFirst ? steps : steps.toReversed()) await step();
      expect(await get(org, '/api/v1/usage/summary')).toMatchObject({ call_count: 1, total_cost_usd: 0.25 });
      const [event] = (await get(org, '/api/v1/events')).events;
      expect(event).toMatchObject({ status: 'ok', cost_usd: 0.25, input_tokens: 100, output_tokens: 50 });
    }
  });
});
