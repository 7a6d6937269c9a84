import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { send } from '../api/support/requests.js';
import { startTestApi, type TestApi } from '../support/api.js';

/** Requests of the agents themselves for one prompt, recorded against providers on loopback. */
interface Recording {
  requests: { path: string; contentType: string; gzipBase64: string }[];
}

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

/** Sends the recorded requests of an agent, each twice, as a client does whose first try got no answer. */
async function replay(agent: string) {
  const org = await api.addOrganization(agent);
  const file = new URL(`agents/${agent}.json`, import.meta.url);
  const { requests } = JSON.parse(readFileSync(file, 'utf8')) as Recording;
  for (const { path, contentType, gzipBase64 } of [...requests, ...requests]) {
    const answer = await send(api, {
      path,
      key: org.ingestKey,
      headers: { 'content-type': contentType, 'content-encoding': 'gzip' },
      body: Buffer.from(gzipBase64, 'base64'),
    });
    expect([200, 202], `${path} ${answer.bytes}`).toContain(answer.status);
    expect(String(answer.bytes)).not.toContain('partialSuccess');
  }
  const { events } = (await api.get('/api/v1/events', org.adminKey)).body;
  const { sources, metered } = (await api.get('/api/v1/ingest/health', org.adminKey)).body;
  return { events, sources, metered };
}

describe('a prompt to a coding agent', () => {
  it('of Claude Code 2.1.197 is one call, which covers its metrics', async () => {
    const { events, metered } = await replay('claude-code');
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({
      provider: 'anthropic',
      input_tokens: 50,
      cache_read: 1_000,
      cache_creation: 200,
      output_tokens: 300,
      status: 'ok',
      cost_source: 'computed',
    });
    expect(metered).toMatchObject([
      { metric: 'claude_code.token.usage', input_tokens: 1_250, output_tokens: 300, message: null },
      { metric: 'claude_code.cost.usage', input_tokens: 0, message: null },
    ]);
  });

  it('of Codex CLI 0.171.0 is one call, which covers its metrics', async () => {
    const { events, metered } = await replay('codex');
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({
      provider: 'openai',
      model: 'gpt-5.1-codex',
      input_tokens: 200,
      cache_read: 1_000,
      output_tokens: 300,
      reasoning_tok: 100,
    });
    expect(metered).toMatchObject([
      { metric: 'codex.turn.token_usage', input_tokens: 1_200, output_tokens: 300, message: null },
    ]);
  });

  it('of Gemini CLI 0.61.0 is one call, which covers its metrics', async () => {
    const { events, metered } = await replay('gemini-cli');
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({
      provider: 'google',
      model: 'gemini-2.5-flash',
      input_tokens: 200,
      cache_read: 1_000,
      output_tokens: 300,
      reasoning_tok: 100,
    });
    // The second one leaves the thoughts out.
    expect(metered).toMatchObject([
      { metric: 'gemini_cli.token.usage', input_tokens: 1_200, output_tokens: 300, message: null },
      { metric: 'gen_ai.client.token.usage', input_tokens: 1_200, output_tokens: 200, message: null },
    ]);
  });
});
