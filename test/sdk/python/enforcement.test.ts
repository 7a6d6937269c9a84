import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { listAlerts, putPolicy } from '../../api/support/policies.js';
import { readEvents } from '../../clients/support/observedEvents.js';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { LineProgram } from '../../support/python.js';

let api: TestApi;
let python: LineProgram;
let organization: TestOrganization;
const USAGE = { prompt_tokens: 1_000_000, completion_tokens: 0, total_tokens: 1_000_000 };

beforeAll(async () => {
  api = await startTestApi();
  python = new LineProgram('test/sdk/python/programs/connection.py');
});
afterAll(async () => {
  await python?.close();
  await api?.close();
});
beforeEach(async () => {
  organization = await api.addOrganization();
});

async function addRule(rule: object): Promise<string> {
  const made = await api.post('/api/v1/enforcement-rules', rule, organization.adminKey);
  expect(made.status, JSON.stringify(made.body)).toBe(201);
  return made.body.id;
}

async function connect(options: object = {}): Promise<void> {
  const given = { url: api.baseUrl, api_key: organization.ingestKey, ...options };
  expect(await python.ask(['connect', given])).toBe(true);
}

interface Made {
  model?: string;
  blocked?: { rule_id: string; prevented_usd: string | null };
}

const call = (contents: string | string[], more: object = {}) =>
  python.ask<Made>([
    'call',
    { contents: [contents].flat(), model: 'gpt-4o-mini', max_output_tokens: 10, usage: USAGE, ...more },
  ]);

interface Ended {
  is_sent: boolean;
  sent: string;
  paths: string[];
  notes: object[];
  errors: string[];
  stats: { recorded: number; sent: number; waiting: number };
}

/** Ends the connection. */
async function ended(): Promise<Ended> {
  const end = await python.ask<Ended>(['shutdown', null]);
  expect(end.is_sent).toBe(true);
  return end;
}

// biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests assert
async function storedEvents(): Promise<any[]> {
  await ended();
  return readEvents(api.baseUrl, organization.adminKey, Date.now());
}

describe('enforcement in the Python package', () => {
  it('stops a call over the ceiling and reports it with what it prevented', async () => {
    const id = await addRule({ type: 'token_ceiling', config: { max_tokens: 100 }, name: 'small' });
    await connect({ team: 'growth', environment: 'staging' });
    // 100 tokens in at $0.15 and 10 out at $0.60 a million.
    const error = {
      rule_id: id,
      rule_name: 'small',
      rule_type: 'token_ceiling',
      prevented_usd: '0.000021',
    };
    expect(await call('x'.repeat(400))).toEqual({ blocked: error });
    expect(await call('short')).toEqual({ model: 'gpt-4o-mini' });
    const seen = await storedEvents();
    expect(seen.find((event) => event.status === 'blocked')).toMatchObject({
      blocked_rule_id: id,
      prevented_usd: 0.000021,
      team_id: 'growth',
      environment: 'staging',
      usd: '0',
      payload: null,
    });
    expect(seen.find((event) => event.status === 'ok')).toMatchObject({ usd: '0.15', team_id: 'growth' });
  });

  it('counts the cost of each session by the price table', async () => {
    await addRule({ type: 'session_budget_usd', config: { budget_usd: 0.3 } });
    await connect();
    for (const content of ['1', '2', '3'])
      for (const session of ['a', 'b'])
        expect((await call(content, { labels: { session } })).blocked === undefined).toBe(content !== '3');
    const seen = await storedEvents();
    expect(seen.map((event) => `${event.session_id} ${event.status}`).sort()).toEqual(
      ['a', 'b'].flatMap((name) => [`${name} blocked`, `${name} ok`, `${name} ok`]),
    );
  });

  it('sends a call of the scope to the other model', async () => {
    await addRule({
      type: 'model_downgrade',
      config: { to_model: 'gpt-4o-mini' },
      scope: { model: 'gpt-4o', feature: 'draft' },
    });
    await connect();
    for (const feature of ['draft', 'other']) await call('Hi', { model: 'gpt-4o', labels: { feature } });
    const seen = await storedEvents();
    expect(seen.map((event) => `${event.model} ${event.feature}`).sort()).toEqual([
      'gpt-4o other',
      'gpt-4o-mini draft',
    ]);
  });

  it('only notes what a rule in mode observe would do, and follows changes of the rules', async () => {
    const id = await addRule({ type: 'max_tool_calls', config: { max_tool_calls: 0 }, mode: 'observe' });
    await connect({ session: 's' });
    const tools = { stop_reason: 'tool_calls' };
    await call('1', tools);
    await call('2', tools);
    await fetch(`${api.baseUrl}/api/v1/enforcement-rules/${id}`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${organization.adminKey}`, 'content-type': 'application/json' },
      body: '{"mode":"block"}',
    });
    expect(await python.ask(['change', {}])).toBe(true);
    // The calls of before the change are remembered.
    expect((await call('3')).blocked?.rule_id).toBe(id);
    const { notes } = await ended();
    expect(notes).toEqual([
      { verdict: 'allowed', rule_id: null, observed: [id] },
      { verdict: 'blocked', rule_id: id, observed: [] },
    ]);
  });

  it('keeps the last rules while the service is away, and sends the events when it is back', async () => {
    await addRule({ type: 'duplicate_window_seconds', config: { window_seconds: 60 } });
    await connect();
    expect(await python.ask(['change', { is_away: true }])).toBe(false);
    expect((await call('same')).blocked).toBeUndefined();
    expect((await call('same')).blocked).toBeDefined();
    expect(await python.ask(['flush', null])).toBe(false);
    expect(await python.ask(['change', { is_away: false }])).toBe(true);
    const end = await ended();
    expect(end.stats).toMatchObject({ recorded: 2, sent: 2, waiting: 0 });
    expect(end.errors).toHaveLength(2);
    const seen = await readEvents(api.baseUrl, organization.adminKey, Date.now());
    expect(seen).toHaveLength(2);
  });
});

describe('policy_verdicts in the Python package', () => {
  const details = async () => (await listAlerts(api, organization.adminKey)).map((alert) => alert.details);

  it('makes the alert for a banned prompt, and the prompt never leaves for the service', async () => {
    await putPolicy(api, organization, 'banned_patterns', { regexes: ['harmless', '(?i)project-falcon'] });
    await connect({ policy_verdicts: true });
    await call(['nothing', 'about Project-Falcon']);
    await call('nothing at all');
    const { sent } = await ended();
    expect(await details()).toEqual([{ pattern_index: 1, match_offset: 6 }]);
    expect(sent).toContain('policy_verdict');
    expect(sent).not.toMatch(/falcon|nothing/i);
  });

  it('judges a call that a rule stops', async () => {
    await putPolicy(api, organization, 'banned_patterns', { regexes: ['falcon'] });
    await addRule({ type: 'token_ceiling', config: { max_tokens: 10 } });
    await connect({ policy_verdicts: true });
    expect((await call(`falcon ${'x'.repeat(400)}`)).blocked).toBeDefined();
    await ended();
    expect(await details()).toEqual([{ pattern_index: 0, match_offset: 0 }]);
  });

  it('works without rules, and fetches nothing more than it needs', async () => {
    await putPolicy(api, organization, 'banned_patterns', { regexes: ['falcon'] });
    await connect({ policy_verdicts: true, enforcement: false });
    await call('a falcon');
    const { paths } = await ended();
    expect(await details()).toEqual([{ pattern_index: 0, match_offset: 2 }]);
    expect(paths).toEqual(['api/v1/enforcement/patterns', 'api/v1/ingest/events']);
  });

  it('follows a change of the policy at the next refresh', async () => {
    await putPolicy(api, organization, 'banned_patterns', { regexes: ['falcon'] });
    await connect({ policy_verdicts: true });
    await call('a falcon');
    await python.ask(['flush', null]);
    await putPolicy(api, organization, 'banned_patterns', { regexes: ['none', 'eagle'] });
    expect(await python.ask(['change', {}])).toBe(true);
    await call('a falcon and an eagle');
    await ended();
    const found = await details();
    expect(found).toContainEqual({ pattern_index: 1, match_offset: 16 });
    expect(found).toHaveLength(2);
  });

  it.each([{}, { policy_verdicts: true, capture_payloads: true }])(
    'sends no verdict where it is not wanted or the service sees the prompts (%j)',
    async (options) => {
      await putPolicy(api, organization, 'banned_patterns', { regexes: ['falcon'] });
      await connect(options);
      await call('a falcon');
      const { sent } = await ended();
      expect(sent).not.toContain('policy_verdict');
      expect(await details()).toHaveLength('capture_payloads' in options ? 1 : 0);
    },
  );

  it('searches a slow pattern in no more time than any other', async () => {
    await putPolicy(api, organization, 'banned_patterns', { regexes: ['(a+)+$c', '(a|aa)*b{20}'] });
    await connect({ policy_verdicts: true });
    const began = performance.now();
    await call(Array.from({ length: 50 }, (_, at) => `${'a'.repeat(500)}${at}`));
    await ended();
    expect(performance.now() - began).toBeLessThan(10_000);
    expect(await details()).toEqual([]);
  });
});
