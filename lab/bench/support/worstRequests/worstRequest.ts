import { randomBytes } from 'node:crypto';
import type { OtlpPair, OtlpSpan } from './otlpBytes.js';

/** The default maximum body of ingest. */
export const BODY_BYTES_MAX = 16_777_216;

export interface WorstRequest {
  name: string;
  path: string;
  contentType: string;
  contentEncoding?: 'gzip';
  /** The expected status. */
  status: number;
  /** The expected number of accepted calls; undefined: not checked. */
  accepted?: number;
  /** Makes the body when it is sent, with new ids. */
  make(): Buffer;
}

export const TRACE = '/api/v1/ingest/trace';
export const EVENTS = '/api/v1/ingest/events';
export const OBSERVABILITY = '/api/v1/ingest/observability';
export const JSON_TYPE = 'application/json';
export const PROTOBUF_TYPE = 'application/x-protobuf';

/** A span in its own trace. */
export function aSpan(index: number, attributes: OtlpPair[]): OtlpSpan {
  const start = BigInt(Date.now() - 60_000) * 1_000_000n;
  return {
    traceId: randomBytes(16).toString('hex'),
    spanId: index.toString(16).padStart(16, '0'),
    name: 'chat',
    startTimeUnixNano: start.toString(),
    endTimeUnixNano: (start + 1_000_000n).toString(),
    attributes,
  };
}
