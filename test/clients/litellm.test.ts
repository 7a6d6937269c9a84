import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { send } from '../api/support/requests.js';
import { startTestApi, type TestApi } from '../support/api.js';

/**
 * Requests of the proxy of LiteLLM 1.108.7 for six calls: its callbacks `generic_api` and `otel`, recorded against
 * providers on loopback.
 */
const recording = (name: string) =>
  JSON.parse(readFileSync(new URL(`litellm/${name}.json`, import.meta.url), 'utf8'));
const GENERIC: Record<string, unknown>[] = recording('genericApi');
const OTEL = Buffer.from(recording('otel').bodyBase64, 'base64');

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const JSON_TYPE = { 'content-type': 'application/json' };
const PATH = '/api/v1/ingest/litellm';

async function eventsOf(key: string, query = ''): Promise<Record<string, unknown>[]> {
  return (await api.get(`/api/v1/events?include_payload=true${query}`, key)).body.events;
}

/** The recorded payloads, with OpenAI's and Anthropic's addresses in place of the loopback. */
const atProviders = GENERIC.map((payload) => {
  const hosts: Record<string, string> = {
    openai: 'https://api.openai.com/v1',
    anthropic: 'https://api.anthropic.com/v1/messages',
    openrouter: 'https://openrouter.ai/api/v1',
  };
  return { ...payload, api_base: hosts[String(payload.custom_llm_provider)] };
});

describe('calls of LiteLLM’s proxy, by its callback generic_api', () => {
  it('have their cached tokens, cost, labels and biller; failures are attempts', async () => {
    const org = await api.addOrganization();
    const request = { path: PATH, key: org.ingestKey, headers: JSON_TYPE, body: JSON.stringify(atProviders) };
    const { status, body } = await send(api, request);
    expect([status, body.accepted, body.ignored, body.rejected]).toEqual([202, 6, 0, []]);
    const events = await eventsOf(org.adminKey);
    const by = (test: (event: Record<string, unknown>) => boolean) => events.filter(test);
    expect(by(({ session_id }) => session_id === 's1')).toMatchObject([
      {
        provider: 'openai',
        billed_by: 'openai',
        model: 'gpt-4o',
        request_id: 'chatcmpl-1',
        input_tokens: 200,
        cache_read: 1_000,
        output_tokens: 300,
        reasoning_tok: 100,
        cost_usd: 0.00475,
        cost_source: 'reported',
        team_id: 'platform',
        feature: 'search',
        user_id: 'u1',
        stop_reason: 'stop',
        usage_source: 'litellm',
        status: 'ok',
        duration_ms: 94,
      },
    ]);
    expect(by(({ provider }) => provider === 'anthropic')).toContainEqual(
      expect.objectContaining({
        model: 'claude-sonnet-4-5',
        billed_by: 'anthropic',
        input_tokens: 50,
        cache_read: 1_000,
        cache_creation: 200,
        cache_creation_5m: 200,
        cache_creation_1h: 0,
        output_tokens: 300,
        cost_usd: 0.0057,
        computed_cost_usd: 0.0057,
      }),
    );
    expect(by(({ status: one }) => one === 'error')).toMatchObject([
      { provider: 'openai', http_status: 429, input_tokens: 0, cost_usd: 0 },
    ]);
    // A gateway behind the proxy sends a bill of its own.
    expect(by(({ model }) => String(model).includes('sonnet-4.5'))).toMatchObject([
      { provider: 'anthropic', billed_by: 'unknown', input_tokens: 200, cache_read: 1_000 },
    ]);
    expect(by(({ model }) => model === 'text-embedding-3-small')).toMatchObject([
      { input_tokens: 8, output_tokens: 0, cost_usd: 1.6e-7 },
    ]);
  });

  it('count once, as a list, alone or a line each, and beside the callback otel', async () => {
    const org = await api.addOrganization();
    const headers = { 'content-type': 'application/x-ndjson' };
    const lines = GENERIC.map((payload) => JSON.stringify(payload)).join('\n');
    const otel = { 'content-type': 'application/x-protobuf' };
    await send(api, { path: '/v1/traces', key: org.ingestKey, headers: otel, body: OTEL });
    await send(api, { path: PATH, key: org.ingestKey, headers: JSON_TYPE, body: JSON.stringify(GENERIC) });
    await send(api, { path: PATH, key: org.ingestKey, headers: JSON_TYPE, body: JSON.stringify(GENERIC[0]) });
    await send(api, { path: PATH, key: org.ingestKey, headers, body: lines });
    const events = await eventsOf(org.adminKey);
    const answered = events.filter(({ status, model }) => status === 'ok' && model === 'gpt-4o');
    expect(answered.map(({ request_id }) => request_id).sort()).toEqual(['chatcmpl-1', 'chatcmpl-stream1']);
    for (const event of answered)
      expect(event).toMatchObject({
        input_tokens: 200,
        cache_read: 1_000,
        reasoning_tok: 100,
        billed_by: 'unknown',
      });
  });

  it('from its cache, and requests that call no model, are ignored and counted as such', async () => {
    const org = await api.addOrganization();
    const hit = { ...GENERIC[0], cache_hit: true };
    const sum = { ...GENERIC[0], call_type: 'aretrieve_batch' };
    const refused = { ...GENERIC[0], status: 'failure', model: '' };
    const request = { path: PATH, key: org.ingestKey, headers: JSON_TYPE };
    const { body } = await send(api, { ...request, body: JSON.stringify([hit, sum, refused]) });
    expect(body).toMatchObject({ accepted: 0, ignored: 3, rejected: [] });
    expect(await eventsOf(org.adminKey)).toEqual([]);
  });

  it('that are wrong are rejected alone', async () => {
    const org = await api.addOrganization();
    const wrong = [
      7,
      { ...GENERIC[0], startTime: 'soon' },
      { ...GENERIC[0], custom_llm_provider: 'nobody', model: 'nobody/x' },
      { ...GENERIC[0], model: '' },
      { ...GENERIC[0], model: null },
    ];
    const request = { path: PATH, key: org.ingestKey, headers: JSON_TYPE };
    const { body } = await send(api, { ...request, body: JSON.stringify([...wrong, GENERIC[0]]) });
    expect(body.accepted).toBe(1);
    expect(body.rejected.map(({ index, code }: { index: number; code: string }) => [index, code])).toEqual([
      [0, 'invalid_field'],
      [1, 'invalid_field'],
      [2, 'unknown_provider'],
      [3, 'missing_field'],
      [4, 'missing_field'],
    ]);
  });
});

describe('calls of LiteLLM’s proxy, by its callback otel', () => {
  it('have the cached tokens that its spans hold only in the text of a Python dictionary', async () => {
    const org = await api.addOrganization();
    const headers = { 'content-type': 'application/x-protobuf' };
    const { status } = await send(api, { path: '/v1/traces', key: org.ingestKey, headers, body: OTEL });
    expect(status).toBe(202);
    const events = await eventsOf(org.adminKey);
    const openai = events.find(({ request_id }) => request_id === 'chatcmpl-stream1');
    expect(openai).toMatchObject({
      input_tokens: 200,
      cache_read: 1_000,
      output_tokens: 300,
      reasoning_tok: 100,
      cost_usd: 0.00475,
      usage_source: 'litellm',
    });
    const claude = events.find(
      ({ provider, cache_creation }) => provider === 'anthropic' && cache_creation !== 0,
    );
    expect(claude).toMatchObject({
      input_tokens: 50,
      cache_read: 1_000,
      cache_creation_5m: 200,
      output_tokens: 300,
    });
  });
});
