import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { alertsByEvent, listAlerts, putPolicy, type ShownAlert } from '../support/policies.js';
import { anEvent, aSpan, aTrace, ingest, send, sendJson } from '../support/requests.js';
import { eventWithText, TAKEN, tablesWith, WAYS_IN, type WayIn } from '../support/waysIn.js';

const WORD = 'forbidden-word';
const ANY_WORD = { regexes: ['(?i)no-such-thing', 'forbidden-(?i:WORD)'] };

/** Two API servers on one database: a policy stored at one must hold at the other. */
let database: TestDatabase;
let here: TestApi;
let there: TestApi;
beforeAll(async () => {
  database = await createTestDatabase({ poolMax: 16 });
  here = await startTestApi({ database });
  there = await startTestApi({ database });
});
afterAll(async () => {
  await here.close();
  await there.close();
  await database.close();
});

const store = async (api: TestApi, org: TestOrganization, events: readonly object[]) =>
  ingest(api, events, org.ingestKey);

/** The event that counts of the only call of an organization. */
async function onlyCall({ adminKey }: TestOrganization): Promise<ShownAlert> {
  const { body } = await here.get('/api/v1/events?limit=1000', adminKey);
  expect(body.events).toHaveLength(1);
  return body.events[0];
}

describe('a call that breaks a policy', () => {
  it.each(Object.keys(WAYS_IN))('is in the feed when %s has answered', async (way) => {
    const org = await here.addOrganization();
    const sendBy = WAYS_IN[way] as WayIn;
    await putPolicy(here, org, 'banned_patterns', ANY_WORD);
    await putPolicy(here, org, 'approved_models', { models: ['gpt-4o-mini'] });
    expect(TAKEN).toContain((await sendBy(there, org.ingestKey, `say ${WORD}`)).status);
    const call = await onlyCall(org);
    expect(await alertsByEvent(here, org.adminKey)).toEqual([
      `approved_models of ${call.id}`,
      `banned_patterns of ${call.id}`,
    ]);
    const [banned] = (await listAlerts(here, org.adminKey)).filter(
      ({ policy_type }) => policy_type === 'banned_patterns',
    );
    expect(banned).toMatchObject({
      kind: 'policy',
      policy_id: 1,
      severity: 'high',
      status: 'open',
      details: { pattern_index: 1, match_offset: 4 },
      subject: { type: 'event', id: call.id },
      ...Object.fromEntries(
        ['provider', 'model', 'team_id', 'feature', 'session_id', 'project_id', 'cost_usd'].map((name) => [
          name,
          call[name],
        ]),
      ),
      event_timestamp: call.timestamp,
    });
  });

  it.each(Object.keys(WAYS_IN))(
    'is judged by its prompts where payloads are dropped, by %s; the text is stored nowhere',
    async (way) => {
      const org = await here.addOrganization();
      await send(here, {
        method: 'PATCH',
        path: '/api/v1/organization/settings',
        key: org.adminKey,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ drop_payloads: true }),
      });
      await putPolicy(there, org, 'banned_patterns', { regexes: ['forbidden.word'] });
      expect(TAKEN).toContain((await (WAYS_IN[way] as WayIn)(here, org.ingestKey, `say ${WORD}`)).status);
      const call = await onlyCall(org);
      expect(await alertsByEvent(here, org.adminKey)).toEqual([`banned_patterns of ${call.id}`]);
      expect(await tablesWith(WORD, here, org.orgId)).toEqual([]);
      const { rows } = await database.superuser.query('select prompt_hash from events where org_id = $1', [
        org.orgId,
      ]);
      expect(rows).toEqual([{ prompt_hash: null }]);
    },
  );

  it('is judged by the key that it was made with where payloads are dropped, and that with them', async () => {
    const org = await here.addOrganization();
    await send(here, {
      method: 'PATCH',
      path: '/api/v1/organization/settings',
      key: org.adminKey,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ drop_payloads: true }),
    });
    await putPolicy(there, org, 'key_environment_check', {
      prod_key_prefixes: ['sk-live-'],
      allowed_envs: ['production'],
    });
    const _service = { environment: 'staging', api_key_prefix: 'sk-live-abc' };
    await store(here, org, [anEvent({ _service })]);
    expect((await listAlerts(here, org.adminKey)).map(({ details }) => details)).toEqual([
      { environment: 'staging', key_prefix: 'sk-live-abc' },
    ]);
  });

  it('has one alert, however often the call is sent, in one request, in several, at several servers', async () => {
    const org = await here.addOrganization();
    await putPolicy(here, org, 'banned_patterns', ANY_WORD);
    const event = eventWithText(WORD);
    const sent = await there.post('/api/v1/ingest/events', { events: [event, event] }, org.ingestKey);
    expect(sent.body).toMatchObject({ accepted: 2, duplicates: 1 });
    await Promise.all([here, there, here].map((api) => store(api, org, [event])));
    expect(await listAlerts(here, org.adminKey)).toHaveLength(1);
  });

  it('has no new alert when it is sent again after the policy has changed: it was stored before', async () => {
    const org = await here.addOrganization();
    const event = eventWithText(WORD);
    await store(here, org, [event]);
    await putPolicy(here, org, 'banned_patterns', ANY_WORD);
    await putPolicy(here, org, 'approved_models', { models: ['other'] });
    await store(there, org, [event]);
    expect(await listAlerts(here, org.adminKey)).toEqual([]);
  });

  it('and is not stored has no alert', async () => {
    const org = await here.addOrganization();
    await putPolicy(here, org, 'approved_models', { models: ['other'] });
    const { body } = await here.post(
      '/api/v1/ingest/events',
      { events: [anEvent({ input_tokens: -1 }), anEvent({ model: 'other' })] },
      org.ingestKey,
    );
    expect(body).toMatchObject({ accepted: 1, rejected: [{ index: 0 }] });
    expect(await listAlerts(here, org.adminKey)).toEqual([]);
  });

  it('has an alert in its organization alone', async () => {
    const [one, other] = [await here.addOrganization(), await here.addOrganization()];
    await putPolicy(here, one, 'approved_models', { models: ['other'] });
    await Promise.all([store(there, one, [anEvent()]), store(there, other, [anEvent()])]);
    expect(await listAlerts(here, one.adminKey)).toHaveLength(1);
    expect(await listAlerts(here, other.adminKey)).toEqual([]);
  });

  it('has an alert with the project that it is of, for the keys of that workspace too', async () => {
    const org = await here.addOrganization();
    await putPolicy(here, org, 'approved_models', { models: ['other'] });
    const workspaceId = await here.addWorkspace(org.orgId, 'mine');
    const [sender, reader] = [
      await here.addKey(org.orgId, 'ingest', { workspaceId }),
      await here.addKey(org.orgId, 'member', { workspaceId }),
    ];
    await ingest(there, [anEvent({ request_id: 'mine' })], sender);
    await ingest(there, [anEvent({ request_id: 'named', project_id: 'theirs' })], org.ingestKey);
    await ingest(there, [anEvent({ request_id: 'none' })], org.ingestKey);
    const projects = (await listAlerts(here, org.adminKey)).map(({ project_id }) => project_id ?? 'none');
    expect(projects.sort()).toEqual(['mine', 'none', 'theirs']);
    expect((await listAlerts(there, reader)).map(({ project_id }) => project_id)).toEqual(['mine']);
  });
});

describe('an unknown value of a call', () => {
  it('breaks no policy: no price, no environment; a cost is compared to the last digit', async () => {
    const org = await here.addOrganization();
    await putPolicy(here, org, 'approval_required_threshold_cents', { threshold_cents: 29 });
    await putPolicy(here, org, 'key_environment_check', {
      prod_key_prefixes: ['sk-live-', 'tu_live_'],
      allowed_envs: ['production'],
    });
    await store(there, org, [
      anEvent({ request_id: 'unpriced', model: 'no-such-model-at-all', input_tokens: 10 ** 9 }),
      anEvent({ request_id: 'unmetered', input_tokens: undefined, output_tokens: undefined }),
      anEvent({ request_id: 'below', cost_usd: 0.289999999999 }),
      anEvent({ request_id: 'at', cost_usd: 0.29, model: 'no-such-model-at-all' }),
      anEvent({ request_id: 'allowed', environment: 'production' }),
      anEvent({ request_id: 'own key', environment: 'staging' }),
      anEvent({
        request_id: 'test key',
        _service: { environment: 'staging', api_key_prefix: 'sk-test-abc' },
      }),
      anEvent({
        request_id: 'live key',
        payload: { _service: { environment: 'staging', api_key_prefix: 'sk-live-abc' } },
      }),
      anEvent({ request_id: 'live key, nowhere', _service: { api_key_prefix: 'sk-live-abc' } }),
    ]);
    const { body } = await here.get('/api/v1/events?limit=100', org.adminKey);
    const requestOf = new Map(body.events.map((event: ShownAlert) => [event.id, event.request_id]));
    const told = (await listAlerts(here, org.adminKey)).map((alert) => [
      requestOf.get(alert.event_id),
      alert.policy_type,
      alert.details,
    ]);
    expect(told.sort()).toEqual([
      ['at', 'approval_required_threshold_cents', { cost_cents: 29, threshold_cents: 29 }],
      ['live key', 'key_environment_check', { environment: 'staging', key_prefix: 'sk-live-abc' }],
      [
        'own key',
        'key_environment_check',
        { environment: 'staging', key_prefix: expect.stringMatching(/^tu_live_[0-9A-Za-z]{10}$/) },
      ],
    ]);
    const metrics = (await there.get('/metrics')).body as string;
    const count = (type: string, reason: string) =>
      Number(
        new RegExp(
          `^trueup_policy_unjudged_total\\{policy_type="${type}",reason="${reason}"\\} (\\d+)$`,
          'm',
        ).exec(metrics)?.[1] ?? 0,
      );
    // "below", "at", "unpriced", "unmetered" and "live key, nowhere" name no environment.
    expect(count('key_environment_check', 'environment_unknown')).toBeGreaterThanOrEqual(5);
    expect(count('approval_required_threshold_cents', 'cost_unknown')).toBeGreaterThanOrEqual(2);
    expect(metrics).toMatch(/^trueup_policy_alerts_total\{policy_type="key_environment_check"\} [1-9]/m);
    expect(metrics).not.toMatch(/trueup_policy_[a-z_]+\{[^}]*(?:gpt|alr_|key_[0-9A-Z]|org)/);
  });
});

describe('a policy that was put at one server', () => {
  it.each(Object.keys(WAYS_IN))('holds for the next call by %s at the other one', async (way) => {
    const org = await here.addOrganization();
    const sendBy = (api: TestApi) => (WAYS_IN[way] as WayIn)(api, org.ingestKey, WORD);
    const told = async () => (await listAlerts(here, org.adminKey)).length;
    await sendBy(there);
    expect(await told()).toBe(0);
    await putPolicy(here, org, 'banned_patterns', ANY_WORD);
    await sendBy(there);
    expect(await told()).toBe(1);
    await putPolicy(there, org, 'banned_patterns', { regexes: [] });
    await sendBy(here);
    expect(await told()).toBe(1);
    await putPolicy(there, org, 'banned_patterns', ANY_WORD);
    await putPolicy(here, org, 'banned_patterns', ANY_WORD, false);
    await sendBy(there);
    expect(await told()).toBe(1);
  });

  it('and changed again and again under load, judges every call that is sent after an answer', {
    timeout: 300_000,
  }, async () => {
    const org = await here.addOrganization();
    let isStopped = false;
    const load = Array.from({ length: 4 }, async (_, lane) => {
      while (!isStopped)
        await store(lane % 2 === 0 ? here : there, org, [
          eventWithText('harmless'),
          eventWithText('harmless'),
        ]);
    });
    const modelOf = (round: number) => `model-of-${round}`;
    for (let round = 0; round < 12; round += 1) {
      await putPolicy(round % 3 === 0 ? here : there, org, 'banned_patterns', {
        regexes: [`round-${round}-only`],
      });
      await Promise.all(
        [here, there].map((api) =>
          store(api, org, [
            eventWithText(`this is round-${round}-only`, { model: modelOf(round) }),
            eventWithText(`this is round-${round - 1}-only`, { model: modelOf(round) }),
          ]),
        ),
      );
    }
    isStopped = true;
    await Promise.all(load);
    const told = (await listAlerts(here, org.adminKey)).map(({ model }) => model);
    const expected = Array.from({ length: 12 }, (_, round) => [modelOf(round), modelOf(round)]).flat();
    expect(told.sort()).toEqual(expected.sort());
  });

  it('is skipped where it names an invalid pattern; the others hold, and the operator sees the count', async () => {
    const org = await here.addOrganization();
    const { warnings } = await putPolicy(here, org, 'banned_patterns', { regexes: ['(?=x)', '(', WORD] });
    expect(warnings).toHaveLength(2);
    await store(there, org, [eventWithText(WORD)]);
    expect((await listAlerts(here, org.adminKey)).map(({ details }) => details)).toEqual([
      { pattern_index: 2, match_offset: 0 },
    ]);
    expect((await there.get('/metrics')).body).toMatch(/^trueup_policy_regex_skipped_total [2-9]/m);
  });

  it('and that was corrupted by hand in the database keeps no call from being stored', async () => {
    const org = await here.addOrganization();
    await putPolicy(here, org, 'banned_patterns', ANY_WORD);
    await putPolicy(here, org, 'approved_models', { models: ['other'] });
    await database.superuser.query(
      `update policies set config = '{"regexes": ["("]}' where org_id = $1 and policy_type = 'banned_patterns'`,
      [org.orgId],
    );
    await store(there, org, [eventWithText(WORD)]);
    expect((await listAlerts(here, org.adminKey)).map(({ policy_type }) => policy_type)).toEqual([
      'approved_models',
    ]);
  });
});

describe('a webhook endpoint that was made, changed or removed at one server', () => {
  it('is sent the next alert of the other one, as long as it wants alerts', async () => {
    const org = await here.addOrganization();
    await putPolicy(here, org, 'approved_models', { models: ['other'] });
    const ask = (api: TestApi, method: string, path: string, json?: object) =>
      sendJson(api, { method, path: `/api/v1/webhook-endpoints${path}`, key: org.adminKey, json });
    const wanted: string[] = [];
    const alertBy = async (api: TestApi, isWanted: boolean) => {
      const before = new Set((await listAlerts(api, org.adminKey)).map(({ id }) => id));
      await store(api, org, [anEvent()]);
      const [fresh] = (await listAlerts(api, org.adminKey)).filter(({ id }) => !before.has(id));
      if (isWanted) wanted.push(fresh?.id);
    };
    await alertBy(there, false);
    const { body } = await ask(here, 'POST', '', { url: 'https://hooks.example.com/alerts' });
    await alertBy(there, true);
    await ask(there, 'PATCH', `/${body.id}`, { event_types: ['gap_run.completed'] });
    await alertBy(here, false);
    await ask(here, 'PATCH', `/${body.id}`, { event_types: ['alert.created'] });
    await alertBy(there, true);
    const { deliveries } = (await ask(here, 'GET', `/${body.id}/deliveries?limit=100`)).body;
    await ask(there, 'DELETE', `/${body.id}`);
    await alertBy(here, false);
    const { rows } = await database.superuser.query<{ body: string }>(
      'select body from webhook_messages where org_id = $1',
      [org.orgId],
    );
    const told = rows.map((row) => JSON.parse(row.body).data.alert_id);
    expect(told.sort()).toEqual(wanted.sort());
    expect(deliveries.map(({ type }: ShownAlert) => type)).toEqual(['alert.created', 'alert.created']);
  });
});

describe('prompts', () => {
  it('are searched each on its own in their first 512 characters, however many a call has', async () => {
    const org = await here.addOrganization();
    await putPolicy(here, org, 'banned_patterns', { regexes: ['needle$'] });
    const filler = (length: number) => 'x'.repeat(length);
    const messages = (texts: string[]) => ({ messages: texts.map((content) => ({ role: 'user', content })) });
    const harmless = Array.from({ length: 300 }, (_, index) => `prompt ${index}`);
    await store(there, org, [
      anEvent({ request_id: 'inside', payload: messages([`${filler(506)}needle`]) }),
      anEvent({ request_id: 'cut off', payload: messages([`${filler(507)}needle`]) }),
      anEvent({ request_id: 'across two', payload: messages(['nee', 'dle']) }),
      anEvent({ request_id: 'stripped first', payload: messages([`${'é'.repeat(600)}needle`]) }),
      anEvent({ request_id: 'the last of many', payload: messages([...harmless, 'needle']) }),
      anEvent({ request_id: 'system', payload: { messages: [{ role: 'system', content: 'needle' }] } }),
      anEvent({ request_id: randomUUID() }),
    ]);
    const { body } = await here.get('/api/v1/events?limit=100', org.adminKey);
    const requestOf = new Map(body.events.map((event: ShownAlert) => [event.id, event.request_id]));
    const told = (await listAlerts(here, org.adminKey)).map(({ event_id }) => requestOf.get(event_id));
    expect(told.sort()).toEqual(['inside', 'stripped first', 'the last of many']);
  });

  it('of two spans of one call in one request count for the call that counts', async () => {
    const org = await here.addOrganization();
    await putPolicy(here, org, 'banned_patterns', ANY_WORD);
    const traceId = randomUUID().replaceAll('-', '');
    const outer = aSpan({ 'gen_ai.input.messages': WORD }, { traceId, spanId: 'a'.repeat(16) });
    const inner = aSpan(
      { 'gen_ai.response.id': 'chatcmpl-1', 'gen_ai.input.messages': 'harmless' },
      { traceId, spanId: 'b'.repeat(16), parentSpanId: 'a'.repeat(16) },
    );
    await there.post('/v1/traces', aTrace(outer, inner), org.ingestKey);
    const call = await onlyCall(org);
    expect(call.request_id).toBe('chatcmpl-1');
    expect(await alertsByEvent(here, org.adminKey)).toEqual([`banned_patterns of ${call.id}`]);
  });
});
