import { gunzipSync } from 'node:zlib';
import { OpenAI } from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Trueup } from '../../../sdk/js/src/node.js';
import { listAlerts, putPolicy } from '../../api/support/policies.js';
import { type ScriptedApi, startScriptedApi } from '../../fakes/scriptedApi.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';

let api: TestApi;
let provider: ScriptedApi;
let org: TestOrganization;

beforeAll(async () => {
  api = await startTestApi();
  let answers = 0;
  provider = await startScriptedApi([
    {
      path: '/chat/completions',
      get json() {
        answers += 1;
        return {
          id: `chatcmpl-${answers}`,
          object: 'chat.completion',
          created: 1_790_000_000,
          model: 'gpt-4o-mini',
          choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
          usage: { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 },
        };
      },
    },
  ]);
});
afterAll(async () => {
  await api?.close();
  await provider?.close();
});
beforeEach(async () => {
  org = await api.addOrganization();
});

/** An observed client; `sent` has the text of everything that left for the service. */
async function observed(options: ConstructorParameters<typeof Trueup>[0] = {}) {
  const sent: string[] = [];
  const paths: string[] = [];
  const trueup = new Trueup({
    url: api.baseUrl,
    apiKey: org.ingestKey,
    flushAtExit: false,
    policyVerdicts: true,
    fetch: async (input, init) => {
      paths.push(String(input).slice(api.baseUrl.length));
      const { body } = init ?? {};
      if (body) sent.push(typeof body === 'string' ? body : gunzipSync(body as Uint8Array).toString());
      return fetch(input, init);
    },
    ...options,
  });
  expect(await trueup.ready()).toBe(true);
  const client = trueup.observe(new OpenAI({ apiKey: 'sk-test', baseURL: `${provider.origin}/v1` }));
  const say = (...contents: string[]) =>
    client.chat.completions.create({
      model: 'gpt-4o-mini',
      messages: contents.map((content) => ({ role: 'user' as const, content })),
    });
  const detailsAfterAll = async () => {
    expect(await trueup.close()).toBe(true);
    return (await listAlerts(api, org.adminKey)).map(({ details }) => details);
  };
  return { trueup, client, say, sent, paths, detailsAfterAll };
}

describe('policyVerdicts in the JavaScript package', () => {
  it('makes the alert for a banned prompt, and the prompt never leaves for the service', async () => {
    await putPolicy(api, org, 'banned_patterns', { regexes: ['harmless', '(?i)project-falcon'] });
    const { say, sent, detailsAfterAll } = await observed();
    await say('nothing', 'about Project-Falcon');
    await say('nothing at all');
    expect(await detailsAfterAll()).toEqual([{ pattern_index: 1, match_offset: 6 }]);
    expect(sent.join()).toContain('policy_verdict');
    expect(sent.join()).not.toMatch(/falcon|nothing/i);
  });

  it('judges a call that a rule stops', async () => {
    await putPolicy(api, org, 'banned_patterns', { regexes: ['falcon'] });
    await api.post(
      '/api/v1/enforcement-rules',
      { type: 'token_ceiling', config: { max_tokens: 10 } },
      org.adminKey,
    );
    const { say, detailsAfterAll } = await observed();
    await expect(say(`falcon ${'x'.repeat(400)}`)).rejects.toThrow('Trueup stopped');
    expect(await detailsAfterAll()).toEqual([{ pattern_index: 0, match_offset: 0 }]);
  });

  it('works without rules, and fetches nothing more than it needs', async () => {
    await putPolicy(api, org, 'banned_patterns', { regexes: ['falcon'] });
    const { say, paths, detailsAfterAll } = await observed({ enforcement: false });
    await say('a falcon');
    expect(await detailsAfterAll()).toEqual([{ pattern_index: 0, match_offset: 2 }]);
    expect(paths).toEqual(['/api/v1/enforcement/patterns', '/api/v1/ingest/events']);
  });

  it('follows a change of the policy at the next refresh, and keeps the patterns until then', async () => {
    await putPolicy(api, org, 'banned_patterns', { regexes: ['falcon'] });
    const { say, trueup, detailsAfterAll } = await observed();
    expect(await trueup.refresh()).toBe(true);
    await say('a falcon');
    await trueup.flush();
    await putPolicy(api, org, 'banned_patterns', { regexes: ['none', 'eagle'] });
    expect(await trueup.refresh()).toBe(true);
    await say('a falcon and an eagle');
    const details = await detailsAfterAll();
    expect(details).toContainEqual({ pattern_index: 1, match_offset: 16 });
    expect(details).toHaveLength(2);
  });

  it('is off by default: no pattern is fetched and no verdict is sent', async () => {
    await putPolicy(api, org, 'banned_patterns', { regexes: ['falcon'] });
    const { say, sent, paths, detailsAfterAll } = await observed({ policyVerdicts: false });
    await say('a falcon');
    expect(await detailsAfterAll()).toEqual([]);
    expect(paths).not.toContain('/api/v1/enforcement/patterns');
    expect(sent.join()).not.toContain('policy_verdict');
  });

  it('adds no verdict where the service sees the prompts', async () => {
    await putPolicy(api, org, 'banned_patterns', { regexes: ['falcon'] });
    const { say, sent, detailsAfterAll } = await observed({ capturePayloads: true });
    await say('a falcon');
    expect(await detailsAfterAll()).toEqual([{ pattern_index: 0, match_offset: 2 }]);
    expect(sent.join()).not.toContain('policy_verdict');
  });

  it('searches a slow pattern in no more time than any other', async () => {
    await putPolicy(api, org, 'banned_patterns', { regexes: ['(a+)+$c', '(a|aa)*b{20}'] });
    const { say, detailsAfterAll } = await observed();
    const began = performance.now();
    await say(...Array.from({ length: 50 }, (_, at) => `${'a'.repeat(500)}${at}`));
    expect(performance.now() - began).toBeLessThan(5_000);
    expect(await detailsAfterAll()).toEqual([]);
  });
});
