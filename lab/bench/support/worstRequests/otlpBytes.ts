/** Encodes requests in the shape of OTLP/JSON as protobuf, with only the fields of the worst requests. */

interface OtlpValue {
  stringValue?: string;
  intValue?: number;
  arrayValue?: { values: OtlpValue[] };
  kvlistValue?: { values: OtlpPair[] };
}

export interface OtlpPair {
  key: string;
  value: OtlpValue;
}

export interface OtlpSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: OtlpPair[];
}

export interface OtlpScopeSpans {
  scope: { name: string };
  spans: OtlpSpan[];
}

export interface OtlpBody {
  resourceSpans: { resource: { attributes: OtlpPair[] }; scopeSpans: OtlpScopeSpans[] }[];
}

const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;

export function encodeOtlp(body: OtlpBody): Buffer {
  const parts = body.resourceSpans.map(({ resource, scopeSpans }) =>
    message(1, [
      message(
        1,
        resource.attributes.map((pair) => pairField(1, pair)),
      ),
      ...scopeSpans.map(({ scope, spans }) =>
        message(2, [message(1, [textField(1, scope.name)]), ...spans.map(spanField)]),
      ),
    ]),
  );
  return Buffer.concat(parts);
}

function spanField(span: OtlpSpan): Buffer {
  return message(2, [
    bytesField(1, Buffer.from(span.traceId, 'hex')),
    bytesField(2, Buffer.from(span.spanId, 'hex')),
    ...(span.parentSpanId === undefined ? [] : [bytesField(4, Buffer.from(span.parentSpanId, 'hex'))]),
    textField(5, span.name),
    fixedField(7, BigInt(span.startTimeUnixNano)),
    fixedField(8, BigInt(span.endTimeUnixNano)),
    ...span.attributes.map((pair) => pairField(9, pair)),
  ]);
}

function pairField(field: number, { key, value }: OtlpPair): Buffer {
  return message(field, [textField(1, key), message(2, [valueFields(value)])]);
}

function valueFields(value: OtlpValue): Buffer {
  if (value.stringValue !== undefined) return textField(1, value.stringValue);
  if (value.intValue !== undefined) return Buffer.concat([tag(3, VARINT), varint(value.intValue)]);
  if (value.arrayValue !== undefined)
    return message(
      5,
      value.arrayValue.values.map((item) => message(1, [valueFields(item)])),
    );
  if (value.kvlistValue !== undefined)
    return message(
      6,
      value.kvlistValue.values.map((pair) => pairField(1, pair)),
    );
  return Buffer.alloc(0);
}

function message(field: number, parts: readonly Buffer[]): Buffer {
  return bytesField(field, Buffer.concat(parts));
}

function textField(field: number, text: string): Buffer {
  return bytesField(field, Buffer.from(text));
}

function bytesField(field: number, bytes: Buffer): Buffer {
  return Buffer.concat([tag(field, LENGTH), varint(bytes.length), bytes]);
}

function fixedField(field: number, value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(value);
  return Buffer.concat([tag(field, FIXED64), bytes]);
}

function tag(field: number, wireType: number): Buffer {
  return varint(field * 8 + wireType);
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 0x7f) {
    bytes.push((rest % 0x80) | 0x80);
    rest = Math.floor(rest / 0x80);
  }
  bytes.push(rest);
  return Buffer.from(bytes);
}
