import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { alertsByEvent, putPolicy } from '../support/policies.js';
import { aTime, type RawAnswer, send } from '../support/requests.js';

let api: TestApi;
let org: TestOrganization;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const PATH = '/api/public/ingestion';
const basic = (key: string) => `Basic ${Buffer.from(`pk-lf-any:${key}`).toString('base64')}`;

interface Item {
  type: string;
  body: Record<string, unknown>;
  id?: string;
  timestamp?: string;
}

function report(items: readonly Item[], key = org.ingestKey): Promise<RawAnswer> {
  const batch = items.map((item) => ({ id: randomUUID(), timestamp: new Date().toISOString(), ...item }));
  return send(api, {
    path: PATH,
    key: null,
    headers: { authorization: basic(key), 'content-type': 'application/json' },
    body: JSON.stringify({ batch, metadata: { sdk_name: 'langfuse-js' } }),
  });
}

const START = aTime(100);
const END = new Date(Date.parse(START) + 1_500).toISOString();

/** A create and an update of one generation, as the clients send them. */
function aGeneration(fields: { create?: object; update?: object } = {}) {
  const ids = { id: randomUUID(), traceId: randomUUID() };
  const create: Item = {
    type: 'generation-create',
    timestamp: START,
    body: { ...ids, name: 'answer', model: 'gpt-4o', startTime: START, input: 'Hello', ...fields.create },
  };
  const update: Item = {
    type: 'generation-update',
    timestamp: END,
    body: {
      ...ids,
      endTime: END,
      output: 'Hi',
      usage: { promptTokens: 1_200, completionTokens: 300, totalTokens: 1_500 },
      ...fields.update,
    },
  };
  return { ...ids, create, update };
}

async function newOrg(): Promise<void> {
  org = await api.addOrganization();
}

async function eventsOf(query = ''): Promise<Record<string, unknown>[]> {
  return (await api.get(`/api/v1/events?include_payload=true${query}`, org.adminKey)).body.events;
}

const EXPECTED = {
  kind: 'observability_generation',
  provider: 'openai',
  model: 'gpt-4o',
  status: 'ok',
  input_tokens: 1_200,
  output_tokens: 300,
  duration_ms: 1_500,
  cost_usd: 0.006,
  cost_source: 'computed',
};

describe('batches of older Langfuse clients', () => {
  it.each([
    ['in one request', [['create', 'update']]],
    ['in one request, the update first', [['update', 'create']]],
    ['in two requests', [['create'], ['update']]],
    ['in two requests, the update first', [['update'], ['create']]],
    ['again and again', [['create'], ['update'], ['create', 'update'], ['update'], ['create']]],
  ] as const)('make one event of a create and an update that come %s', async (_, requests) => {
    await newOrg();
    const generation = aGeneration();
    for (const request of requests) {
      const { status, body } = await report(request.map((part) => generation[part]));
      expect([status, body.errors]).toEqual([207, []]);
      expect(body.successes.map((success: { status: number }) => success.status)).toEqual(
        request.map(() => 201),
      );
    }
    const events = await eventsOf('&include_superseded=true');
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({ ...EXPECTED, session_id: generation.traceId });
    expect(events[0]?.request_id).toBe(generation.id);
    if (requests[0]?.[0] === 'create' || requests[0]?.length === 2)
      expect(events[0]?.payload).toMatchObject({ input: 'Hello', output: 'Hi' });
    const { body } = await api.get('/api/v1/usage/summary?group_by=model', org.adminKey);
    expect(JSON.stringify(body)).toContain('0.006');
  });

  it('make one event of parts that arrive at once', async () => {
    await newOrg();
    const generations = Array.from({ length: 20 }, () => aGeneration());
    const parts = generations.flatMap(({ create, update }) => [[create], [update], [update], [create]]);
    const answers = await Promise.all(parts.map((part) => report(part)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([207]));
    const events = await eventsOf('&limit=100&include_superseded=true');
    expect(events).toHaveLength(20);
    for (const event of events) expect(event).toMatchObject(EXPECTED);
    const { body } = await api.get('/api/v1/usage/summary?group_by=model', org.adminKey);
    expect(JSON.stringify(body)).toContain('0.12');
  });

  it('read usage and cost in the old and the new form', async () => {
    await newOrg();
    const shapes = {
      details: {
        usageDetails: {
          input: 200,
          output: 200,
          total: 1_500,
          input_cached_tokens: 1_000,
          output_reasoning_tokens: 100,
        },
        usage: undefined,
      },
      own: { usage: { input: 1_200, output: 300, total: 1_500, unit: 'TOKENS', totalCost: 0.5 } },
      costs: { usage: { input: 1_200, output: 300 }, costDetails: { input: 0.25, output: 0.125 } },
      characters: { usage: { input: 9_000, output: 3_000, unit: 'CHARACTERS' } },
    };
    for (const [feature, update] of Object.entries(shapes)) {
      const { create, update: end } = aGeneration({ create: { metadata: { feature } }, update });
      expect((await report([create, end])).body.errors).toEqual([]);
    }
    const byFeature = new Map((await eventsOf()).map((event) => [event.feature, event]));
    expect(byFeature.get('details')).toMatchObject({
      input_tokens: 200,
      cache_read: 1_000,
      output_tokens: 300,
      reasoning_tok: 100,
      cost_usd: 0.00475,
    });
    expect(byFeature.get('own')).toMatchObject({
      input_tokens: 1_200,
      output_tokens: 300,
      cost_usd: 0.5,
      cost_source: 'reported',
      usage_missing: ['cache_read', 'cache_write_5m', 'cache_write_1h', 'reasoning'],
    });
    expect(byFeature.get('costs')).toMatchObject({ cost_usd: 0.375, cost_source: 'reported' });
    expect(byFeature.get('characters')).toMatchObject({ input_tokens: 0, cost_source: 'unpriced' });
  });

  it.each(['before its generation', 'after it', 'with it'])(
    'pass on the labels of a trace that comes %s',
    async (when) => {
      await newOrg();
      const { traceId, create, update } = aGeneration();
      const trace: Item = {
        type: 'trace-create',
        body: {
          id: traceId,
          name: 'chat',
          userId: 'user-7',
          sessionId: 'session-9',
          environment: 'production',
          tags: ['beta'],
          metadata: { team_id: 'growth', feature: 'search' },
        },
      };
      const requests =
        when === 'with it'
          ? [[create, trace, update]]
          : when === 'after it'
            ? [[create], [update], [trace]]
            : [[trace], [create], [update]];
      for (const request of requests) expect((await report(request)).body.errors).toEqual([]);
      const events = await eventsOf();
      expect(events).toHaveLength(1);
      expect(events[0]).toMatchObject({
        ...EXPECTED,
        session_id: 'session-9',
        user_id: 'user-7',
        team_id: 'growth',
        feature: 'search',
        environment: 'production',
        payload: { trace: { name: 'chat', tags: ['beta'] } },
      });
    },
  );

  it('keep the model of the create and name the one that answered', async () => {
    await newOrg();
    const { create, update } = aGeneration({ update: { model: 'gpt-4o-2024-08-06' } });
    await report([create]);
    await report([update]);
    const events = await eventsOf('&include_superseded=true');
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({ model: 'gpt-4o', response_model: 'gpt-4o-2024-08-06' });
  });

  it('show a call that failed as an attempt', async () => {
    await newOrg();
    const { create, update } = aGeneration({
      update: { usage: undefined, level: 'ERROR', statusMessage: 'overloaded' },
    });
    await report([create]);
    await report([update]);
    expect(await eventsOf()).toMatchObject([
      { status: 'error', input_tokens: 0, cost_usd: 0, duration_ms: 1_500 },
    ]);
  });

  it('answer for each item, and store the others of a wrong one', async () => {
    await newOrg();
    const good = aGeneration();
    const { status, body } = await report([
      { ...good.create, id: 'good' },
      { ...aGeneration({ create: { usage: { input: -5 } } }).create, id: 'negative' },
      { ...aGeneration({ create: { model: 'nobody-sells-this' } }).create, id: 'unknown-model' },
      { id: 'score', type: 'score-create', body: { name: 'helpful', value: 1 } },
      { id: 'span', type: 'span-create', body: { id: 'a', traceId: good.traceId } },
      { id: 'log', type: 'sdk-log', body: { log: 'x' } },
      { id: 'what', type: 'no-such-type', body: {} },
    ]);
    expect(status).toBe(207);
    expect(body.successes).toEqual(
      ['good', 'unknown-model', 'score', 'span', 'log'].map((id) => ({ id, status: 201 })),
    );
    expect(
      body.errors.map(({ id, status: code, error }: Record<string, unknown>) => [id, code, error]),
    ).toEqual([
      ['negative', 400, 'invalid_number'],
      ['what', 400, 'invalid_field'],
    ]);
    const { sources } = (await api.get('/api/v1/ingest/health', org.adminKey)).body;
    expect(sources).toMatchObject([
      { scope: 'langfuse', calls: 1, rejected: { invalid_field: 1, invalid_number: 1, unknown_provider: 1 } },
    ]);
    expect(await eventsOf()).toHaveLength(1);
  });

  it('refuse a body that is no batch, and too many items', async () => {
    await newOrg();
    const request = { path: PATH, key: org.ingestKey, headers: { 'content-type': 'application/json' } };
    expect((await send(api, { ...request, body: '{"items": []}' })).status).toBe(400);
    const items = Array.from({ length: 10_001 }, () => ({}));
    expect((await send(api, { ...request, body: JSON.stringify({ batch: items }) })).body.code).toBe(
      'too_many_items',
    );
    expect((await report([], 'tru_wrong')).status).toBe(401);
  });

  it('read a large batch like a small one', async () => {
    await newOrg();
    const generations = Array.from({ length: 300 }, () =>
      aGeneration({ create: { input: 'x'.repeat(3_000) } }),
    );
    const { status, body } = await report(generations.flatMap(({ create, update }) => [update, create]));
    expect([status, body.successes.length, body.errors]).toEqual([207, 600, []]);
    const events = await eventsOf('&limit=1000');
    expect(events).toHaveLength(300);
    expect(new Set(events.map(({ cost_usd }) => cost_usd))).toEqual(new Set([0.006]));
  });

  it('judge the prompts of every part, and alert once for a call and policy', async () => {
    await newOrg();
    await putPolicy(api, org, 'banned_patterns', { regexes: ['forbidden'] });
    const { create, update } = aGeneration({
      create: { input: 'Hello' },
      update: { input: 'forbidden words' },
    });
    await report([create]);
    await report([update]);
    await report([update]);
    const [event] = await eventsOf();
    expect(await alertsByEvent(api, org.adminKey)).toEqual([`banned_patterns of ${event?.id}`]);
  });

  it('keep the observations of two keys and of two organizations apart', async () => {
    await newOrg();
    const { create, update } = aGeneration({
      create: { id: 'gen-1', traceId: 'trace-1' },
      update: { id: 'gen-1', traceId: 'trace-1' },
    });
    const otherKey = await api.addKey(org.orgId, 'ingest');
    await report([create]);
    await report([update], otherKey);
    expect(await eventsOf()).toMatchObject([{ input_tokens: 0 }]);
    const other = await api.addOrganization();
    await report([update], other.ingestKey);
    expect((await api.get('/api/v1/events', other.adminKey)).body.count).toBe(0);
    await report([update]);
    expect(await eventsOf()).toMatchObject([{ input_tokens: 1_200 }]);
  });

  it('stay within the project of a workspace', async () => {
    await newOrg();
    const workspaceId = await api.addWorkspace(org.orgId, 'proj-a');
    const key = await api.addKey(org.orgId, 'ingest', { workspaceId });
    const { create, update } = aGeneration();
    await report([create], key);
    await report([update], key);
    expect(await eventsOf()).toMatchObject([{ project_id: 'proj-a', input_tokens: 1_200 }]);
  });
});
