import { OpenAI } from 'openai';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { labeled, Trueup, TrueupBlockedError, withLabels } from '../../../sdk/js/src/node.js';
import { readEvents } from '../../clients/support/observedEvents.js';
import { type ScriptedApi, startScriptedApi } from '../../fakes/scriptedApi.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';

let api: TestApi;
let provider: ScriptedApi;
let organization: TestOrganization;
const USAGE = { prompt_tokens: 1_000_000, completion_tokens: 0, total_tokens: 1_000_000 };
let answers = 0;

beforeAll(async () => {
  api = await startTestApi();
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
          choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'tool_calls' }],
          usage: USAGE,
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
  organization = await api.addOrganization();
  provider.requests.length = 0;
});

async function addRule(rule: object): Promise<string> {
  const made = await api.post('/api/v1/enforcement-rules', rule, organization.adminKey);
  expect(made.status, JSON.stringify(made.body)).toBe(201);
  return made.body.id;
}

async function observed(options: ConstructorParameters<typeof Trueup>[0] = {}) {
  const trueup = new Trueup({
    url: api.baseUrl,
    apiKey: organization.ingestKey,
    flushAtExit: false,
    ...options,
  });
  expect(await trueup.ready()).toBe(true);
  const client = trueup.observe(new OpenAI({ apiKey: 'sk-test-12345', baseURL: `${provider.origin}/v1` }));
  const say = (content: string, more: object = {}) =>
    client.chat.completions.create({
      model: 'gpt-4o-mini',
      messages: [{ role: 'user', content }],
      max_tokens: 10,
      ...more,
    });
  const events = async () => {
    await trueup.close();
    // biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests assert
    return (await readEvents(api.baseUrl, organization.adminKey, Date.now())) as any[];
  };
  return { trueup, client, say, events };
}

describe('enforcement in the JavaScript package', () => {
  it('stops a call over the ceiling, raises a typed error and reports it with what it prevented', async () => {
    const id = await addRule({ type: 'token_ceiling', config: { max_tokens: 100 }, name: 'small' });
    const { say, events } = await observed({ team: 'growth', environment: 'staging' });
    const error = await say('x'.repeat(400)).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TrueupBlockedError);
    // 100 tokens in at $0.15 and 10 out at $0.60 a million.
    expect(error).toMatchObject({
      ruleId: id,
      ruleName: 'small',
      ruleType: 'token_ceiling',
      preventedUsd: '0.000021',
    });
    expect(provider.requests).toEqual([]);
    await say('short');
    const seen = await events();
    const blocked = seen.find((event) => event.status === 'blocked');
    const made = seen.find((event) => event.status === 'ok');
    expect(blocked).toMatchObject({
      status: 'blocked',
      blocked_rule_id: id,
      prevented_usd: 0.000021,
      team_id: 'growth',
      environment: 'staging',
      usd: '0',
      payload: null,
    });
    expect(made).toMatchObject({ status: 'ok', usd: '0.15', team_id: 'growth' });
  });

  it('counts the cost of a session by the price table, by async context and across parallel sessions', async () => {
    await addRule({ type: 'session_budget_usd', config: { budget_usd: 0.3 } });
    const { say, events } = await observed();
    const session = (name: string) =>
      withLabels({ session: name, user: 'u-1' }, async () => {
        await say(`1 ${name}`);
        await say(`2 ${name}`);
        return say(`3 ${name}`).then(
          () => 'made',
          (error: Error) => error.name,
        );
      });
    expect(await Promise.all([session('a'), session('b')])).toEqual([
      'TrueupBlockedError',
      'TrueupBlockedError',
    ]);
    const seen = await events();
    expect(seen.map((event) => `${event.session_id} ${event.status}`).sort()).toEqual(
      ['a', 'b'].flatMap((name) => [`${name} blocked`, `${name} ok`, `${name} ok`]),
    );
  });

  it('sends a call to the other model, and hides labels from the provider', async () => {
    const id = await addRule({
      type: 'model_downgrade',
      config: { to_model: 'gpt-4o-mini' },
      scope: { model: 'gpt-4o', feature: 'draft' },
    });
    const { client, events } = await observed();
    const body = { model: 'gpt-4o', messages: [{ role: 'user' as const, content: 'Hi' }] };
    await client.chat.completions.create({ ...body, trueup: { feature: 'draft' } } as typeof body);
    await client.chat.completions.create(labeled({ feature: 'draft', session: 's' }, body));
    await client.chat.completions.create(body, { trueup: { feature: 'other' } } as object);
    const sent = provider.requests.map((request) => JSON.parse(request.body));
    expect(sent).toEqual([{ ...body, model: 'gpt-4o-mini' }, { ...body, model: 'gpt-4o-mini' }, body]);
    const seen = await events();
    expect(seen.map((event) => `${event.model} ${event.feature}`).sort()).toEqual([
      'gpt-4o other',
      'gpt-4o-mini draft',
      'gpt-4o-mini draft',
    ]);
    expect(seen.every((event) => event.blocked_rule_id === null)).toBe(true);
    expect(id).toMatch(/^rul_/);
  });

  it('only notes what a rule in mode observe would do, and follows changes of the rules', async () => {
    const id = await addRule({ type: 'max_tool_calls', config: { max_tool_calls: 0 }, mode: 'observe' });
    const verdicts: object[] = [];
    const { trueup, say, events } = await observed({
      session: 's',
      onVerdict: (verdict) => verdicts.push(verdict),
    });
    await say('1');
    await say('2');
    expect(verdicts).toEqual([{ verdict: 'allowed', ruleId: null, observed: [id] }]);
    const patched = await fetch(`${api.baseUrl}/api/v1/enforcement-rules/${id}`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${organization.adminKey}`, 'content-type': 'application/json' },
      body: '{"mode":"block"}',
    });
    expect(patched.status).toBe(200);
    await trueup.refresh();
    // The calls of before the change are remembered.
    await expect(say('3')).rejects.toBeInstanceOf(TrueupBlockedError);
    expect((await events()).map((event) => event.status).sort()).toEqual(['blocked', 'ok', 'ok']);
  });

  it('judges streams, helpers and repeated prompts before they are made', async () => {
    await addRule({ type: 'duplicate_window_seconds', config: { window_seconds: 60 } });
    const { client, say, events } = await observed();
    await say('same');
    await expect(say('same')).rejects.toBeInstanceOf(TrueupBlockedError);
    await expect(say('same', { stream: true })).rejects.toBeInstanceOf(TrueupBlockedError);
    const helper = client.chat.completions.stream({
      model: 'gpt-4o-mini',
      messages: [{ role: 'user', content: 'same' }],
      max_tokens: 10,
    });
    await expect(helper.finalContent()).rejects.toBeInstanceOf(Error);
    await say('another');
    expect(provider.requests).toHaveLength(2);
    const statuses = (await events()).map((event) => event.status);
    expect(statuses.sort()).toEqual(['blocked', 'blocked', 'blocked', 'ok', 'ok']);
  });

  it('keeps the last rules while the service is away, and makes every call without one', async () => {
    await addRule({ type: 'token_ceiling', config: { max_tokens: 100 } });
    let isAway = false;
    const errors: string[] = [];
    const trueup = new Trueup({
      url: api.baseUrl,
      apiKey: organization.ingestKey,
      flushAtExit: false,
      onError: (error) => errors.push(error.message),
      fetch: (input, init) => (isAway ? Promise.reject(new TypeError('fetch failed')) : fetch(input, init)),
    });
    await trueup.ready();
    isAway = true;
    const client = trueup.observe(new OpenAI({ apiKey: 'sk-test', baseURL: `${provider.origin}/v1` }));
    const say = (content: string) =>
      client.chat.completions.create({ model: 'gpt-4o-mini', messages: [{ role: 'user', content }] });
    expect(await trueup.refresh()).toBe(false);
    await expect(say('x'.repeat(404))).rejects.toBeInstanceOf(TrueupBlockedError);
    await say('short');
    expect(await trueup.flush()).toBe(false);
    expect(trueup.stats).toMatchObject({ recorded: 2, sent: 0, waiting: 2 });
    expect(errors.length).toBeGreaterThan(0);
    isAway = false;
    expect(await trueup.close()).toBe(true);
    expect(trueup.stats).toMatchObject({ recorded: 2, sent: 2, waiting: 0 });
    const never = new Trueup({ url: 'http://127.0.0.1:9', apiKey: 'tru_x', flushAtExit: false });
    const alone = never.observe(new OpenAI({ apiKey: 'sk-test', baseURL: `${provider.origin}/v1` }));
    const made = await alone.chat.completions.create({
      model: 'gpt-4o-mini',
      messages: [{ role: 'user', content: 'x'.repeat(500) }],
    });
    expect(made.choices).toHaveLength(1);
    await never.close(50);
  });

  it('sends prompts and answers only where it is told to', async () => {
    const silent = await observed();
    await silent.say('a secret');
    expect(JSON.stringify(await silent.events())).not.toContain('secret');
    const capturing = await observed({ capturePayloads: true });
    await capturing.say('a prompt that is captured');
    await capturing.trueup.close();
    const listed = await api.get('/api/v1/events?include_payload=true', organization.adminKey);
    expect(JSON.stringify(listed.body)).toContain('a prompt that is captured');
  });
});
