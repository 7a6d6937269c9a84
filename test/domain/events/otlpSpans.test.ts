import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DomainError } from '../../../domain/errors.js';
import { countItems } from '../../../domain/events/otlpGroups.js';
import { mapOtlpRequest, SPAN_GROUPS } from '../../../domain/events/otlpSpans.js';
import { microsOfDay } from '../../../domain/period.js';
import {
  aRequest,
  aSpan,
  attributeList,
  callOf,
  callWith,
  classesOf,
  context,
  LEAST,
  mapSpan,
  NOW,
  rejectionOf,
  requestOf,
  SPAN_ID,
  START_NANOS,
  TRACE_ID,
} from './support.js';

describe('a trace request', () => {
  it('maps the six attributes of the interface', () => {
    const call = callOf({
      attributes: [
        { key: 'gen_ai.system', value: { stringValue: 'openai' } },
        { key: 'gen_ai.request.model', value: { stringValue: 'gpt-4o' } },
        { key: 'gen_ai.usage.input_tokens', value: { intValue: '120' } },
        { key: 'gen_ai.usage.output_tokens', value: { intValue: '30' } },
        { key: 'gen_ai.response.cost_usd', value: { doubleValue: 0.0125 } },
        { key: 'gen_ai.response.id', value: { stringValue: 'chatcmpl-1' } },
      ],
    });
    expect(call).toMatchObject({
      kind: 'otel_span',
      provider: 'openai',
      billedBy: 'openai',
      model: 'gpt-4o',
      requestId: 'chatcmpl-1',
      responseId: 'chatcmpl-1',
      reportedCostPico: 12_500_000_000n,
      durationMs: 1500,
      startMicros: START_NANOS / 1000n,
      endMicros: START_NANOS / 1000n + 1_500_000n,
      sessionId: TRACE_ID,
      status: 'ok',
      payload: null,
      serviceName: '',
      scopeName: 'test-scope',
    });
    expect(classesOf(call)).toEqual([120, 0, 0, 30, 0]);
  });

  it.each([
    {},
    { resourceSpans: [] },
    { resourceSpans: null },
    { resourceSpans: [{}] },
    { resourceSpans: [{ scopeSpans: [{ spans: [] }] }] },
  ])('that is empty (%j) is a success', (request) => {
    expect(mapOtlpRequest(request, context)).toEqual({ calls: [], rejections: [], ignored: 0, links: [] });
    expect(countItems(request, SPAN_GROUPS)).toBe(0);
  });

  it.each([
    [null, 'body'],
    [[], 'body'],
    ['x', 'body'],
    [{ resourceSpans: {} }, 'resourceSpans'],
    [{ resourceSpans: ['x'] }, 'resourceSpans[0]'],
    [{ resourceSpans: [{ scopeSpans: 'x' }] }, 'resourceSpans[0].scopeSpans'],
    [{ resourceSpans: [{ scopeSpans: [{ spans: {} }] }] }, 'resourceSpans[0].scopeSpans[0].spans'],
    [{ resourceSpans: [{ resource: { attributes: {} } }] }, 'resourceSpans[0].resource.attributes'],
    [{ resourceSpans: [{ resource: 7 }] }, 'resourceSpans[0].resource'],
  ])('%j is no OTLP: the fault names %s', (request, field) => {
    try {
      mapOtlpRequest(request as never, context);
      expect.unreachable();
    } catch (error) {
      expect(error).toBeInstanceOf(DomainError);
      expect((error as DomainError).code).toBe('invalid_body');
      expect((error as DomainError).issues[0]).toMatchObject({ in: 'body', field });
    }
  });

  it('keeps the good spans beside bad ones, and names the bad ones with the reason', () => {
    const spans = [
      aSpan({ attributes: LEAST }),
      null,
      aSpan({ attributes: { ...LEAST, 'gen_ai.usage.input_tokens': -1 } }),
      aSpan({ attributes: { 'http.method': 'GET' } }),
      aSpan({ attributes: { ...LEAST, 'gen_ai.request.model': 'm'.repeat(257) } }),
      aSpan({ attributes: LEAST, spanId: '00000000000000aa' }),
      { ...aSpan({}), attributes: 'none' },
      'span',
    ];
    const request = requestOf(spans, { resource: { 'service.name': 'shop' } });
    const batch = mapOtlpRequest(request, context);
    expect([batch.calls.length, batch.ignored, countItems(request, SPAN_GROUPS)]).toEqual([2, 1, 8]);
    expect(batch.rejections.map(({ index, reason }) => [index, reason])).toEqual([
      [1, 'invalid_field'],
      [2, 'invalid_number'],
      [4, 'string_too_long'],
      [6, 'invalid_field'],
      [7, 'invalid_field'],
    ]);
    expect(batch.rejections[1]).toMatchObject({ serviceName: 'shop', scopeName: 'test-scope' });
    expect(batch.rejections[1]?.message).toContain('gen_ai.usage.input_tokens: -1');
  });

  it('ignores unknown fields', () => {
    const request = {
      ...aRequest({ attributes: LEAST, droppedAttributesCount: 3, links: [{}], flags: 1 }),
      extra: 1,
    };
    expect(mapOtlpRequest(request, context).calls).toHaveLength(1);
  });

  it('maps any JSON to a batch or a refusal, never to a crash', () => {
    const value = fc.jsonValue({ maxDepth: 4 });
    const span = fc.record(
      {
        traceId: value,
        spanId: value,
        parentSpanId: value,
        name: value,
        startTimeUnixNano: fc.oneof(value, fc.constant(START_NANOS.toString())),
        endTimeUnixNano: value,
        attributes: fc.oneof(
          value,
          fc.array(
            fc.record({
              key: fc.constantFrom(
                ...Object.keys(LEAST),
                'metadata',
                '_service',
                'gen_ai.response.finish_reasons',
              ),
              value: fc.oneof(
                value,
                fc.record(
                  { stringValue: value, intValue: value, arrayValue: value, kvlistValue: value },
                  { requiredKeys: [] },
                ),
              ),
            }),
          ),
        ),
        status: value,
        events: value,
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.array(fc.oneof(span, value), { maxLength: 4 }), (spans) => {
        const batch = mapOtlpRequest(requestOf(spans), context);
        expect(batch.calls.length + batch.rejections.length + batch.ignored).toBe(spans.length);
        for (const call of batch.calls) expect(Array.isArray(call.prompts())).toBe(true);
      }),
      { verbose: 1, numRuns: 300 },
    );
  });

  it('reads mapped attributes behind thousands of others, and keeps 256 of those', () => {
    const many = Object.fromEntries(Array.from({ length: 3000 }, (_, index) => [`other.${index}`, index]));
    const call = callOf({ attributes: { ...many, ...LEAST } });
    expect(call.model).toBe('gpt-4o');
    expect(Object.keys(call.payload as object)).toHaveLength(256);
  });
});

describe('times', () => {
  it('are read from text, numbers and bigints, and enter the hash as they came', () => {
    const text = START_NANOS.toString();
    expect(callWith({}, { startTimeUnixNano: text }).hashTimestamp).toBe(text);
    expect(callWith({}, { startTimeUnixNano: START_NANOS }).hashTimestamp).toBe(text);
    const rounded = callWith({}, { startTimeUnixNano: Number(START_NANOS), endTimeUnixNano: 0 });
    expect(rounded.startMicros).toBe(BigInt(Number(START_NANOS)) / 1000n);
    expect(rounded.hashTimestamp).toBe(BigInt(Number(START_NANOS)).toString());
  });

  it('1 ns apart keep their own hash time', () => {
    const [one, other] = [0n, 1n].map((nanos) =>
      callWith({}, { startTimeUnixNano: (START_NANOS + nanos).toString() }),
    );
    expect(one?.startMicros).toBe(other?.startMicros);
    expect(one?.hashTimestamp).not.toBe(other?.hashTimestamp);
  });

  it('are taken from 2020-01-01 to 24 hours ahead, to the microsecond', () => {
    const at = (micros: bigint) => ({
      attributes: LEAST,
      startTimeUnixNano: (micros * 1000n).toString(),
      endTimeUnixNano: (micros * 1000n).toString(),
    });
    const day = 86_400_000_000n;
    expect(mapSpan(at(microsOfDay('2020-01-01'))).calls).toHaveLength(1);
    expect(mapSpan(at(NOW + day)).calls).toHaveLength(1);
    expect(rejectionOf(at(microsOfDay('2020-01-01') - 1n)).reason).toBe('timestamp_out_of_range');
    expect(rejectionOf(at(NOW + day + 1n)).reason).toBe('timestamp_out_of_range');
  });

  it.each([
    ['0', 'timestamp_out_of_range'],
    ['99999999999999999999', 'timestamp_out_of_range'],
    [undefined, 'missing_field'],
    ['yesterday', 'invalid_number'],
    ['-5', 'invalid_number'],
    ['1.5e18', 'invalid_number'],
    [1.5, 'invalid_number'],
    [true, 'invalid_number'],
  ])('%s is %s', (startTimeUnixNano, reason) => {
    expect(rejectionOf({ attributes: LEAST, startTimeUnixNano }).reason).toBe(reason);
  });

  it('an end before the start is invalid, an absent one is the start', () => {
    const before = { attributes: LEAST, endTimeUnixNano: (START_NANOS - 1n).toString() };
    expect(rejectionOf(before).reason).toBe('invalid_number');
    expect(callWith({}, { endTimeUnixNano: undefined })).toMatchObject({
      durationMs: 0,
      endMicros: START_NANOS / 1000n,
    });
  });
});

describe('numbers and texts', () => {
  it.each([
    ['a string of an integer', { stringValue: '12' }, 12],
    ['an intValue as text', { intValue: '12' }, 12],
    ['an intValue as number', { intValue: 12 }, 12],
    ['an integral double', { doubleValue: 12 }, 12],
    ['10^12', { intValue: '1000000000000' }, 1_000_000_000_000],
  ])('%s is a count', (_, value, count) => {
    const attributes = [
      ...attributeList({ 'gen_ai.system': 'openai', 'gen_ai.request.model': 'm' }),
      { key: 'gen_ai.usage.input_tokens', value },
    ];
    expect(callOf({ attributes }).usage?.input).toBe(count);
  });

  it.each([
    [{ doubleValue: 1.5 }],
    [{ doubleValue: 'NaN' }],
    [{ doubleValue: JSON.parse('1e400') }],
    [{ doubleValue: -0 }],
    [{ intValue: '9007199254740993' }],
    [{ intValue: '9223372036854775807' }],
    [{ intValue: '-1' }],
    [{ stringValue: 'NaN' }],
    [{ boolValue: true }],
    [{ arrayValue: { values: [{ intValue: 1 }] } }],
  ])('%j is no count', (value) => {
    const attributes = [
      ...attributeList({ 'gen_ai.system': 'openai', 'gen_ai.request.model': 'm' }),
      { key: 'gen_ai.usage.input_tokens', value },
    ];
    expect(rejectionOf({ attributes }).reason).toBe('invalid_number');
  });

  it.each([
    ['gen_ai.request.model', 256],
    ['team_id', 256],
    ['feature', 256],
    ['deployment.environment.name', 256],
    ['openai.response.service_tier', 256],
    ['gen_ai.response.id', 512],
    ['session.id', 512],
    ['user.id', 512],
    ['project_id', 512],
    ['batch_id', 512],
    ['gen_ai.response.finish_reason', 64],
  ])('%s takes %d characters and rejects one more, cutting nothing', (name, charsMax) => {
    expect(mapSpan({ attributes: { ...LEAST, [name]: 'x'.repeat(charsMax) } }).calls).toHaveLength(1);
    expect(rejectionOf({ attributes: { ...LEAST, [name]: 'x'.repeat(charsMax + 1) } }).reason).toBe(
      'string_too_long',
    );
    // Stripped characters do not count.
    expect(mapSpan({ attributes: { ...LEAST, [name]: `\u00e9${'x'.repeat(charsMax)}` } }).calls).toHaveLength(
      1,
    );
  });

  it('reports a model that is missing', () => {
    expect(
      rejectionOf({ attributes: { 'gen_ai.system': 'openai', 'gen_ai.usage.input_tokens': 1 } }),
    ).toMatchObject({
      reason: 'missing_field',
      message: expect.stringContaining('gen_ai.request.model'),
    });
  });

  it('prices by the model that answered where only that is known', () => {
    const call = callOf({
      attributes: {
        'gen_ai.system': 'openai',
        'gen_ai.response.model': 'gpt-4o-2024-08-06',
        'gen_ai.usage.input_tokens': 1,
      },
    });
    expect([call.model, call.responseModel]).toEqual(['gpt-4o-2024-08-06', 'gpt-4o-2024-08-06']);
  });
});

describe('usage', () => {
  it('that is absent is absent, not zero', () => {
    const call = callOf({ attributes: { 'gen_ai.system': 'openai', 'gen_ai.request.model': 'gpt-4o' } });
    expect([call.usage, call.reportedClasses, call.origin.usageRaw]).toEqual([null, 0, null]);
    expect(call.origin.usageMissing).toEqual(['input', 'output']);
  });

  it('that lacks its output is marked incomplete, unless the call is an embedding', () => {
    const half = { 'gen_ai.system': 'openai', 'gen_ai.request.model': 'm', 'gen_ai.usage.input_tokens': 8 };
    expect(callOf({ attributes: half }).origin.usageMissing).toEqual(['output']);
    expect(
      callOf({ attributes: { ...half, 'gen_ai.operation.name': 'embeddings' } }).origin.usageMissing,
    ).toEqual([]);
  });

  it('is kept as received, at most 1 KB of it', () => {
    const raw = callWith({ 'gen_ai.usage.cache_read.input_tokens': 4 }).origin.usageRaw;
    expect(JSON.parse(raw ?? '')).toEqual({
      'gen_ai.usage.input_tokens': 10,
      'gen_ai.usage.output_tokens': 5,
      'gen_ai.usage.cache_read.input_tokens': 4,
    });
    const details = {
      input: 1,
      output: 2,
      ...Object.fromEntries(Array.from({ length: 90 }, (_, index) => [`input_bucket_${index}`, index])),
    };
    const call = callOf({
      attributes: {
        'langfuse.observation.type': 'generation',
        'langfuse.observation.model.name': 'gpt-4o',
        'langfuse.observation.usage_details': JSON.stringify(details),
      },
    });
    expect(call.origin.usageRaw?.length).toBeLessThanOrEqual(1024);
    expect(JSON.parse(call.origin.usageRaw ?? '')).toMatchObject({ input: 1, output: 2, _truncated: true });
  });

  it('of the input with its cache and without it is distinguished by arithmetic first', () => {
    const sdk = { scope: '@arizeai/openinference-instrumentation-openai', version: '4.2.7' };
    const call = callWith({ 'gen_ai.usage.cache_read.input_tokens': 4000 }, sdk);
    expect(call.origin.inputSemantics).toBe('exclusive');
    expect(classesOf(call)).toEqual([10, 4000, 0, 5, 0]);
  });
});

describe('the status of a call', () => {
  const failed = { 'gen_ai.system': 'openai', 'gen_ai.request.model': 'gpt-4o' };

  it.each([[{ code: 2 }], [{ code: 'STATUS_CODE_ERROR', message: 'overloaded' }]])(
    'status %j without usage is an attempt',
    (status) => {
      expect(callOf({ attributes: failed, status })).toMatchObject({ status: 'error', usage: null });
    },
  );

  it.each([
    [{ code: 2, message: 'Request was aborted.' }, {}],
    [{ code: 2 }, { 'error.type': 'AbortError' }],
    [{ code: 2 }, { 'error.type': 'asyncio.CancelledError' }],
  ])('status %j with %j was cancelled by its caller', (status, attributes) => {
    expect(callOf({ attributes: { ...failed, ...attributes }, status }).status).toBe('cancelled');
  });

  it('keeps the HTTP status, as such or as the type of the error', () => {
    expect(callOf({ attributes: { ...failed, 'error.type': '429' } })).toMatchObject({
      status: 'error',
      httpStatus: 429,
    });
    expect(
      callOf({ attributes: { ...failed, 'http.response.status_code': 503 }, status: { code: 2 } }).httpStatus,
    ).toBe(503);
  });

  it('follows the level from Langfuse', () => {
    expect(callWith({ 'langfuse.observation.level': 'ERROR' }).status).toBe('error');
    expect(callWith({ 'langfuse.observation.level': 'DEFAULT' }).status).toBe('ok');
  });
});

describe('ids', () => {
  it('make a request of trace and span where no response id was sent', () => {
    expect(callWith({}).requestId).toBe(`${TRACE_ID}:${SPAN_ID}`);
    expect(callWith({}, { spanId: undefined }).requestId).toBeNull();
    expect(callWith({}, { traceId: '0'.repeat(32) })).toMatchObject({
      requestId: null,
      sessionId: '',
      trace: null,
    });
  });

  it('are read in any case, and used as text when they are not those of OpenTelemetry', () => {
    expect(callWith({}, { traceId: TRACE_ID.toUpperCase() }).trace?.traceId).toBe(TRACE_ID);
    expect(callWith({}, { traceId: 'my-trace', spanId: 'my-span' })).toMatchObject({
      requestId: 'my-trace:my-span',
      sessionId: 'my-trace',
      trace: null,
    });
  });

  it('place a span in its trace', () => {
    const parentSpanId = '00f067aa0ba902b7';
    expect(callWith({}, { parentSpanId }).trace).toEqual({
      traceId: TRACE_ID,
      spanId: SPAN_ID,
      parentSpanId,
    });
  });
});

describe('a rejected span', () => {
  const labelOf = (fields: object) =>
    rejectionOf({ attributes: LEAST, endTimeUnixNano: '1', ...fields }).label;

  it.each([
    ['name and id', {}, `span "chat", id ${SPAN_ID}`],
    ['its id where it has no name', { name: undefined }, `span id ${SPAN_ID}`],
    ['its name where it has no id', { spanId: undefined }, 'span "chat"'],
    ['nothing where it has neither', { name: '', spanId: '' }, ''],
    ['nothing where they are no texts', { name: 7, spanId: {} }, ''],
    [
      'a name without other characters than ASCII',
      { name: 'ch\u200bat\u0000é' },
      `span "chat", id ${SPAN_ID}`,
    ],
    [
      'the beginning of a long name and of a wrong id',
      { name: 'n'.repeat(500), spanId: 'z'.repeat(500) },
      `span "${'n'.repeat(64)}…", id ${'z'.repeat(64)}…`,
    ],
  ])('is labelled with %s', (_name, fields, label) => {
    expect(labelOf(fields)).toBe(label);
  });

  it('is labelled with nothing where it is no object', () => {
    const { rejections } = mapOtlpRequest(requestOf(['span', null, []]), context);
    expect(rejections.map(({ index, label }) => [index, label])).toEqual([
      [0, ''],
      [1, ''],
      [2, ''],
    ]);
  });
});
