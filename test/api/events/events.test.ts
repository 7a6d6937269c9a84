import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { anEvent, aSpan, aTime, aTrace, ingest, send } from '../support/requests.js';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

interface Listed {
  id: string;
  timestamp: string;
  request_id: string;
}

async function list(
  org: TestOrganization,
  query = '',
): Promise<{ events: Listed[] } & Record<string, unknown>> {
  const { status, body } = await api.get(`/api/v1/events${query}`, org.adminKey);
  expect(status, `${query} ${JSON.stringify(body)}`).toBe(200);
  return body;
}

const names = (page: { events: Listed[] }) => page.events.map((event) => event.request_id);

/** An organization with events r0 (newest) to r<n-1>, a second apart. */
async function withEvents(
  count: number,
  of: (index: number) => object = () => ({}),
): Promise<TestOrganization> {
  const org = await api.addOrganization();
  const events = Array.from({ length: count }, (_, index) =>
    anEvent({ request_id: `r${index}`, timestamp: aTime(index), ...of(index) }),
  );
  if (count > 0) await ingest(api, events, org.ingestKey);
  return org;
}

describe('an event', () => {
  it('has exactly the fields of the interface and the added ones, null where nothing is known', async () => {
    const org = await api.addOrganization();
    const timestamp = aTime();
    await ingest(api, [anEvent({ request_id: 'r', timestamp })], org.ingestKey);
    const [event] = (await list(org)).events;
    const { id, api_key_hash, api_key_id, ingested_at, price_gaps, ...rest } = event as Listed &
      Record<string, unknown>;
    expect(id).toMatch(/^evt_[0-9a-f]{32}$/);
    expect(api_key_hash).toMatch(/^[0-9a-f]{16}$/);
    expect(api_key_id).toBe(`key_${org.ingestKey.split('_')[2]}`);
    expect(Math.abs(Date.parse(String(ingested_at)) - Date.now())).toBeLessThan(600_000);
    expect(price_gaps).toEqual([]);
    expect(rest).toEqual({
      provider: 'openai',
      model: 'gpt-4o',
      session_id: '',
      team_id: null,
      feature: null,
      is_batch: false,
      batch_id: null,
      input_tokens: 100,
      output_tokens: 50,
      cache_read: 0,
      cache_creation: 0,
      reasoning_tok: 0,
      cached_tok: 0,
      cost_usd: 0.00075,
      duration_ms: 0,
      stop_reason: 'unknown',
      payload: null,
      timestamp: timestamp.replace(/\.(\d{3})Z$/, '.$1000Z').replace('.000000Z', 'Z'),
      request_id: 'r',
      response_model: null,
      provider_key_id: null,
      kind: 'sdk_event',
      status: 'ok',
      http_status: null,
      project_id: null,
      user_id: null,
      environment: null,
      service_tier: null,
      billed_by: 'openai',
      provider_account_id: null,
      end_at: expect.any(String),
      cache_creation_5m: null,
      cache_creation_1h: null,
      cost_source: 'computed',
      computed_cost_usd: 0.00075,
      usage_source: expect.any(String),
      input_semantics: 'disjoint',
      usage_missing: expect.any(Array),
      usage_flags: [],
      superseded_by: null,
      blocked_rule_id: null,
      prevented_usd: null,
    });
  });

  it('shows its payload, tools and _service only where they are asked for', async () => {
    const org = await api.addOrganization();
    const sent = {
      payload: { prompt: 'hi' },
      tool_input: { a: 1 },
      tool_output: 'done',
      _service: { environment: 'prod' },
    };
    await ingest(api, [anEvent(sent)], org.ingestKey);
    const [plain] = (await list(org)).events as (Listed & Record<string, unknown>)[];
    expect(plain?.payload).toBeNull();
    expect(plain).not.toHaveProperty('tool_input');
    const [whole] = (await list(org, '?include_payload=true')).events as (Listed & Record<string, unknown>)[];
    expect(whole).toMatchObject({
      payload: { prompt: 'hi', _service: { environment: 'prod' } },
      tool_input: { a: 1 },
      tool_output: 'done',
    });
    const single = await api.get(`/api/v1/events/${plain?.id}`, org.adminKey);
    expect(single.body).toEqual(plain);
    const singleWhole = await api.get(`/api/v1/events/${plain?.id}?include_payload=1`, org.adminKey);
    expect(singleWhole.body).toEqual(whole);
  });

  it('that does not exist is 404, whatever its id looks like', async () => {
    const org = await withEvents(1);
    const [event] = (await list(org)).events;
    const id = event?.id ?? '';
    for (const other of [
      'x',
      'evt_',
      id.slice(4),
      `run_${id.slice(4)}`,
      id.toUpperCase(),
      `${id}0`,
      `evt_${'0'.repeat(32)}`,
      `evt_${'f'.repeat(32)}`,
      '%00',
      '..',
      id.replace(/.$/, (c) => (c === '0' ? '1' : '0')),
    ]) {
      const answer = await send(api, { path: `/api/v1/events/${other}`, key: org.adminKey });
      expect([answer.status, answer.body.code], other).toEqual([
        404,
        other === '..' ? 'route_not_found' : 'not_found',
      ]);
    }
    expect((await api.get(`/api/v1/events/${id}/`, org.adminKey)).status).toBe(200);
  });
});

describe('the list of events', () => {
  it('is newest first, then by id, 100 by default, with what follows announced', async () => {
    const org = await withEvents(101);
    const page = await list(org);
    expect(names(page)).toEqual(Array.from({ length: 100 }, (_, index) => `r${index}`));
    expect(page).toMatchObject({ count: 100, offset: 0, has_more: true });
    const rest = await list(org, '/?offset=100');
    expect(names(rest)).toEqual(['r100']);
    expect(rest).toMatchObject({ count: 1, offset: 100, has_more: false, next_cursor: null });
    const same = await withEvents(5, () => ({ timestamp: aTime(7) }));
    const ids = (await list(same)).events.map((event) => event.id);
    expect(ids).toEqual([...ids].sort().reverse());
  });

  it('is empty for an organization without events', async () => {
    const org = await withEvents(0);
    expect(await list(org)).toEqual({ events: [], count: 0, offset: 0, has_more: false, next_cursor: null });
  });

  it('filters by each label, by several at once, and in both forms of the path', async () => {
    const labels = [
      { session_id: 's1', team_id: 't1', feature: 'f1' },
      { session_id: 's2', team_id: 't1', feature: 'f2', model: 'gpt-4o-mini' },
      { session_id: 's2', team_id: 't2', feature: 'f1', provider: 'anthropic', model: 'claude-sonnet-4-5' },
    ];
    const org = await withEvents(3, (index) => labels[index] as object);
    const cases: [string, string[]][] = [
      ['session_id=s2', ['r1', 'r2']],
      ['team_id=t1', ['r0', 'r1']],
      ['feature=f1', ['r0', 'r2']],
      ['model=gpt-4o-mini', ['r1']],
      ['provider=anthropic', ['r2']],
      ['provider=ANTHROPIC', ['r2']],
      ['team_id=t1&feature=f2', ['r1']],
      ['team_id=t2&feature=f2', []],
      ['provider=no-such-provider', []],
      ['kind=sdk_event', ['r0', 'r1', 'r2']],
      ['kind=otel_span', []],
      ['team_id=', []],
      ['team_id=T1', []],
      ['team_id=t%25', []],
    ];
    for (const [query, expected] of cases) {
      expect(names(await list(org, `?${query}`)), query).toEqual(expected);
      expect(names(await list(org, `/?${query}`)), query).toEqual(expected);
    }
  });

  it('filters by what was sent, as stripping left it', async () => {
    const org = await withEvents(2, (index) => ({ team_id: index === 0 ? 'caf\u00e9\u0000' : 'caf' }));
    for (const word of ['caf\u00e9\u0000', 'caf', 'caf\u00e9'])
      expect(names(await list(org, `?team_id=${encodeURIComponent(word)}`)), word).toEqual(['r0', 'r1']);
  });

  it('takes both bounds of a window as inside, to the microsecond, and dates as whole days', async () => {
    const times = [
      '2026-02-01T23:59:59.999999Z',
      '2026-02-02T00:00:00Z',
      '2026-02-02T12:00:00.000001Z',
      '2026-02-02T23:59:59.999999Z',
      '2026-02-03T00:00:00Z',
    ];
    const org = await withEvents(times.length, (index) => ({ timestamp: times[index] }));
    const cases: [string, number[]][] = [
      ['since=2026-02-02&until=2026-02-02', [3, 2, 1]],
      ['since=2026-02-02T12:00:00.000001Z&until=2026-02-02T12:00:00.000001Z', [2]],
      ['since=2026-02-02T12:00:00.000002Z', [4, 3]],
      ['until=2026-02-02T12:00:00Z', [1, 0]],
      ['since=2026-02-02T13:00:00.000001%2B01:00&until=2026-02-03T00:00:00', [4, 3, 2]],
      ['since=2026-02-02 13:00:00.000001+01:00&until=2026-02-02', [3, 2]],
      ['until=2026-02-01', [0]],
      ['since=9999-12-31', []],
    ];
    for (const [query, expected] of cases) {
      expect(names(await list(org, `?${query}`)), query).toEqual(expected.map((index) => `r${index}`));
    }
    for (const query of [
      'since=2026-02-03&until=2026-02-02',
      'since=2026-02-02T00:00:01Z&until=2026-02-02T00:00:00Z',
    ]) {
      const refused = await api.get(`/api/v1/events?${query}`, org.adminKey);
      expect([refused.status, refused.body.code], query).toEqual([400, 'invalid_range']);
    }
  });

  it('refuses what is no limit, offset, boolean, time or cursor', async () => {
    const wrong = [
      'limit=0',
      'limit=1001',
      'limit=ten',
      'limit=1.5',
      'limit=',
      'offset=-1',
      'offset=100001',
      'include_payload=yes',
      'include_payload=TRUE',
      'include_superseded=2',
      'since=now',
      'until=2026-13-01',
      'since=2026-02-30',
      'since=1700000000',
      'cursor=nonsense',
      `team_id=${'x'.repeat(513)}`,
    ];
    for (const query of wrong) {
      const { status, body } = await api.get(`/api/v1/events?${query}`);
      expect([status, body.code, body.errors?.[0]?.field], query).toEqual([
        400,
        'invalid_parameter',
        query.split('=')[0],
      ]);
    }
    expect((await api.get('/api/v1/events?limit=1000&offset=100000&include_payload=0')).status).toBe(200);
  });

  it('paged by cursor shows every event once while others come in; by offset it follows the current list', async () => {
    const org = await withEvents(23);
    const seen: string[] = [];
    let cursor: string | null = null;
    for (let page = 0; page < 10; page += 1) {
      const answer: Record<string, unknown> & { events: Listed[] } = await list(
        org,
        `?limit=5${cursor === null ? '' : `&cursor=${cursor}`}`,
      );
      seen.push(...names(answer));
      expect(answer.has_more).toBe(answer.next_cursor !== null);
      cursor = answer.next_cursor as string | null;
      if (cursor === null) break;
      await ingest(api, [anEvent({ request_id: `new${page}`, timestamp: aTime(-page - 1) })], org.ingestKey);
    }
    expect(seen).toEqual(Array.from({ length: 23 }, (_, index) => `r${index}`));
    expect(names(await list(org, '?limit=5&offset=4'))).toEqual(['r0', 'r1', 'r2', 'r3', 'r4']);
  });

  it('hides the other reports of a call, and shows them where they are asked for', async () => {
    const org = await api.addOrganization();
    const outer = aSpan({ 'gen_ai.response.id': undefined });
    const inner = aSpan(
      { 'gen_ai.response.id': 'resp-1' },
      { traceId: outer.traceId, parentSpanId: outer.spanId },
    );
    const answer = await api.post('/api/v1/ingest/trace', aTrace(outer, inner), org.ingestKey);
    expect(answer.body).toMatchObject({ accepted: 2, duplicates: 0 });
    const [live, ...none] = (await list(org)).events as (Listed & Record<string, unknown>)[];
    expect(none).toEqual([]);
    expect(live).toMatchObject({ request_id: 'resp-1', superseded_by: null });
    const both = (await list(org, '?include_superseded=true')).events as (Listed & Record<string, unknown>)[];
    expect(both.map((event) => event.superseded_by).sort()).toEqual([live?.id, null].sort());
    const superseded = both.find((event) => event.superseded_by !== null);
    expect((await api.get(`/api/v1/events/${superseded?.id}`, org.adminKey)).body.superseded_by).toBe(
      live?.id,
    );
    expect((await api.get('/api/v1/usage/summary', org.adminKey)).body.call_count).toBe(1);
  });
});
