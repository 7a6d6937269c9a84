import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { createTestDatabase, type TestDatabase } from '../../support/database.js';
import { anAttribute, anEvent, aSpan, aTrace, send } from '../support/requests.js';
import {
  eventWithText as eventWith,
  TAKEN,
  tablesWith as tablesHolding,
  WAYS_IN,
  type WayIn,
} from '../support/waysIn.js';

const SETTINGS = '/api/v1/organization/settings';
const JSON_TYPE = { 'content-type': 'application/json' };
const SAID = 'what-the-call-said';

/** Two API servers on one database: a setting is changed at one and must hold at the other. */
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

async function change(org: TestOrganization, settings: object, api = here): Promise<void> {
  const answer = await send(api, {
    method: 'PATCH',
    path: SETTINGS,
    key: org.adminKey,
    headers: JSON_TYPE,
    body: JSON.stringify(settings),
  });
  expect(answer.status).toBe(200);
}

const eventWithText = (overrides: object = {}) => eventWith(SAID, overrides);

const payloadsOf = async (org: TestOrganization): Promise<unknown[]> =>
  (
    await here.get('/api/v1/events?include_payload=true&include_superseded=true&limit=1000', org.adminKey)
  ).body.events.map((event: Record<string, unknown>) => [event.payload, event.tool_input, event.tool_output]);

const tablesWith = (text: string, { orgId }: TestOrganization) => tablesHolding(text, here, orgId);

describe('drop_payloads', () => {
  it.each(Object.keys(WAYS_IN))(
    'applies to the next call by %s, sent to another server than the one that was changed',
    async (way) => {
      const org = await here.addOrganization();
      const store = (api: TestApi) => (WAYS_IN[way] as WayIn)(api, org.ingestKey, SAID);
      expect(TAKEN).toContain((await store(there)).status);
      expect(JSON.stringify(await payloadsOf(org))).toContain(SAID);
      await change(org, { drop_payloads: true });
      await database.superuser.query('delete from event_payloads where org_id = $1', [org.orgId]);
      for (const api of [there, here]) expect(TAKEN).toContain((await store(api)).status);
      const payloads = await payloadsOf(org);
      expect(payloads).toEqual([1, 2, 3].map(() => [null, null, null]));
      expect(await tablesWith(SAID, org)).toEqual([]);
      await change(org, { drop_payloads: null }, there);
      expect(TAKEN).toContain((await store(here)).status);
      expect(await tablesWith(SAID, org)).toEqual(['event_payloads']);
    },
  );

  it('keeps labels, usage as received and what the call cost; and the payloads that were stored before', async () => {
    const org = await here.addOrganization();
    const store = (request_id: string) =>
      there.post(
        '/api/v1/ingest/events',
        {
          events: [
            eventWithText({
              request_id,
              team_id: 'search',
              input_tokens: undefined,
              output_tokens: undefined,
              usage: { prompt_tokens: 7, completion_tokens: 3 },
            }),
          ],
        },
        org.ingestKey,
      );
    await store('before');
    await change(org, { drop_payloads: true });
    await store('after');
    const { events } = (await here.get('/api/v1/events?include_payload=true', org.adminKey)).body;
    const [before, after] = ['before', 'after'].map((id) =>
      events.find((event: { request_id: string }) => event.request_id === id),
    );
    expect(before.payload).not.toBeNull();
    expect({ ...after, payload: 0, tool_input: 0, tool_output: 0 }).toEqual({
      ...before,
      payload: 0,
      tool_input: 0,
      tool_output: 0,
      ...Object.fromEntries(
        ['id', 'request_id', 'api_key_hash', 'timestamp', 'end_at', 'ingested_at'].map((name) => [
          name,
          after[name],
        ]),
      ),
    });
    expect(after).toMatchObject({ environment: 'production', team_id: 'search', payload: null });
    const { rows } = await database.superuser.query('select usage_raw from events where org_id = $1', [
      org.orgId,
    ]);
    expect(rows.map(({ usage_raw }) => JSON.parse(usage_raw))).toEqual(
      [1, 2].map(() => ({ prompt_tokens: 7, completion_tokens: 3 })),
    );
  });

  it('holds for a report that completes a call that was stored with its payload, whichever of the two is the richer', async () => {
    for (const richer of [true, false]) {
      const org = await here.addOrganization();
      const tell = (text: string, more: Record<string, number>) =>
        there.post(
          '/v1/traces',
          aTrace(aSpan({ 'gen_ai.response.id': 'resp_1', 'some.attribute': text, ...more })),
          org.ingestKey,
        );
      const rich = { 'gen_ai.usage.cache_read.input_tokens': 10 };
      await tell('told-before', richer ? {} : rich);
      await change(org, { drop_payloads: true });
      await tell('told-after', richer ? rich : {});
      const { body } = await here.get('/api/v1/events?include_superseded=true', org.adminKey);
      expect(
        body.events.filter((event: { superseded_by: string | null }) => event.superseded_by === null),
      ).toHaveLength(1);
      expect(body.events).toHaveLength(2);
      expect(await tablesWith('told-after', org)).toEqual([]);
      expect(await tablesWith('told-before', org)).toEqual(['event_payloads']);
    }
  });

  it('is one organization’s: another one’s payloads stay', async () => {
    const [one, other] = [await here.addOrganization(), await here.addOrganization()];
    await change(one, { drop_payloads: true });
    const store = WAYS_IN['events of a wrapper'] as WayIn;
    await Promise.all([one, other].map(({ ingestKey }) => store(there, ingestKey, SAID)));
    expect(await tablesWith(SAID, one)).toEqual([]);
    expect(await tablesWith(SAID, other)).toEqual(['event_payloads']);
  });

  it('changed again and again under load, is obeyed by every call that is sent after an answer', {
    timeout: 300_000,
  }, async () => {
    const org = await here.addOrganization();
    let stopped = false;
    const load = Array.from({ length: 4 }, async (_, lane) => {
      while (!stopped)
        await (lane % 2 === 0 ? here : there).post(
          '/api/v1/ingest/events',
          { events: [anEvent(), anEvent()] },
          org.ingestKey,
        );
    });
    for (let round = 0; round < 12; round += 1) {
      const drop = round % 2 === 0;
      await change(org, { drop_payloads: drop }, round % 3 === 0 ? here : there);
      const text = `round-${round}-said`;
      const answers = await Promise.all(
        [here, there].map((api) =>
          api.post('/api/v1/ingest/events', { events: [anEvent({ payload: { text } })] }, org.ingestKey),
        ),
      );
      expect(answers.map(({ status }) => status)).toEqual([202, 202]);
      expect(await tablesWith(text, org), text).toEqual(drop ? [] : ['event_payloads']);
    }
    stopped = true;
    await Promise.all(load);
  });
});

describe('counted_scopes', () => {
  const trace = (service: string, scope: string, ...spans: unknown[]) => ({
    resourceSpans: [
      {
        resource: { attributes: service === '' ? [] : [anAttribute('service.name', service)] },
        scopeSpans: [{ scope: { name: scope }, spans }],
      },
    ],
  });

  it('excludes the other scopes of a service everywhere, on every server, and ingest health shows it', async () => {
    const org = await here.addOrganization();
    const tell = async (api: TestApi, service: string, scope: string) =>
      (await api.post('/v1/traces', trace(service, scope, aSpan()), org.ingestKey)).body;
    expect(await tell(there, 'checkout', 'b')).toMatchObject({ accepted: 1, ignored: 0 });
    await change(org, { counted_scopes: [{ service: 'checkout', scope: 'a' }, { scope: 'c' }] });
    expect(await tell(there, 'checkout', 'a')).toMatchObject({ accepted: 1, ignored: 0 });
    expect(await tell(there, 'checkout', 'b')).toMatchObject({ accepted: 0, ignored: 1, duplicates: 0 });
    expect(await tell(here, 'search', 'b')).toMatchObject({ accepted: 1, ignored: 0 });
    expect(await tell(here, '', 'b')).toMatchObject({ accepted: 0, ignored: 1 });
    expect(await tell(here, '', 'c')).toMatchObject({ accepted: 1, ignored: 0 });
    const { body } = await here.get('/api/v1/events?include_superseded=true', org.adminKey);
    expect(body.events).toHaveLength(4);
    expect((await here.get('/api/v1/usage/summary', org.adminKey)).body.call_count).toBe(4);
    const health = (await here.get('/api/v1/ingest/health', org.adminKey)).body.sources;
    const shown = health.map(({ service, scope, calls, not_counted, rejected }: Record<string, unknown>) => [
      service,
      scope,
      calls,
      not_counted,
      rejected,
    ]);
    expect(shown).toEqual(
      expect.arrayContaining([
        ['checkout', 'a', 1, 0, {}],
        ['checkout', 'b', 1, 1, {}],
        ['search', 'b', 1, 0, {}],
        ['', 'c', 1, 0, {}],
        ['', 'b', 0, 1, {}],
      ]),
    );
    await change(org, { counted_scopes: null }, there);
    expect(await tell(here, 'checkout', 'b')).toMatchObject({ accepted: 1, ignored: 0 });
  });

  it('are named where ingest health finds a service instrumented twice', async () => {
    const org = await here.addOrganization();
    const start = BigInt(Date.now() - 3_600_000) * 1_000_000n;
    for (const [offset, scope] of [
      [0n, 'a'],
      [1_000_000n, 'b'],
    ] as const) {
      const spans = Array.from({ length: 6 }, (_, index) => {
        const at = start + BigInt(index) * 60_000_000_000n + offset;
        return aSpan({}, { startTimeUnixNano: String(at), endTimeUnixNano: String(at + 1_000n) });
      });
      await here.post('/v1/traces', trace('checkout', scope, ...spans), org.ingestKey);
    }
    const twice = async () => (await here.get('/api/v1/ingest/health', org.adminKey)).body.instrumented_twice;
    expect(await twice()).toMatchObject([
      { service: 'checkout', scopes: ['a', 'b'], calls: 6, counted_scopes: [] },
    ]);
    expect((await twice())[0].message).toContain('counted_scopes');
    await change(org, { counted_scopes: [{ service: 'checkout', scope: 'b' }] });
    expect(await twice()).toMatchObject([{ service: 'checkout', counted_scopes: ['b'], calls: 6 }]);
    expect((await twice())[0].message).toContain('only b counts now');
  });
});
