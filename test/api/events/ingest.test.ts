import { deflateSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi, type TestOrganization } from '../../support/api.js';
import { decodeTraceAnswer, encodeTraceMessage } from '../support/otlpMessage.js';
import { anEvent, aSpan, aTime, aTrace, type RawAnswer, send } from '../support/requests.js';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const JSON_TYPE = { 'content-type': 'application/json' };
const PROTOBUF_TYPE = { 'content-type': 'application/x-protobuf' };
const TRACE_PATHS = [
  '/api/v1/ingest/trace',
  '/api/v1/ingest/trace/v1/traces',
  '/v1/traces',
  '/api/public/otel/v1/traces',
];

async function countOf(org: TestOrganization): Promise<number> {
  return (await api.get('/api/v1/events?limit=1000', org.adminKey)).body.count;
}

function post(
  org: TestOrganization,
  path: string,
  body: Buffer | string | Buffer[],
  headers: Record<string, string> = JSON_TYPE,
): Promise<RawAnswer> {
  return send(api, { path, body, headers, key: org.ingestKey });
}

const orgIdOf = (org: TestOrganization) => `org_${org.orgId.replaceAll('-', '')}`;

describe('a trace', () => {
  it('comes in on each path, as JSON and as protobuf, plain, gzipped and deflated, with its length and chunked', async () => {
    const org = await api.addOrganization();
    let sent = 0;
    for (const path of TRACE_PATHS) {
      for (const encoding of ['identity', 'gzip', 'deflate'] as const) {
        for (const isProtobuf of [false, true]) {
          const trace = aTrace(aSpan(), aSpan());
          const plain = isProtobuf ? encodeTraceMessage(trace) : Buffer.from(JSON.stringify(trace));
          const bytes =
            encoding === 'gzip' ? gzipSync(plain) : encoding === 'deflate' ? deflateSync(plain) : plain;
          const headers = { ...(isProtobuf ? PROTOBUF_TYPE : JSON_TYPE), 'content-encoding': encoding };
          const half = Math.floor(bytes.length / 2);
          const chunked = encoding !== 'gzip';
          const answer = await post(
            org,
            path,
            chunked ? [bytes.subarray(0, half), bytes.subarray(half)] : bytes,
            headers,
          );
          const place = `${path} ${encoding} ${isProtobuf ? 'protobuf' : 'JSON'}`;
          expect(answer.status, `${place}: ${answer.bytes}`).toBe(202);
          sent += 2;
          if (isProtobuf) {
            expect(answer.headers['content-type'], place).toBe('application/x-protobuf');
            expect(decodeTraceAnswer(answer.bytes)).toEqual({});
          } else {
            expect(answer.headers['content-type'], place).toBe('application/json');
            expect(answer.body).toEqual({
              accepted: 2,
              organization_id: orgIdOf(org),
              duplicates: 0,
              ignored: 0,
            });
          }
        }
      }
    }
    expect(await countOf(org)).toBe(sent);
  });

  it('that is empty is a success', async () => {
    const org = await api.addOrganization();
    for (const body of [
      '{"resourceSpans":[]}',
      '{}',
      '{"resourceSpans":[{}]}',
      '{"resourceSpans":[{"scopeSpans":[]}]}',
      '{"resourceSpans":[{"scopeSpans":[{"scope":{}}]}]}',
    ]) {
      const answer = await post(org, '/api/v1/ingest/trace', body);
      expect([answer.status, answer.body.accepted], body).toEqual([202, 0]);
    }
    const empty = await post(org, '/v1/traces', Buffer.alloc(0), PROTOBUF_TYPE);
    expect([empty.status, empty.bytes.length]).toEqual([202, 0]);
  });

  it('maps the six attributes of the interface, whose numbers come as text, as numbers or as doubles', async () => {
    const org = await api.addOrganization();
    const six = (input: object, output: object) =>
      aSpan({
        'gen_ai.operation.name': undefined,
        'gen_ai.system': 'anthropic',
        'gen_ai.request.model': 'claude-sonnet-4-5',
        'gen_ai.usage.input_tokens': input,
        'gen_ai.usage.output_tokens': output,
        'gen_ai.response.cost_usd': { doubleValue: 0.0123 },
        'gen_ai.response.id': `msg_${Math.random()}`,
      });
    const answer = await post(
      org,
      '/api/v1/ingest/trace',
      JSON.stringify(
        aTrace(six({ intValue: '1200' }, { intValue: '300' }), six({ intValue: 1200 }, { doubleValue: 300 })),
      ),
    );
    expect(answer.body).toMatchObject({ accepted: 2, duplicates: 0, ignored: 0 });
    const { events } = (await api.get('/api/v1/events', org.adminKey)).body;
    for (const event of events) {
      expect(event).toMatchObject({
        provider: 'anthropic',
        model: 'claude-sonnet-4-5',
        input_tokens: 1_200,
        output_tokens: 300,
        cost_usd: 0.0123,
        cost_source: 'reported',
        kind: 'otel_span',
        duration_ms: 1_250,
      });
      expect(event.request_id).toMatch(/^msg_/);
    }
  });

  it('keeps its good spans beside bad ones, and names the refused ones with the reason', async () => {
    const org = await api.addOrganization();
    const bad = [
      aSpan({ 'gen_ai.system': 'nobody', 'gen_ai.request.model': 'x' }),
      aSpan({ 'gen_ai.usage.input_tokens': -1 }),
      aSpan({}, { startTimeUnixNano: '1000', endTimeUnixNano: '2000' }),
      aSpan({ 'gen_ai.request.model': 'm'.repeat(257) }),
      aSpan({}, { endTimeUnixNano: '1700000000000000000' }),
      aSpan({ 'gen_ai.usage.output_tokens': 1.5 }),
    ];
    const ids = bad.map(({ spanId }) => String(spanId));
    const trace = aTrace(aSpan(), ...bad, aSpan());
    const answer = await post(org, '/api/v1/ingest/trace', JSON.stringify(trace));
    expect(answer.status).toBe(202);
    expect(answer.body).toMatchObject({ accepted: 2, duplicates: 0, partialSuccess: { rejectedSpans: '6' } });
    const { errorMessage } = answer.body.partialSuccess;
    for (const reason of [
      `item 1 (span "chat gpt-4o", id ${ids[0]}): unknown_provider`,
      `item 2 (span "chat gpt-4o", id ${ids[1]}): invalid_number`,
      `item 3 (span "chat gpt-4o", id ${ids[2]}): timestamp_out_of_range`,
      `item 4 (span "chat gpt-4o", id ${ids[3]}): string_too_long`,
      `item 5 (span "chat gpt-4o", id ${ids[4]}): invalid_number`,
      'and 1 more',
    ])
      expect(errorMessage).toContain(reason);
    expect(await countOf(org)).toBe(2);
    const protobuf = await post(
      org,
      '/v1/traces',
      encodeTraceMessage(aTrace(aSpan({ 'gen_ai.system': 'nobody', 'gen_ai.request.model': 'x' }))),
      PROTOBUF_TYPE,
    );
    expect(decodeTraceAnswer(protobuf.bytes)).toMatchObject({ partialSuccess: { rejectedSpans: '1' } });
    const allBad = await post(org, '/api/v1/ingest/trace', JSON.stringify(aTrace(bad[1])));
    expect([allBad.status, allBad.body.accepted, allBad.body.partialSuccess.rejectedSpans]).toEqual([
      202,
      0,
      '1',
    ]);
  });

  it('ignores and counts what is no call to a model, and stores none of it', async () => {
    const org = await api.addOrganization();
    const none = {
      'gen_ai.operation.name': undefined,
      'gen_ai.system': undefined,
      'gen_ai.request.model': undefined,
      'gen_ai.usage.input_tokens': undefined,
      'gen_ai.usage.output_tokens': undefined,
    };
    const trace = aTrace(
      aSpan(),
      aSpan({ ...none, 'http.request.method': 'GET' }),
      aSpan({ 'gen_ai.operation.name': 'invoke_agent' }),
      aSpan({ ...none, 'openinference.span.kind': 'CHAIN' }),
    );
    const answer = await post(org, '/api/v1/ingest/trace', JSON.stringify(trace));
    expect(answer.body).toEqual({ accepted: 1, organization_id: orgIdOf(org), duplicates: 0, ignored: 3 });
    expect(await countOf(org)).toBe(1);
  });

  it('that is repeated answers the same count, and stores nothing twice', async () => {
    const org = await api.addOrganization();
    const body = JSON.stringify(aTrace(aSpan(), aSpan({ 'gen_ai.response.id': 'resp-1' }), aSpan()));
    for (const duplicates of [0, 3, 3]) {
      const answer = await post(org, '/api/v1/ingest/trace', body);
      expect(answer.body).toMatchObject({ accepted: 3, duplicates });
    }
    expect(await countOf(org)).toBe(3);
    const twice = aSpan();
    const within = await post(org, '/api/v1/ingest/trace', JSON.stringify(aTrace(twice, twice)));
    expect(within.body).toMatchObject({ accepted: 2, duplicates: 1 });
    expect(await countOf(org)).toBe(4);
  });

  it('comes in on Langfuse’s path with Basic, where the password is the key; on the other paths only with Bearer', async () => {
    const org = await api.addOrganization();
    const basic = (key: string) => ({
      ...JSON_TYPE,
      authorization: `Basic ${Buffer.from(`pk-public:${key}`).toString('base64')}`,
    });
    const body = () => JSON.stringify(aTrace(aSpan()));
    for (const path of TRACE_PATHS) {
      const isLangfuse = path.startsWith('/api/public');
      const answer = await send(api, { path, key: null, body: body(), headers: basic(org.ingestKey) });
      expect(answer.status, path).toBe(isLangfuse ? 202 : 401);
    }
    const [path = ''] = TRACE_PATHS.slice(-1);
    const wrong = await send(api, { path, key: null, body: body(), headers: basic('sk-wrong') });
    expect(wrong.status).toBe(401);
    const colonless = {
      ...JSON_TYPE,
      authorization: `Basic ${Buffer.from(org.ingestKey).toString('base64')}`,
    };
    expect((await send(api, { path, key: null, body: body(), headers: colonless })).status).toBe(202);
  });

  it('as invalid protobuf is 400 invalid_protobuf, with a JSON answer', async () => {
    const org = await api.addOrganization();
    const whole = encodeTraceMessage(aTrace(aSpan()));
    for (const bytes of [
      Buffer.from('{"resourceSpans":[]}'),
      whole.subarray(0, whole.length - 3),
      Buffer.alloc(64, 0xff),
    ]) {
      const answer = await post(org, '/v1/traces', bytes, PROTOBUF_TYPE);
      expect([answer.status, answer.body.code]).toEqual([400, 'invalid_protobuf']);
    }
    expect(await countOf(org)).toBe(0);
  });
});

describe('an observation', () => {
  const observation = (body: object) => ({ type: 'observation-create', body });
  const generation = (overrides: object = {}) =>
    observation({
      id: 'obs-1',
      type: 'GENERATION',
      model: 'gpt-4o',
      startTime: aTime(),
      latency: 1_234,
      usage: { input: 120, output: 30 },
      metadata: {
        feature: 'search',
        team_id: 't1',
        provider: 'openai',
        session_id: 's1',
        user_id: 'u1',
        project_id: 'p1',
      },
      ...overrides,
    });

  it('of type GENERATION becomes an event; its signature is accepted and not verified', async () => {
    const org = await api.addOrganization();
    const answer = await post(org, '/api/v1/ingest/observability', JSON.stringify(generation()), {
      ...JSON_TYPE,
      'x-observability-signature': 'sha256=nonsense',
    });
    expect([answer.status, answer.body]).toEqual([
      202,
      { accepted: 1, organization_id: orgIdOf(org), duplicates: 0, ignored: 0 },
    ]);
    const [event] = (await api.get('/api/v1/events', org.adminKey)).body.events;
    expect(event).toMatchObject({
      kind: 'observability_generation',
      provider: 'openai',
      model: 'gpt-4o',
      request_id: 'obs-1',
      duration_ms: 1_234,
      input_tokens: 120,
      output_tokens: 30,
      feature: 'search',
      team_id: 't1',
      session_id: 's1',
      user_id: 'u1',
      project_id: 'p1',
    });
    const again = await post(
      org,
      '/api/v1/ingest/observability',
      JSON.stringify(generation({ startTime: event.timestamp })),
    );
    expect(again.body).toMatchObject({ accepted: 1, duplicates: 1 });
  });

  it('of another type is accepted and ignored; another top-level type is 400', async () => {
    const org = await api.addOrganization();
    for (const type of ['SPAN', 'EVENT', 'TOOL']) {
      const answer = await post(org, '/api/v1/ingest/observability', JSON.stringify(generation({ type })));
      expect([answer.status, answer.body.accepted, answer.body.ignored], type).toEqual([202, 0, 1]);
    }
    const wrong = await post(
      org,
      '/api/v1/ingest/observability',
      JSON.stringify({ ...generation(), type: 'trace-create' }),
    );
    expect([wrong.status, wrong.body.code]).toEqual([400, 'unknown_observation_type']);
    for (const body of [
      '{}',
      '[]',
      '{"type":"observation-create"}',
      '{"type":"observation-create","body":[]}',
      '{"type":1,"body":{}}',
    ]) {
      const answer = await post(org, '/api/v1/ingest/observability', body);
      expect([answer.status, answer.body.code], body).toEqual([400, 'invalid_body']);
    }
    expect(await countOf(org)).toBe(0);
  });

  it('whose provider cannot be determined is refused with that reason', async () => {
    const org = await api.addOrganization();
    const answer = await post(
      org,
      '/api/v1/ingest/observability',
      JSON.stringify(generation({ model: 'mystery', metadata: {} })),
    );
    expect(answer.body).toMatchObject({ accepted: 0, partialSuccess: { rejectedSpans: '1' } });
    expect(answer.body.partialSuccess.errorMessage).toMatch(
      /^item 0 \(observation obs-1\): unknown_provider: /,
    );
    const inferred = await post(
      org,
      '/api/v1/ingest/observability',
      JSON.stringify(generation({ id: 'obs-2', metadata: {} })),
    );
    expect(inferred.body).toMatchObject({ accepted: 1 });
  });
});

describe('events of wrappers', () => {
  it('come in as {"events": […]}, as a bare array, and one a line, with blank lines and CRLF between', async () => {
    const org = await api.addOrganization();
    const path = '/api/v1/ingest/events';
    const wrapped = await post(org, path, JSON.stringify({ events: [anEvent(), anEvent()] }));
    expect([wrapped.status, wrapped.body]).toEqual([
      202,
      { accepted: 2, duplicates: 0, organization_id: orgIdOf(org), rejected: [] },
    ]);
    expect((await post(org, path, JSON.stringify([anEvent()]))).body).toMatchObject({ accepted: 1 });
    const lines = [anEvent(), anEvent(), anEvent()].map((event) => JSON.stringify(event));
    for (const type of ['application/x-ndjson', 'application/ndjson', 'application/jsonl']) {
      const text = `\r\n${lines[0]}\r\n\n${lines[1]}\n${lines[2]}`;
      const answer = await post(org, path, gzipSync(text), {
        'content-type': type,
        'content-encoding': 'gzip',
      });
      expect([answer.status, answer.body.accepted], type).toEqual([202, 3]);
    }
    expect(await countOf(org)).toBe(6);
    const broken = await post(org, path, `${lines[0]}\n{"model":`, {
      'content-type': 'application/x-ndjson',
    });
    expect([broken.status, broken.body.code]).toEqual([400, 'invalid_json']);
    expect(broken.body.message).toContain('line 2');
    expect((await post(org, path, '', { 'content-type': 'application/x-ndjson' })).body).toMatchObject({
      accepted: 0,
    });
  });

  it('that are wrong are refused one by one with index, code and sentence, the first 20 of them', async () => {
    const org = await api.addOrganization();
    const items = [
      anEvent(),
      anEvent({ model: undefined }),
      anEvent({ provider: 'nobody' }),
      'text',
      anEvent({ timestamp: 'yesterday' }),
      anEvent({ cost_usd: -1 }),
      anEvent({ team_id: 'x'.repeat(257) }),
    ];
    const answer = await post(org, '/api/v1/ingest/events', JSON.stringify({ events: items }));
    expect([answer.status, answer.body.accepted]).toEqual([202, 1]);
    expect(
      answer.body.rejected.map(({ index, code }: { index: number; code: string }) => [index, code]),
    ).toEqual([
      [1, 'missing_field'],
      [2, 'unknown_provider'],
      [3, 'invalid_field'],
      [4, expect.stringMatching(/invalid_field|timestamp_out_of_range/)],
      [5, 'invalid_number'],
      [6, 'string_too_long'],
    ]);
    for (const { message } of answer.body.rejected) expect(message.length).toBeGreaterThan(10);
    const many = await post(org, '/api/v1/ingest/events', JSON.stringify({ events: Array(25).fill({}) }));
    expect([many.body.accepted, many.body.rejected.length]).toEqual([0, 20]);
  });

  it('carry a failed or cancelled call as an attempt that costs nothing', async () => {
    const org = await api.addOrganization();
    const none = { input_tokens: undefined, output_tokens: undefined };
    await post(
      org,
      '/api/v1/ingest/events',
      JSON.stringify({
        events: [
          anEvent({ status: 'error', http_status: 529, ...none }),
          anEvent({ status: 'cancelled', ...none }),
        ],
      }),
    );
    const { events } = (await api.get('/api/v1/events', org.adminKey)).body;
    expect(
      events
        .map(({ status, http_status, cost_usd }: Record<string, unknown>) => [status, http_status, cost_usd])
        .sort(),
    ).toEqual([
      ['cancelled', null, 0],
      ['error', 529, 0],
    ]);
  });

  it('carry the usage object of their provider, which is read into the same classes', async () => {
    const org = await api.addOrganization();
    const none = { input_tokens: undefined, output_tokens: undefined };
    const openai = {
      prompt_tokens: 1_200,
      completion_tokens: 300,
      prompt_tokens_details: { cached_tokens: 1_000 },
      completion_tokens_details: { reasoning_tokens: 100 },
    };
    const anthropic = {
      input_tokens: 50,
      cache_creation_input_tokens: 200,
      cache_read_input_tokens: 1_000,
      output_tokens: 300,
    };
    await post(
      org,
      '/api/v1/ingest/events',
      JSON.stringify({
        events: [
          anEvent({ ...none, usage: openai }),
          anEvent({ ...none, provider: 'anthropic', model: 'claude-sonnet-4-5', usage: anthropic }),
        ],
      }),
    );
    const { events } = (await api.get('/api/v1/events?provider=openai', org.adminKey)).body;
    expect(events[0]).toMatchObject({
      input_tokens: 200,
      cache_read: 1_000,
      cache_creation: 0,
      output_tokens: 300,
      reasoning_tok: 100,
      cached_tok: 1_000,
    });
    const exclusive = (await api.get('/api/v1/events?provider=anthropic', org.adminKey)).body.events;
    expect(exclusive[0]).toMatchObject({
      input_tokens: 50,
      cache_read: 1_000,
      cache_creation: 200,
      output_tokens: 300,
      cached_tok: 0,
    });
  });
});

describe('the limits of ingest', () => {
  it('are 10,000 items a request: one more is 413 and nothing is stored', async () => {
    const org = await api.addOrganization();
    const minimal = aSpan();
    const spans = Array.from({ length: 10_001 }, (_, index) => ({
      ...minimal,
      spanId: index.toString(16).padStart(16, '0'),
      attributes: (minimal.attributes as object[]).slice(0, 3),
    }));
    const events = Array.from({ length: 10_001 }, (_, index) => ({
      provider: 'openai',
      model: 'gpt-4o',
      timestamp: aTime(),
      request_id: `r${index}`,
    }));
    const tooMany: [string, string | Buffer, Record<string, string>][] = [
      ['/api/v1/ingest/trace', JSON.stringify(aTrace(...spans)), JSON_TYPE],
      ['/v1/traces', encodeTraceMessage(aTrace(...spans)), PROTOBUF_TYPE],
      ['/api/v1/ingest/events', JSON.stringify({ events }), JSON_TYPE],
      [
        '/api/v1/ingest/events',
        events.map((event) => JSON.stringify(event)).join('\n'),
        { 'content-type': 'application/x-ndjson' },
      ],
    ];
    for (const [path, body, headers] of tooMany) {
      const answer = await post(org, path, body, headers);
      expect([answer.status, answer.body.code], path).toEqual([413, 'too_many_items']);
    }
    expect(await countOf(org)).toBe(0);
    const fits = await post(org, '/api/v1/ingest/events', JSON.stringify({ events: events.slice(1) }));
    expect([fits.status, fits.body.accepted, fits.body.duplicates]).toEqual([202, 10_000, 0]);
    expect((await api.get('/api/v1/usage/summary', org.adminKey)).body.call_count).toBe(10_000);
  });

  it('are 16 MiB on the wire and after inflation', async () => {
    const org = await api.addOrganization();
    const padded = (bytes: number) => Buffer.from(JSON.stringify({ events: [anEvent()] }).padEnd(bytes, ' '));
    const limit = 16 * 1_048_576;
    expect((await post(org, '/api/v1/ingest/events', padded(limit))).status).toBe(202);
    const cases: [Buffer | Buffer[], Record<string, string>][] = [
      [padded(limit + 1), {}],
      [[padded(limit), Buffer.from(' ')], {}],
      [gzipSync(padded(limit + 1)), { 'content-encoding': 'gzip' }],
      [deflateSync(padded(limit + 1)), { 'content-encoding': 'deflate' }],
    ];
    for (const [body, headers] of cases) {
      const answer = await post(org, '/api/v1/ingest/events', body, { ...JSON_TYPE, ...headers });
      expect([answer.status, answer.body.code]).toEqual([413, 'payload_too_large']);
    }
    expect(
      (
        await post(org, '/api/v1/ingest/events', gzipSync(padded(limit)), {
          ...JSON_TYPE,
          'content-encoding': 'gzip',
        })
      ).status,
    ).toBe(202);
    expect(await countOf(org)).toBe(2);
  });

  it('keep a payload of 256 KB, and of a larger one only its size', async () => {
    const org = await api.addOrganization();
    const text = (bytes: number) => 'x'.repeat(bytes - '{"text":""}'.length);
    await post(
      org,
      '/api/v1/ingest/events',
      JSON.stringify({
        events: [
          anEvent({ request_id: 'fits', payload: { text: text(262_144) } }),
          anEvent({ request_id: 'large', payload: { text: text(262_145) }, timestamp: aTime(1) }),
        ],
      }),
    );
    const { events } = (await api.get('/api/v1/events?include_payload=true', org.adminKey)).body;
    expect(events[0].payload.text.length).toBe(262_144 - 11);
    expect(events[1].payload).toEqual({ _truncated: true, bytes: 262_145 });
  });
});

describe('one call reported in several ways', () => {
  it('is one event: a span and a wrapper’s event with the same response id of the provider', async () => {
    const org = await api.addOrganization();
    const id = 'chatcmpl-abc123';
    await post(org, '/api/v1/ingest/trace', JSON.stringify(aTrace(aSpan({ 'gen_ai.response.id': id }))));
    await post(
      org,
      '/api/v1/ingest/events',
      JSON.stringify({ events: [anEvent({ request_id: id, team_id: 't1' })] }),
    );
    const { events } = (await api.get('/api/v1/events', org.adminKey)).body;
    expect(events.length).toBe(1);
    expect(events[0]).toMatchObject({ request_id: id, team_id: 't1' });
    expect((await api.get('/api/v1/usage/summary', org.adminKey)).body.call_count).toBe(1);
    expect(
      (await api.get('/api/v1/usage/summary?group_by=team', org.adminKey)).body.breakdown.map(
        (item: { key: string }) => item.key,
      ),
    ).toEqual(['t1']);
  });
});
