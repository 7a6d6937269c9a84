import fc from 'fast-check';
import protobuf from 'protobufjs';
import { describe, expect, it } from 'vitest';
import { decodeTraceRequest, encodeExportResponse } from '../../../adapters/otlp/protobuf.js';
import { DomainError } from '../../../domain/errors.js';
import { mapOtlpRequest, type OtlpRequest } from '../../../domain/events/otlpSpans.js';
import { aSpan, context, LEAST, requestOf } from '../../domain/events/support.js';
import { OTLP_PROTO } from './otlpProto.js';

const { root } = protobuf.parse(OTLP_PROTO, { keepCase: false });
const REQUEST = root.lookupType('ExportTraceServiceRequest');
const RESPONSE = root.lookupType('ExportTraceServiceResponse');

/** The bytes of a request in the shape of OTLP/JSON, written by an independent encoder. */
function encode(request: object): Buffer {
  return Buffer.from(REQUEST.encode(REQUEST.fromObject(withBytes(request) as object)).finish());
}

const ID_FIELDS = new Set(['traceId', 'spanId', 'parentSpanId']);

/** Ids as bytes: OTLP/JSON writes them in hex, protobuf does not. */
function withBytes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withBytes);
  if (typeof value !== 'object' || value === null || Buffer.isBuffer(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      ID_FIELDS.has(key) && typeof inner === 'string' ? Buffer.from(inner, 'hex') : withBytes(inner),
    ]),
  );
}

function codeOf(bytes: Uint8Array): string {
  try {
    decodeTraceRequest(bytes);
  } catch (error) {
    if (error instanceof DomainError) return error.code;
    throw error;
  }
  return 'decoded';
}

const int64 = fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n);
const text = fc
  .string({ unit: 'binary', maxLength: 80 })
  .filter((one) => Buffer.from(one, 'utf8').toString('utf8') === one);
const anyValue: fc.Arbitrary<object> = fc.letrec<{ value: object }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.record({ stringValue: text }),
    fc.record({ boolValue: fc.boolean() }),
    int64.map((value) => ({ intValue: value.toString() })),
    // Neither infinities nor −0, because the JSON that the independent encoder reads has neither.
    fc.record({
      doubleValue: fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => number || 0),
    }),
    fc.uint8Array({ maxLength: 20 }).map((bytes) => ({ bytesValue: Buffer.from(bytes).toString('base64') })),
    fc.record({ arrayValue: fc.record({ values: fc.array(tie('value'), { maxLength: 4 }) }) }),
    fc.record({
      kvlistValue: fc.record({
        values: fc.array(fc.record({ key: text, value: tie('value') }), { maxLength: 4 }),
      }),
    }),
    fc.constant({}),
  ),
})).value;
const attributes = fc.array(fc.record({ key: text, value: anyValue }), { maxLength: 6 });
const hex = (bytes: number) =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((id) => Buffer.from(id).toString('hex'));
const nanos = fc.bigInt(0n, 2n ** 64n - 1n);
const span = fc.record({
  traceId: hex(16),
  spanId: hex(8),
  parentSpanId: hex(8),
  traceState: text,
  name: text,
  kind: fc.nat(5),
  flags: fc.nat(255),
  startTimeUnixNano: nanos,
  endTimeUnixNano: nanos,
  attributes,
  droppedAttributesCount: fc.nat(),
  events: fc.array(fc.record({ timeUnixNano: nanos, name: text, attributes }), { maxLength: 2 }),
  links: fc.array(fc.record({ traceId: hex(16), spanId: hex(8), attributes }), { maxLength: 2 }),
  status: fc.record({ message: text, code: fc.nat(2) }),
});
const request = fc.record({
  resourceSpans: fc.array(
    fc.record({
      resource: fc.record({ attributes }),
      scopeSpans: fc.array(
        fc.record({
          scope: fc.record({ name: text, version: text, attributes }),
          spans: fc.array(span, { maxLength: 3 }),
          schemaUrl: text,
        }),
        { maxLength: 2 },
      ),
      schemaUrl: text,
    }),
    { maxLength: 2 },
  ),
});

/** The fields of a request that the product reads, with defaults left out as proto3 leaves them out. */
function readable(value: unknown, key = ''): unknown {
  if (Array.isArray(value)) return value.map((item) => readable(item));
  if (key === 'intValue') return BigInt(value as string);
  if (typeof value !== 'object' || value === null) return value;
  const unread = new Set(['traceState', 'kind', 'flags', 'droppedAttributesCount', 'links', 'schemaUrl']);
  const kept = Object.entries(value).filter(([name]) => !unread.has(name));
  return Object.fromEntries(
    kept
      .map(([name, inner]) => [name, readable(inner, name)] as const)
      .filter(([name, inner]) => !isDefault(name, inner)),
  );
}

/** An empty text, list or number zero of a plain field is the same as an absent one; in a oneof it is a value. */
function isDefault(name: string, value: unknown): boolean {
  if (name === 'key' || name.endsWith('Value')) return false;
  return value === '' || value === 0 || value === 0n || (Array.isArray(value) && value.length === 0);
}

const normal = (value: unknown): unknown => readable(withText(value));

/** Integers of the decoder, number or bigint, as text. */
function withText(value: unknown, key = ''): unknown {
  if (key === 'intValue') return String(value);
  if (Array.isArray(value)) return value.map((item) => withText(item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withText(inner, name)]));
}

describe('OTLP in protobuf', () => {
  it('is read as another encoder wrote it, field by field', () => {
    fc.assert(
      fc.property(request, (given) => {
        const asText = JSON.parse(
          JSON.stringify(given, (_, value) => (typeof value === 'bigint' ? value.toString() : value)),
        );
        const decoded = decodeTraceRequest(encode(asText));
        expect(normal(decoded)).toEqual(normal(given));
      }),
      { verbose: 1, numRuns: 200 },
    );
  });

  it('maps to the same calls as the JSON of the same request', () => {
    const json = requestOf(
      [
        aSpan({
          attributes: {
            ...LEAST,
            flag: true,
            ratio: 0.5,
            list: ['a', 1],
            map: { deep: 'x' },
            'gen_ai.response.id': 'x',
          },
        }),
        aSpan({ attributes: { 'http.method': 'GET' }, parentSpanId: '00f067aa0ba902b7' }),
        aSpan({ attributes: { ...LEAST, 'gen_ai.usage.input_tokens': -1 } }),
        aSpan({
          attributes: LEAST,
          status: { code: 2, message: 'overloaded' },
          events: [
            { name: 'gen_ai.user.message', attributes: [{ key: 'content', value: { stringValue: 'hi' } }] },
          ],
        }),
      ],
      { resource: { 'service.name': 'shop' }, scopeAttributes: { team_id: 't' } },
    );
    const plain = ({ calls, ...rest }: ReturnType<typeof mapOtlpRequest>) => ({
      ...rest,
      calls: calls.map((call) => ({ ...call, prompts: call.prompts() })),
    });
    expect(plain(mapOtlpRequest(decodeTraceRequest(encode(json)), context))).toEqual(
      plain(mapOtlpRequest(json, context)),
    );
  });

  it('of no bytes is an empty request', () => {
    expect(decodeTraceRequest(new Uint8Array())).toEqual({ resourceSpans: [] });
  });

  it('keeps 64-bit integers to the last digit, and times to the nanosecond', () => {
    const big = requestOf([
      aSpan({
        attributes: [
          { key: 'big', value: { intValue: '9223372036854775807' } },
          { key: 'least', value: { intValue: '-9223372036854775808' } },
        ],
      }),
    ]);
    const [decoded] = spansOf(decodeTraceRequest(encode(big)));
    expect(decoded?.attributes).toEqual([
      { key: 'big', value: { intValue: 9_223_372_036_854_775_807n } },
      { key: 'least', value: { intValue: -9_223_372_036_854_775_808n } },
    ]);
    expect(String(decoded?.startTimeUnixNano)).toBe(
      (aSpan({}) as { startTimeUnixNano: string }).startTimeUnixNano,
    );
  });

  it('reads wrong UTF-8 with replacement', () => {
    const bytes = Buffer.from([0x0a, 0x0b, 0x12, 0x09, 0x12, 0x07, 0x2a, 0x05, 0x61, 0xff, 0xc3, 0x28, 0x62]);
    expect(spansOf(decodeTraceRequest(bytes))[0]?.name).toBe('a\ufffd\ufffd(b');
  });

  it('lets the last of several fields of one value hold', () => {
    // KeyValue { key: "k", value: { string_value: "x", int_value: 7 } } as the only attribute of a span.
    const value = [0x0a, 0x01, 0x78, 0x18, 0x07];
    const pair = [0x0a, 0x01, 0x6b, 0x12, value.length, ...value];
    const spanBytes = [0x4a, pair.length, ...pair];
    const scope = [0x12, spanBytes.length, ...spanBytes];
    const resource = [0x12, scope.length, ...scope];
    const bytes = Buffer.from([0x0a, resource.length, ...resource]);
    expect(spansOf(decodeTraceRequest(bytes))[0]?.attributes).toEqual([{ key: 'k', value: { intValue: 7 } }]);
  });

  it('ignores unknown fields', () => {
    const unknown = [
      0xfa, 0x3e, 0x03, 1, 2, 3, 0xf8, 0x3e, 0xff, 0x01, 0xf9, 0x3e, 1, 2, 3, 4, 5, 6, 7, 8, 0xfd, 0x3e, 1, 2,
      3, 4,
    ];
    expect(decodeTraceRequest(Buffer.from(unknown))).toEqual({ resourceSpans: [] });
  });
});

function spansOf(
  decoded: OtlpRequest,
): { name?: string; attributes?: unknown; startTimeUnixNano?: unknown }[] {
  const resources = decoded.resourceSpans as { scopeSpans: { spans: object[] }[] }[];
  return resources.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans));
}

describe('bytes that are no request', () => {
  it.each([
    ['a field number 0', [0x00, 0x01]],
    ['a group', [0x0b]],
    ['wire type 7', [0x0f]],
    ['a length beyond the end', [0x0a, 0x05, 0x01]],
    ['a length beyond what holds it', [0x0a, 0x02, 0x12, 0x05, 1, 2, 3, 4, 5]],
    ['a varint without end', [0x80]],
    ['a varint of 11 bytes', [0xf8, 0x3e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]],
    ['a number cut off', [0x0a, 0x07, 0x12, 0x05, 0x12, 0x03, 0x39, 0x01, 0x02]],
    ['JSON', [...Buffer.from('{"resourceSpans":[]}')]],
  ])('%s is invalid_protobuf', (_, bytes) => {
    expect(codeOf(Buffer.from(bytes))).toBe('invalid_protobuf');
  });

  it('are decoded or refused, whatever they are', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
        expect(['decoded', 'invalid_protobuf']).toContain(codeOf(bytes));
      }),
      { verbose: 1, numRuns: 1000 },
    );
  });

  it('are decoded or refused, wherever a good request was cut or changed', () => {
    const good = encode(requestOf([aSpan({ attributes: { ...LEAST, list: [1, { a: 'b' }] } })]));
    fc.assert(
      fc.property(fc.nat(good.length - 1), fc.nat(255), fc.nat(good.length), (at, byte, end) => {
        const changed = Buffer.from(good);
        changed[at] = byte;
        expect(['decoded', 'invalid_protobuf']).toContain(codeOf(changed.subarray(0, end)));
      }),
      { verbose: 1, numRuns: 1000 },
    );
  });

  it('nest deeper than 64 levels', () => {
    const nested = (levels: number): Buffer =>
      levels === 0 ? Buffer.from([0x18, 0x01]) : wrap(0x2a, wrap(0x0a, nested(levels - 1)));
    const at = (levels: number) => inRequest(wrap(0x4a, wrap(0x12, nested(levels))));
    expect(codeOf(at(64))).toBe('decoded');
    expect(codeOf(at(65))).toBe('invalid_protobuf');
    expect(codeOf(at(2000))).toBe('invalid_protobuf');
  });

  it('hold millions of empty values: refused before they fill the memory', () => {
    const pairs = Buffer.alloc(2 * 2_100_000);
    for (let index = 0; index < pairs.length; index += 2) pairs[index] = 0x4a;
    expect(codeOf(inRequest(pairs))).toBe('too_many_items');
  });
});

/** A length-delimited field. */
function wrap(tag: number, inner: Buffer): Buffer {
  return Buffer.concat([Buffer.from([tag, ...varint(inner.length)]), inner]);
}

/** A request of one span with these fields. */
function inRequest(spanFields: Buffer): Buffer {
  return wrap(0x0a, wrap(0x12, wrap(0x12, spanFields)));
}

function varint(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...varint(value >>> 7)];
}

describe('the answer', () => {
  it('is empty when everything was taken', () => {
    expect(encodeExportResponse(undefined)).toHaveLength(0);
  });

  it('is read by another decoder as it was meant', () => {
    fc.assert(
      fc.property(fc.bigInt(0n, 2n ** 62n), text, (rejected, message) => {
        const bytes = encodeExportResponse({ rejectedSpans: rejected.toString(), errorMessage: message });
        const { partialSuccess } = RESPONSE.toObject(RESPONSE.decode(bytes), {
          longs: String,
          defaults: true,
        });
        expect(partialSuccess).toEqual({ rejectedSpans: rejected.toString(), errorMessage: message });
      }),
    );
  });
});
