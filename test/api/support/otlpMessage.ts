import protobuf from 'protobufjs';
import { OTLP_PROTO } from '../../adapters/otlp/otlpProto.js';

const { root } = protobuf.parse(OTLP_PROTO, { keepCase: false });
const REQUEST = root.lookupType('ExportTraceServiceRequest');
const ANSWER = root.lookupType('ExportTraceServiceResponse');
const ID_FIELDS = new Set(['traceId', 'spanId', 'parentSpanId']);

/** An OTLP/JSON request as the bytes of its protobuf message: ids, which JSON writes in hex, are bytes there. */
export function encodeTraceMessage(request: object): Buffer {
  const message = REQUEST.fromObject(withIdBytes(request) as object);
  return Buffer.from(REQUEST.encode(message).finish());
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
