import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { encodeNestedValue, encodeTraceMessage } from '../support/otlpMessage.js';
import { anAttribute, anEvent, aSpan, aTime, aTrace, type RawAnswer, send } from '../support/requests.js';

/** Poison inputs by their number in docs/reliability.md. */
let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const JSON_TYPE = { 'content-type': 'application/json' };
const JSON_PATHS = ['/api/v1/ingest/trace', '/api/v1/ingest/events', '/api/v1/ingest/observability'];

function post(
  org: TestOrganization,
  path: string,
  body: Buffer | string | Buffer[],
  headers: Record<string, string> = {},
): Promise<RawAnswer> {
  return send(api, { path, body, headers: { ...JSON_TYPE, ...headers }, key: org.ingestKey });
}

async function listed(org: TestOrganization): Promise<Record<string, unknown>[]> {
  return (await api.get('/api/v1/events?limit=1000&include_payload=true', org.adminKey)).body.events;
}

describe('P-13: JSON that nests too deep', () => {
  it('is 400 json_too_deep from the 65th level on, before anything walks it', async () => {
    const org = await api.addOrganization();
    const nested = (levels: number, open = '[', close = ']') => open.repeat(levels) + close.repeat(levels);
    for (const path of JSON_PATHS) {
      for (const body of [
        nested(65),
        nested(20_000),
        nested(1_000_000),
        '['.repeat(1_000_000),
        nested(20_000, '{"a":', '}').replace(':}', ':1}'),
      ]) {
        const answer = await post(org, path, body);
        expect([answer.status, answer.body.code], `${path} ${body.length}`).toEqual([400, 'json_too_deep']);
      }
      expect((await post(org, path, nested(64))).body.code, path).not.toBe('json_too_deep');
    }
    // {"events":[{"payload": …}]} is three levels around the payload; brackets in a text are none.
    const event = (levels: number) =>
      JSON.stringify({ events: [anEvent({ payload: { text: '[['.repeat(500), deep: 0 } })] }).replace(
        '"deep":0',
        `"deep":${nested(levels)}`,
      );
    expect((await post(org, '/api/v1/ingest/events', event(60))).body).toMatchObject({ accepted: 1 });
    expect((await post(org, '/api/v1/ingest/events', event(61))).body.code).toBe('json_too_deep');
    expect((await listed(org)).length).toBe(1);
  });

  it('as protobuf, or as text inside an attribute, neither breaks the service nor the other spans', async () => {
    const org = await api.addOrganization();
    const answer = await send(api, {
      path: '/v1/traces',
      key: org.ingestKey,
      body: encodeNestedValue(3_000),
      headers: { 'content-type': 'application/x-protobuf' },
    });
    expect([answer.status, answer.body.code]).toEqual([400, 'invalid_protobuf']);
    const text = aSpan({
      'langfuse.observation.input': '['.repeat(20_000),
      'gen_ai.input.messages': '{"a":'.repeat(20_000),
    });
    expect((await post(org, '/api/v1/ingest/trace', JSON.stringify(aTrace(text)))).body).toMatchObject({
      accepted: 1,
    });
  });
});

describe('P-14: more of everything than clients send', () => {
  it('over 10,000 items are 413 and nothing is stored; within, a call keeps what is mapped and 256 attributes', async () => {
    const org = await api.addOrganization();
    const span = `{"startTimeUnixNano":"1","endTimeUnixNano":"2"}`;
    const spans = `{"resourceSpans":[{"scopeSpans":[{"spans":[${Array(100_000).fill(span).join(',')}]}]}]}`;
    const array = `[${Array(1_000_000).fill('1').join(',')}]`;
    for (const [path, body] of [
      ['/api/v1/ingest/trace', spans],
      ['/api/v1/ingest/events', array],
      ['/api/v1/ingest/events', `{"events":${array}}`],
    ] as const) {
      const answer = await post(org, path, body);
      expect([answer.status, answer.body.code], path).toEqual([413, 'too_many_items']);
    }
    const keys = `{"events":[${JSON.stringify(anEvent()).slice(0, -1)},"payload":{${Array.from({ length: 500_000 }, (_, index) => `"k${index}":1`).join(',')}}}]}`;
    expect((await post(org, '/api/v1/ingest/events', keys)).body).toMatchObject({ accepted: 1 });
    const many = Array.from({ length: 50_000 }, (_, index) => anAttribute(`custom.${index}`, index));
    const last = aSpan({ 'gen_ai.usage.input_tokens': undefined }, {});
    (last.attributes as object[]).push(...many, anAttribute('gen_ai.usage.input_tokens', 77));
    expect((await post(org, '/api/v1/ingest/trace', JSON.stringify(aTrace(last)))).body).toMatchObject({
      accepted: 1,
    });
    const events = await listed(org);
    expect(events.length).toBe(2);
    const [traced] = events.filter((event) => event.kind === 'otel_span');
    expect(traced?.input_tokens).toBe(77);
    expect(JSON.stringify(traced?.payload).match(/custom\./g)?.length).toBeLessThanOrEqual(256);
    const [sdk] = events.filter((event) => event.kind === 'sdk_event');
    expect(sdk?.payload).toMatchObject({ _truncated: true });
  });
});

describe('P-15: texts that are no plain ASCII', () => {
  it('are accepted and stripped, their keys too; what cannot be decoded is dropped', async () => {
    const org = await api.addOrganization();
    const odd = 'a\u0000b\u0007c\u001b[31md\u007fe\u0085f\u200bg\u202eh\ufeffi\u{1f600}j\tk\nl\rm caf\u00e9';
    const plain = 'abc[31mdefghij\tk\nl\rm caf';
    const event = anEvent({
      model: `gpt${odd}`,
      team_id: odd,
      session_id: odd,
      payload: { [odd]: [odd, { [`x${odd}`]: odd }], 'k\u0000': 1, k: 2 },
      tool_input: odd,
      tool_output: [odd],
      _service: { [odd]: odd },
    });
    const json = JSON.stringify({ events: [event] });
    const lone = json.replaceAll('caf', '\\ud800caf\\udfff');
    const bytes = Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), Buffer.from(lone)]);
    const invalid = Buffer.from(
      bytes.toString('latin1').replaceAll('caf', '\xff\xfe\xc3\x28caf').replaceAll('\xc3\x28', '\xc3'),
      'latin1',
    );
    const answer = await post(org, '/api/v1/ingest/events', invalid);
    expect([answer.status, answer.body.accepted], JSON.stringify(answer.body)).toEqual([202, 1]);
    const [stored] = await listed(org);
    expect(stored).toMatchObject({
      model: `gpt${plain}`,
      team_id: plain,
      session_id: plain,
      tool_input: plain,
      tool_output: [plain],
    });
    expect(stored?.payload).toEqual({
      [plain]: [plain, { [`x${plain}`]: plain }],
      k: 2,
      _service: { [plain]: plain },
    });
    for (const ascii of [JSON.stringify(stored)]) expect(ascii).toMatch(/^[\x20-\x7e]*$/);
    // The same call, sent with the characters already removed, has the same identity.
    const again = await post(
      org,
      '/api/v1/ingest/events',
      JSON.stringify({ events: [{ ...event, model: `gpt${plain}`, team_id: plain, session_id: plain }] }),
    );
    expect(again.body).toMatchObject({ accepted: 1, duplicates: 1 });
  });

  it('of spans are stripped alike, in attributes, in names and in resource labels', async () => {
    const org = await api.addOrganization();
    const odd = 'te\u0000am\ud83d\ude00\u202e';
    const trace = aTrace(
      aSpan(
        {
          'gen_ai.request.model': `gpt-4o${odd}`,
          'team.id': odd,
          [`custom\u0000${odd}`]: odd,
          'session.id': odd,
        },
        { name: odd },
      ),
    );
    for (const isProtobuf of [false, true]) {
      const answer = await send(api, {
        path: '/v1/traces',
        key: org.ingestKey,
        body: isProtobuf ? encodeTraceMessage(trace) : JSON.stringify(trace),
        headers: { 'content-type': isProtobuf ? 'application/x-protobuf' : 'application/json' },
      });
      expect(answer.status).toBe(202);
    }
    const events = await listed(org);
    expect(events.length).toBe(1);
    expect(events[0]).toMatchObject({ model: 'gpt-4oteam', team_id: 'team', session_id: 'team' });
    expect(JSON.stringify(events[0]?.payload)).toContain('"customteam"');
  });
});

describe('P-16: numbers that are none, or too large, or not whole', () => {
  const TOKENS = [
    '1e400',
    '-1e400',
    '-0.0',
    '-1',
    '1.5',
    '9007199254740993',
    '9000000000000000000',
    '1000000000001',
    '"NaN"',
    '"Infinity"',
    '"-1"',
    '"1e3x"',
    '""',
    'true',
    '[]',
    '{}',
  ];
  const COSTS = ['1e400', '-0.01', '1000000.01', '"NaN"', '"Infinity"', '"x"', 'true', '[]'];
  const DURATIONS = ['1e400', '-1', '1000000001', '"NaN"', 'true'];

  it('cost the item its place, with the reason invalid_number, and never enter a sum', async () => {
    const org = await api.addOrganization();
    const fields: [string, string[]][] = [
      ['input_tokens', TOKENS],
      ['output_tokens', TOKENS],
      ['cache_read', TOKENS],
      ['reasoning_tok', TOKENS],
      ['cost_usd', COSTS],
      ['duration_ms', DURATIONS],
    ];
    for (const [field, values] of fields) {
      for (const value of values) {
        const event = JSON.stringify({ ...anEvent(), [field]: 0 }).replace(
          `"${field}":0`,
          `"${field}":${value}`,
        );
        const answer = await post(org, '/api/v1/ingest/events', `{"events":[${event}]}`);
        expect(answer.status).toBe(202);
        expect([answer.body.accepted, answer.body.rejected[0]?.code], `${field} ${value}`).toEqual([
          0,
          'invalid_number',
        ]);
      }
    }
    const summary = (await api.get('/api/v1/usage/summary', org.adminKey)).body;
    expect([summary.call_count, summary.total_cost_usd]).toEqual([0, 0]);
  });

  it('in spans too: an intValue is read as the whole number of its text', async () => {
    const org = await api.addOrganization();
    const wrong = ['9007199254740993', '-1', '1000000000001', '99999999999999999999999', 'NaN', '1.5'].map(
      (intValue) => aSpan({ 'gen_ai.usage.input_tokens': { intValue } }),
    );
    const doubles = [1.5, 1e300].map((doubleValue) =>
      aSpan({ 'gen_ai.usage.input_tokens': { doubleValue } }),
    );
    const answer = await post(org, '/api/v1/ingest/trace', JSON.stringify(aTrace(...wrong, ...doubles)));
    expect(answer.body).toMatchObject({ accepted: 0, partialSuccess: { rejectedSpans: '8' } });
    const text = JSON.stringify(aTrace(aSpan({ 'gen_ai.usage.input_tokens': { doubleValue: 7 } }))).replace(
      '"doubleValue":7',
      '"doubleValue":1e400',
    );
    expect((await post(org, '/api/v1/ingest/trace', text)).body.accepted).toBe(0);
    const right = aTrace(
      aSpan({ 'gen_ai.usage.input_tokens': { intValue: '1000000000000' } }),
      aSpan({ 'gen_ai.usage.input_tokens': { doubleValue: 3 } }),
    );
    expect((await post(org, '/api/v1/ingest/trace', JSON.stringify(right))).body.accepted).toBe(2);
    expect((await listed(org)).map((event) => event.input_tokens).sort()).toEqual([1_000_000_000_000, 3]);
  });

  it('that lie exactly on the bounds are taken', async () => {
    const org = await api.addOrganization();
    const events = [
      anEvent({ input_tokens: 1e12, output_tokens: 0, cost_usd: 1e6, duration_ms: 1e9 }),
      anEvent({ input_tokens: 0, cost_usd: 0, duration_ms: 0 }),
      anEvent({ cost_usd: '0.000000000001' }),
    ];
    expect((await post(org, '/api/v1/ingest/events', JSON.stringify({ events }))).body).toMatchObject({
      accepted: 3,
      rejected: [],
    });
    // As a JSON number the pico-dollar beside a million is lost; the database has it.
    expect((await api.get('/api/v1/usage/summary', org.adminKey)).body.total_cost_usd).toBe(1_000_000);
    const stored = await api.database.superuser.query(
      'select sum(cost_usd)::text as sum from events where org_id = $1',
      [org.orgId],
    );
    expect(stored.rows).toEqual([{ sum: '1000000.000000000001' }]);
  });
});

describe('P-17: keys with a meaning in JavaScript, and duplicate keys', () => {
  it('are plain data, and the last of two holds', async () => {
    const org = await api.addOrganization();
    const event = JSON.stringify(anEvent({ request_id: 'r', team_id: 'first' })).slice(0, -1);
    const poison =
      '{"__proto__":{"polluted":true,"team_id":"evil"},"constructor":{"prototype":{"polluted":true}},"toString":"x","hasOwnProperty":1}';
    const body = `{"__proto__":{"polluted":1},"events":[{}],"events":[${event},"team_id":"last","__proto__":{"feature":"evil","polluted":true},"constructor":5,"payload":${poison},"_service":${poison},"tool_input":${poison}}]}`;
    const answer = await post(org, '/api/v1/ingest/events', body);
    expect([answer.status, answer.body.accepted, answer.body.rejected]).toEqual([202, 1, []]);
    const [stored] = await listed(org);
    expect(stored).toMatchObject({ team_id: 'last', feature: null });
    const payload = stored?.payload as Record<string, unknown>;
    expect(Object.keys(payload).sort()).toEqual(
      ['__proto__', '_service', 'constructor', 'hasOwnProperty', 'toString'].sort(),
    );
    expect(Object.getOwnPropertyDescriptor(payload, '__proto__')?.value).toEqual({
      polluted: true,
      team_id: 'evil',
    });
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
    const exported = await send(api, {
      path: `/api/v1/events/export?start=2026-01-01&end=2026-12-31&include_payload=true`,
      key: org.adminKey,
    });
    expect(JSON.parse(exported.bytes.toString()).payload).toEqual(payload);
  });

  it('as attributes of spans are data too, and the last of two holds', async () => {
    const org = await api.addOrganization();
    const span = aSpan({ 'team.id': 'first' });
    (span.attributes as object[]).push(
      anAttribute('team.id', 'last'),
      anAttribute('__proto__', 'x'),
      anAttribute('constructor', 'y'),
      anAttribute('__proto__', { kvlistValue: { values: [anAttribute('polluted', true)] } }),
    );
    expect((await post(org, '/api/v1/ingest/trace', JSON.stringify(aTrace(span)))).body.accepted).toBe(1);
    const [stored] = await listed(org);
    expect(stored?.team_id).toBe('last');
    expect(JSON.stringify(stored?.payload)).toContain('"constructor":"y"');
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });
});

describe('P-18: starts one nanosecond apart', () => {
  it('are two calls, each kept to the microsecond', async () => {
    const org = await api.addOrganization();
    const start = BigInt(Date.parse(aTime())) * 1_000_000n + 123_456_001n;
    const spans = [0n, 1n, 2n].map((nanos) =>
      aSpan(
        {},
        {
          traceId: undefined,
          spanId: undefined,
          startTimeUnixNano: String(start + nanos),
          endTimeUnixNano: String(start + nanos + 1_000_000n),
        },
      ),
    );
    const answer = await post(org, '/api/v1/ingest/trace', JSON.stringify(aTrace(...spans)));
    expect(answer.body).toMatchObject({ accepted: 3, duplicates: 0 });
    const events = await listed(org);
    expect(events.length).toBe(3);
    expect(new Set(events.map((event) => event.timestamp)).size).toBe(1);
    expect(String(events[0]?.timestamp)).toMatch(/\.\d{3}456Z$/);
    expect(new Set(events.map((event) => event.api_key_hash)).size).toBe(3);
    expect((await post(org, '/api/v1/ingest/trace', JSON.stringify(aTrace(...spans)))).body).toMatchObject({
      accepted: 3,
      duplicates: 3,
    });
  });
});
