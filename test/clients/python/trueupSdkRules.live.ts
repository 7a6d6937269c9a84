/** Rules of enforcement before calls of the official Python clients, and the example of the package's README. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startScriptedApi } from '../../fakes/scriptedApi.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { readEvents } from '../support/observedEvents.js';
import { CLIENT_VERSIONS, type ClientKind, installClients, runSdkProgram } from '../support/sdkRuns.js';

const INSTALL_TIME_MS = 300_000;
const CASE_TIME_MS = 120_000;
const README = new URL('../../../sdk/python/README.md', import.meta.url);
const KINDS: readonly ClientKind[] = ['sync', 'async'];
/** Clients, and the model that each of their calls names. */
const MODELS: Record<string, string> = {
  openai: 'gpt',
  anthropic: 'claude',
  google: 'gemini',
  mistral: 'mistral',
  cohere: 'command',
  bedrock: 'nova',
};

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api?.close());

async function addRule(organization: TestOrganization, rule: object): Promise<void> {
  const made = await api.post('/api/v1/enforcement-rules', rule, organization.adminKey);
  expect(made.status, JSON.stringify(made.body)).toBe(201);
}

for (const version of CLIENT_VERSIONS) {
  describe(`rules before calls of the Python clients ${version.name}`, () => {
    let python: string;
    beforeAll(() => {
      python = installClients(version);
    }, INSTALL_TIME_MS);

    it.each(KINDS)(
      '%s: a blocked call never reaches the provider, and a downgraded one reaches it with the other model',
      async (kind) => {
        const organization = await api.addOrganization(`rules ${version.name} ${kind}`);
        await addRule(organization, { type: 'token_ceiling', config: { max_tokens: 500 } });
        for (const model of [...Object.values(MODELS), 'embedding'])
          await addRule(organization, {
            type: 'model_downgrade',
            config: { to_model: `${model}-small` },
            scope: { model: `${model}-large` },
          });
        const provider = await startScriptedApi([]);
        const clients = Object.keys(MODELS).filter((name) => kind === 'sync' || name !== 'bedrock');
        let ended: Record<string, string[]>;
        try {
          const settings = { kind, clients, port: Number(new URL(provider.origin).port) };
          const environment = { TRUEUP_URL: api.baseUrl, TRUEUP_KEY: organization.ingestKey };
          ended = JSON.parse(await runSdkProgram(python, 'trueup_sdk_rules.py', settings, environment));
        } finally {
          await provider.close();
        }
        expect(Object.keys(ended).length).toBeGreaterThan(20);
        expect(ended).toEqual(
          Object.fromEntries(Object.keys(ended).map((name) => [name, ['blocked by token_ceiling', 'sent']])),
        );
        const sent = provider.requests.map(({ path, body }) => `${path} ${body}`);
        expect(sent.filter((text) => text.includes('xxxx'))).toEqual([]);
        expect(sent.filter((text) => text.includes('-large'))).toEqual([]);
        const events = await readEvents(api.baseUrl, organization.adminKey, Date.now());
        const byStatus = (status: string) => events.filter((event) => event.status === status);
        // Each method once with a model of its own and once with one that a rule replaces.
        expect(byStatus('blocked')).toHaveLength(Object.keys(ended).length);
        expect(byStatus('error')).toHaveLength(Object.keys(ended).length);
        expect(byStatus('error').filter(({ model }) => model.endsWith('-small'))).toHaveLength(
          Object.keys(ended).length / 2,
        );
      },
      CASE_TIME_MS,
    );

    it(
      "runs the example of the package's README as it is there",
      async () => {
        const readme = readFileSync(README, 'utf8');
        const example = /```python\n(from openai import[\s\S]*?)```/.exec(readme)?.[1];
        const organization = await api.addOrganization(`readme ${version.name}`);
        const usage = { prompt_tokens: 1_000, completion_tokens: 0, total_tokens: 1_000 };
        const message = { role: 'assistant', content: 'Hello' };
        const provider = await startScriptedApi([
          {
            path: '/v1/chat/completions',
            json: {
              id: 'chatcmpl-readme',
              object: 'chat.completion',
              created: 1_790_000_000,
              model: 'gpt-4o-mini',
              choices: [{ index: 0, message, finish_reason: 'stop' }],
              usage,
            },
          },
        ]);
        try {
          await runSdkProgram(
            python,
            'readme_example.py',
            { example },
            {
              TRUEUP_URL: api.baseUrl,
              TRUEUP_KEY: organization.ingestKey,
              OPENAI_API_KEY: 'sk-test',
              OPENAI_BASE_URL: `${provider.origin}/v1`,
            },
          );
        } finally {
          await provider.close();
        }
        const events = await readEvents(api.baseUrl, organization.adminKey, Date.now());
        expect(events).toMatchObject([
          { request_id: 'chatcmpl-readme', team_id: 'growth', feature: 'search', usd: '0.00015' },
        ]);
      },
      CASE_TIME_MS,
    );
  });
}
