import protobuf from 'protobufjs';
import { OTLP_PROTO } from '../../adapters/otlp/otlpProto.js';

const { root } = protobuf.parse(OTLP_PROTO, { keepCase: false });
const REQUEST = root.lookupType('ExportTraceServiceRequest');
const ANSWER = root.lookupType('ExportTraceServiceResponse');
const LOGS = root.lookupType('ExportLogsServiceRequest');
const METRICS = root.lookupType('ExportMetricsServiceRequest');
const ID_FIELDS = new Set(['traceId', 'spanId', 'parentSpanId']);

/** An OTLP/JSON request as the bytes of its protobuf message: ids, which JSON writes in hex, are bytes there. */
export function encodeTraceMessage(request: object): Buffer {
  const message = REQUEST.fromObject(withIdBytes(request) as object);
  return Buffer.from(REQUEST.encode(message).finish());
}

/** The same for a request of logs. */
export function encodeLogsMessage(request: object): Buffer {
  return Buffer.from(LOGS.encode(LOGS.fromObject(withIdBytes(request) as object)).finish());
}

/** The same for a request of metrics. */
export function encodeMetricsMessage(request: object): Buffer {
  return Buffer.from(METRICS.encode(METRICS.fromObject(request)).finish());
}

function withIdBytes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withIdBytes);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      ID_FIELDS.has(key) ? Buffer.from(String(inner), 'hex') : withIdBytes(inner),
    ]),
  );
}

/** A protobuf answer in the shape of its JSON form; 64-bit numbers as text. */
export function decodeTraceAnswer(bytes: Uint8Array): unknown {
  return ANSWER.toObject(ANSWER.decode(bytes), { longs: String });
}

/** A field of wire type 2: its tag, its length, its bytes. */
function field(number: number, ...parts: Buffer[]): Buffer {
  const bytes = Buffer.concat(parts);
  const length: number[] = [];
  for (let rest = bytes.length; ; rest >>>= 7) {
    length.push(rest > 0x7f ? (rest & 0x7f) | 0x80 : rest);
    if (rest <= 0x7f) break;
  }
  return Buffer.concat([Buffer.from([number * 8 + 2, ...length]), bytes]);
}

/** A request with one span, whose attribute is a list nested `levels` deep, which encoders refuse to write. */
export function encodeNestedValue(levels: number): Buffer {
  let value = field(1, Buffer.from('x'));
  for (let level = 0; level < levels; level += 1) value = field(5, field(1, value));
  const attribute = field(9, field(1, Buffer.from('deep')), field(2, value));
  return field(1, field(2, field(2, attribute)));
}
