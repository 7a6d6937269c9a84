import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { decodeTraceAnswer, encodeMetricsMessage } from '../support/otlpMessage.js';
import { aLog, aMetric, type MetricToSend, type RawAnswer, send } from '../support/requests.js';

let api: TestApi;
let org: TestOrganization;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const JSON_TYPE = { 'content-type': 'application/json' };
const TOKENS = 'claude_code.token.usage';

const tokens = (type: string, value: number) => ({
  attributes: { type, model: 'claude-sonnet-4-5', 'session.id': 's' },
  value,
});
const CALL = [tokens('input', 100), tokens('cacheRead', 900), tokens('output', 50)];

async function newOrg(): Promise<void> {
  org = await api.addOrganization();
}

function report(metric: MetricToSend, key = org.ingestKey, path = '/v1/metrics'): Promise<RawAnswer> {
  return send(api, { path, key, headers: JSON_TYPE, body: JSON.stringify(aMetric(metric)) });
}

const metered = async (key = org.adminKey) => (await api.get('/api/v1/ingest/health', key)).body.metered;

describe('metrics of tokens', () => {
  it.each(['/v1/metrics', '/api/v1/ingest/metrics', '/api/v1/ingest/v1/metrics'])(
    'come in at %s, as JSON and as protobuf, and never become events',
    async (path) => {
      await newOrg();
      const startMillis = Date.now() - 7_200_000;
      const first = aMetric({ name: TOKENS, points: CALL, startMillis });
      const json = await send(api, {
        path,
        key: org.ingestKey,
        headers: { ...JSON_TYPE, 'content-encoding': 'gzip' },
        body: gzipSync(JSON.stringify(first)),
      });
      expect([json.status, json.body]).toEqual([200, {}]);
      const later = aMetric({ name: TOKENS, points: CALL, startMillis: startMillis + 60_000 });
      const protobuf = await send(api, {
        path,
        key: org.ingestKey,
        headers: { 'content-type': 'application/x-protobuf' },
        body: encodeMetricsMessage(later),
      });
      expect([protobuf.status, protobuf.bytes.length]).toEqual([200, 0]);
      expect(await metered()).toMatchObject([
        { service: 'claude-code', metric: TOKENS, input_tokens: 2_000, output_tokens: 100, cost_usd: null },
      ]);
      expect((await api.get('/api/v1/events', org.adminKey)).body.count).toBe(0);
    },
  );

  it('count once, however often and in whatever encoding a point comes', async () => {
    await newOrg();
    const request = aMetric({ name: TOKENS, points: CALL });
    for (let time = 0; time < 2; time += 1) {
      const sent = { path: '/v1/metrics', key: org.ingestKey };
      await send(api, { ...sent, headers: JSON_TYPE, body: JSON.stringify(request) });
      const body = encodeMetricsMessage(request);
      await send(api, { ...sent, headers: { 'content-type': 'application/x-protobuf' }, body });
    }
    expect(await metered()).toMatchObject([{ input_tokens: 1_000, output_tokens: 50 }]);
  });

  it('that are cumulative count their growth, also after a new start and when they come late', async () => {
    await newOrg();
    const startMillis = Date.now() - 7_200_000;
    const at = (value: number, lastedMillis: number, start = startMillis) =>
      report({
        name: TOKENS,
        points: [tokens('output', value)],
        temporality: 'cumulative',
        startMillis: start,
        lastedMillis,
      });
    for (const [value, lasted] of [
      [10, 60_000],
      [30, 180_000],
      [20, 120_000],
      [30, 240_000],
    ] as const)
      await at(value, lasted);
    expect(await metered()).toMatchObject([{ output_tokens: 30 }]);
    await at(5, 60_000, startMillis + 600_000);
    expect(await metered()).toMatchObject([{ output_tokens: 35 }]);
  });

  it('count once where the same point comes many times at once', async () => {
    await newOrg();
    const metric: MetricToSend = { name: TOKENS, points: CALL, startMillis: Date.now() - 600_000 };
    await Promise.all(Array.from({ length: 12 }, () => report(metric)));
    expect(await metered()).toMatchObject([{ input_tokens: 1_000, output_tokens: 50 }]);
  });

  it('show which tokens no call covers, until the calls arrive', async () => {
    await newOrg();
    await report({ name: TOKENS, points: CALL });
    const [missing] = await metered();
    expect(missing).toMatchObject({ uncovered_input_tokens: 1_000, uncovered_output_tokens: 50 });
    expect(missing.message).toContain('1050 tokens that no call covers');
    const logs = aLog({
      'event.timestamp': new Date().toISOString(),
      duration_ms: 10,
      input_tokens: 100,
      cache_read_tokens: 900,
      output_tokens: 50,
    });
    await send(api, { path: '/v1/logs', key: org.ingestKey, headers: JSON_TYPE, body: JSON.stringify(logs) });
    expect(await metered()).toMatchObject([
      {
        call_input_tokens: 1_000,
        call_output_tokens: 50,
        uncovered_input_tokens: 0,
        uncovered_output_tokens: 0,
        message: null,
      },
    ]);
  });

  it.each([
    [
      'gemini_cli.token.usage',
      'sum',
      'type',
      { input: 10, cache: 4, tool: 1, output: 5, thought: 2 },
      [11, 7],
    ],
    [
      'codex.turn.token_usage',
      'histogram',
      'token_type',
      { input: 10, cached_input: 4, output: 7, reasoning_output: 2, total: 17 },
      [10, 7],
    ],
    ['gen_ai.client.token.usage', 'histogram', 'gen_ai.token.type', { input: 10, output: 7 }, [10, 7]],
    [
      'gen_ai.client.token.usage',
      'exponentialHistogram',
      'gen_ai.token.type',
      { input: 10, completion: 7 },
      [10, 7],
    ],
  ] as const)('of %s (%s) count each token once', async (name, kind, by, values, [input, output]) => {
    await newOrg();
    const points = Object.entries(values).map(([type, value]) => ({ attributes: { [by]: type }, value }));
    const body = aMetric({ name, kind, points, service: 'agent' });
    await send(api, {
      path: '/v1/metrics',
      key: org.ingestKey,
      headers: JSON_TYPE,
      body: JSON.stringify(body),
    });
    const headers = { 'content-type': 'application/x-protobuf' };
    await send(api, { path: '/v1/metrics', key: org.ingestKey, headers, body: encodeMetricsMessage(body) });
    expect(await metered()).toMatchObject([{ metric: name, input_tokens: input, output_tokens: output }]);
  });

  it('of costs are shown as dollars', async () => {
    await newOrg();
    await report({ name: 'claude_code.cost.usage', points: [{ attributes: { model: 'm' }, value: 0.0125 }] });
    expect(await metered()).toMatchObject([{ input_tokens: 0, cost_usd: 0.0125, message: null }]);
  });

  it('name what is wrong with a point and count the others; other metrics are ignored', async () => {
    await newOrg();
    const points = [tokens('input', -1), tokens('input', 7), { attributes: {}, value: 1 }];
    const startMillis = Date.now() - 3_600_000;
    const json = await report({ name: TOKENS, points, startMillis });
    expect(json.body.partialSuccess).toMatchObject({ rejectedDataPoints: '2' });
    expect(json.body.partialSuccess.errorMessage).toContain('invalid_number');
    const body = encodeMetricsMessage(aMetric({ name: TOKENS, points, startMillis }));
    const headers = { 'content-type': 'application/x-protobuf' };
    const protobuf = await send(api, { path: '/v1/metrics', key: org.ingestKey, headers, body });
    expect(decodeTraceAnswer(protobuf.bytes)).toMatchObject({ partialSuccess: { rejectedSpans: '2' } });
    expect(
      (await report({ name: 'claude_code.session.count', points: [{ attributes: {}, value: 1 }] })).body,
    ).toEqual({});
    expect(await metered()).toMatchObject([{ input_tokens: 7 }]);
  });

  it('are those of the project for a key of a workspace, and of no other organization', async () => {
    await newOrg();
    const workspaceId = await api.addWorkspace(org.orgId, 'proj-a');
    const sender = await api.addKey(org.orgId, 'ingest', { workspaceId });
    const member = await api.addKey(org.orgId, 'member', { workspaceId });
    await report({ name: TOKENS, points: [tokens('input', 5)], service: 'a' }, sender);
    await report({ name: TOKENS, points: [tokens('input', 6)], service: 'b' });
    expect(await metered(member)).toMatchObject([{ service: 'a', input_tokens: 5 }]);
    expect(await metered()).toHaveLength(2);
    expect(await metered((await api.addOrganization()).adminKey)).toEqual([]);
  });
});
