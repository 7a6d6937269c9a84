import { randomUUID } from 'node:crypto';
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { TestApi } from '../../support/api.js';

/** An answer with everything that a client can see of it. */
export interface RawAnswer {
  status: number;
  headers: IncomingHttpHeaders;
  bytes: Buffer;
  /** Parsed where the media type is JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: what the test asserts is the shape
  body: any;
  /** False when the connection broke before the last chunk. */
  isComplete: boolean;
}

export interface RawRequest {
  method?: string;
  path: string;
  /** Null: no Authorization header. Default: the admin key. */
  key?: string | null;
  headers?: Record<string, string>;
  /** One buffer is sent with its length, several are sent chunked and without one. */
  body?: Buffer | string | readonly Buffer[];
}

/** Sends one request on a new connection by Node's client, which adds nothing and retries nothing. */
export function send(api: Pick<TestApi, 'baseUrl' | 'adminKey'>, options: RawRequest): Promise<RawAnswer> {
  const key = options.key === undefined ? api.adminKey : options.key;
  return new Promise((resolve, reject) => {
    const request = httpRequest(api.baseUrl + options.path, {
      method: options.method ?? (options.body === undefined ? 'GET' : 'POST'),
      agent: false,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...lengthOfDelete(options),
        ...options.headers,
      },
    });
    request.on('error', reject);
    request.on('response', (response) => resolve(readAnswer(response)));
    const { body } = options;
    if (body === undefined || typeof body === 'string' || Buffer.isBuffer(body)) request.end(body);
    else {
      for (const chunk of body) request.write(chunk);
      request.end();
    }
  });
}

/** `send` with an optional JSON body. */
export function sendJson(
  api: Pick<TestApi, 'baseUrl' | 'adminKey'>,
  { json, ...rest }: Omit<RawRequest, 'headers' | 'body'> & { json?: unknown },
): Promise<RawAnswer> {
  if (json === undefined) return send(api, rest);
  const headers = { 'content-type': 'application/json' };
  return send(api, { ...rest, body: JSON.stringify(json), headers });
}

/** Node's client frames no body of a DELETE by itself. */
function lengthOfDelete({ method, body }: RawRequest): Record<string, string> {
  const isWhole = typeof body === 'string' || Buffer.isBuffer(body);
  return method === 'DELETE' && isWhole ? { 'content-length': String(Buffer.byteLength(body)) } : {};
}

function readAnswer(response: IncomingMessage): Promise<RawAnswer> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    response.on('data', (chunk: Buffer) => chunks.push(chunk));
    response.on('error', () => undefined);
    response.on('end', () => response.socket.destroy());
    response.on('close', () => {
      const bytes = Buffer.concat(chunks);
      const isJson = /[/+]json$/.test((response.headers['content-type'] ?? '').split(';')[0] ?? '');
      const isWhole =
        isJson && bytes.length > 0 && response.complete && !response.headers['content-encoding'];
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        bytes,
        body: isWhole ? JSON.parse(bytes.toString()) : bytes.toString(),
        isComplete: response.complete,
      });
    });
  });
}

/** The body of a GET. Throws unless its status is 200. */
// biome-ignore lint/suspicious/noExplicitAny: the API checks its answers against their schemas
export async function readBody(api: Pick<TestApi, 'get'>, path: string, key: string): Promise<any> {
  const { status, body } = await api.get(path, key);
  if (status !== 200) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`);
  return body;
}

/** A time a while ago, distinct for each `index`, in the last 30 days. */
export function aTime(index = 0): string {
  return new Date(Date.now() - 86_400_000 - index * 1_000).toISOString();
}

/** An item of `POST /ingest/events`, unlike every other. */
export function anEvent(overrides: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    provider: 'openai',
    model: 'gpt-4o',
    timestamp: aTime(),
    request_id: `req-${randomUUID()}`,
    input_tokens: 100,
    output_tokens: 50,
    ...overrides,
  };
}

/** Stores events; fails where one of them is refused. */
export async function ingest(api: TestApi, events: readonly object[], key = api.ingestKey): Promise<void> {
  const { status, body } = await api.post('/api/v1/ingest/events', { events }, key);
  if (status !== 202 || body.accepted !== events.length)
    throw new Error(`not all events were taken: ${status} ${JSON.stringify(body)}`);
}

const EVENTS_PER_REQUEST = 2_000;

/** `ingest` for more events than one request may have. */
export async function ingestMany(
  api: TestApi,
  events: readonly object[],
  key = api.ingestKey,
): Promise<void> {
  for (let at = 0; at < events.length; at += EVENTS_PER_REQUEST)
    await ingest(api, events.slice(at, at + EVENTS_PER_REQUEST), key);
}

export type AttributeValue = string | number | boolean;

/** An OTLP/JSON attribute as exporters write it. */
export function anAttribute(key: string, value: AttributeValue | object) {
  if (typeof value === 'object') return { key, value };
  if (typeof value === 'string') return { key, value: { stringValue: value } };
  if (typeof value === 'boolean') return { key, value: { boolValue: value } };
  return { key, value: Number.isInteger(value) ? { intValue: value } : { doubleValue: value } };
}

/** A span of a call with new ids; `attributes` replace or extend the usual ones, undefined removes one. */
export function aSpan(
  attributes: Record<string, AttributeValue | object | undefined> = {},
  fields: Record<string, unknown> = {},
): Record<string, unknown> {
  const id = randomUUID().replaceAll('-', '');
  const start = BigInt(Date.now() - 86_400_000) * 1_000_000n;
  const all = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.system': 'openai',
    'gen_ai.request.model': 'gpt-4o',
    'gen_ai.usage.input_tokens': 100,
    'gen_ai.usage.output_tokens': 50,
    ...attributes,
  };
  return {
    traceId: id,
    spanId: id.slice(0, 16),
    name: 'chat gpt-4o',
    startTimeUnixNano: String(start),
    endTimeUnixNano: String(start + 1_250_000_000n),
    attributes: Object.entries(all).flatMap(([key, value]) =>
      value === undefined ? [] : [anAttribute(key, value)],
    ),
    ...fields,
  };
}

/** An OTLP/JSON request of logs with one call of Claude Code. */
export function aLog(attributes: Record<string, AttributeValue | object | undefined> = {}) {
  const all = {
    'event.name': 'api_request',
    'event.timestamp': aTime(),
    model: 'claude-sonnet-4-5',
    duration_ms: 1_250,
    input_tokens: 100,
    output_tokens: 50,
    cache_read_tokens: 0,
    cache_creation_tokens: 0,
    request_id: `req_${randomUUID()}`,
    ...attributes,
  };
  const record = {
    timeUnixNano: String(BigInt(Date.now()) * 1_000_000n),
    body: { stringValue: 'claude_code.api_request' },
    attributes: Object.entries(all).flatMap(([key, value]) =>
      value === undefined ? [] : [anAttribute(key, value)],
    ),
  };
  const scope = { name: 'com.anthropic.claude_code.events', version: '2.1.0' };
  return {
    resourceLogs: [
      {
        resource: { attributes: [anAttribute('service.name', 'claude-code')] },
        scopeLogs: [{ scope, logRecords: [record] }],
      },
    ],
  };
}

/** A payload of LiteLLM's callback for one answered call. */
export function aLiteLlmPayload(overrides: Record<string, unknown> = {}): Record<string, unknown> {
  const startTime = (Date.now() - 86_400_000) / 1_000;
  return {
    id: `chatcmpl-${randomUUID()}`,
    call_type: 'acompletion',
    status: 'success',
    custom_llm_provider: 'openai',
    model: 'openai/gpt-4o',
    startTime,
    endTime: startTime + 1,
    prompt_tokens: 100,
    completion_tokens: 50,
    total_tokens: 150,
    metadata: {},
    ...overrides,
  };
}

/** Data points of one metric: their attributes and value. */
export interface MetricToSend {
  name: string;
  points: readonly { attributes: Record<string, string>; value: number }[];
  service?: string;
  kind?: 'sum' | 'histogram' | 'exponentialHistogram';
  temporality?: 'delta' | 'cumulative';
  /** Milliseconds since 1970; default: an hour ago. */
  startMillis?: number;
  /** Milliseconds after the start. */
  lastedMillis?: number;
}

/** An OTLP/JSON request of one metric, as Claude Code sends it where nothing else is said. */
export function aMetric({ name, points, ...more }: MetricToSend) {
  const { service = 'claude-code', kind = 'sum', temporality = 'delta', lastedMillis = 60_000 } = more;
  const startMillis = more.startMillis ?? Date.now() - 3_600_000;
  const nanos = (millis: number) => String(BigInt(millis) * 1_000_000n);
  const dataPoints = points.map(({ attributes, value }) => ({
    attributes: Object.entries(attributes).map(([key, text]) => anAttribute(key, text)),
    startTimeUnixNano: nanos(startMillis),
    timeUnixNano: nanos(startMillis + lastedMillis),
    ...(kind === 'sum' ? { asDouble: value } : { count: 1, sum: value }),
  }));
  const aggregationTemporality = temporality === 'delta' ? 1 : 2;
  return {
    resourceMetrics: [
      {
        resource: { attributes: [anAttribute('service.name', service)] },
        scopeMetrics: [
          {
            scope: { name: 'com.anthropic.claude_code', version: '2.1.0' },
            metrics: [{ name, [kind]: { dataPoints, aggregationTemporality } }],
          },
        ],
      },
    ],
  };
}

/** An OTLP/JSON request of one scope of one service. */
export function aTrace(...spans: unknown[]) {
  return {
    resourceSpans: [
      {
        resource: { attributes: [anAttribute('service.name', 'checkout')] },
        scopeSpans: [{ scope: { name: 'test-scope', version: '1.0.0' }, spans }],
      },
    ],
  };
}
