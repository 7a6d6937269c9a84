import type { BodyKind } from '../../../adapters/ingestBodies/decodeBody.js';
import { listDoubleReports } from '../../../db/events/ingestHealth.js';
import { listPairedScopes } from '../../../db/events/pairedReports.js';
import { getOrganization } from '../../../db/installation/organizations.js';
import { DomainError } from '../../../domain/errors.js';
import type { MappedBatch } from '../../../domain/events/event.js';
import type { MapContext } from '../../../domain/events/itemFault.js';
import { MICROS_PER_DAY } from '../../../domain/period.js';
import { listSourceHealth } from '../../../usecases/events/ingestHealth.js';
import {
  joinObservations,
  mapObservations,
  noteLabelsPassedOn,
} from '../../../usecases/events/joinObservations.js';
import { listMeteredSources, meterPoints } from '../../../usecases/events/meterPoints.js';
import type { ApiDeps } from '../../deps.js';
import {
  defineEndpoint,
  type EndpointRequest,
  type EndpointResponse,
  endpointGroup,
} from '../../endpoint.js';
import {
  eventsRequestDoc,
  ingestEventsResponse,
  ingestHealthResponse,
  ingestLitellmResponse,
  ingestResponse,
  langfuseRequestDoc,
  langfuseResponse,
  litellmRequestDoc,
  logsRequestDoc,
  logsResponse,
  metricsRequestDoc,
  metricsResponse,
  observationRequestDoc,
  type PartialSuccess,
  partialSuccessOf,
  presentIngest,
  presentIngestEvents,
  presentIngestHealth,
  presentIngestLitellm,
  presentLangfuse,
  presentLogs,
  presentMetrics,
  traceRequestDoc,
} from './wire.js';

const HEALTH_DAYS = 30n;
const BODY_PROBLEMS = [
  'invalid_body',
  'invalid_json',
  'json_too_deep',
  'invalid_encoding',
  'payload_too_large',
  'body_too_slow',
  'too_many_items',
  'unsupported_media_type',
  'storage_full',
] as const;

type AnyRequest = EndpointRequest<unknown, unknown, unknown>;

function mapContext(deps: ApiDeps): MapContext {
  const prices = deps.prices.current();
  return {
    nowMicros: deps.nowMicros(),
    oldestMicros: deps.settings.oldestEventMicros(),
    inferProvider: (model) => prices.inferProvider(model),
  };
}

/** Reads the body and maps its calls. */
async function read(request: AnyRequest, deps: ApiDeps, kind: BodyKind): Promise<MappedBatch> {
  const bytes = await request.incoming.bytes(deps.settings.ingestMaxBodyBytes);
  return await deps.bodies.read({
    kind,
    bytes,
    orgId: request.caller.orgId,
    context: mapContext(deps),
    chargeItems: (items) => request.chargeItems(items),
  });
}

/** Stores a mapped batch and counts its results. */
async function store(request: AnyRequest, deps: ApiDeps, batch: MappedBatch) {
  const outcome = await deps.ingest.submit({
    orgId: request.caller.orgId,
    keyId: request.caller.keyId,
    defaultProjectId: request.caller.workspace?.projectId ?? null,
    batch,
  });
  const { ingestItems, ingestRejections } = deps.metrics;
  ingestItems.inc({ outcome: 'stored' }, outcome.accepted - outcome.duplicates);
  if (outcome.duplicates > 0) ingestItems.inc({ outcome: 'duplicate' }, outcome.duplicates);
  const ignored = batch.ignored + outcome.leftOut;
  if (ignored > 0) ingestItems.inc({ outcome: 'ignored' }, ignored);
  for (const rejection of batch.rejections) ingestRejections.inc({ reason: rejection.reason });
  return outcome;
}

function unsupported(type: string, readable: string): DomainError {
  return new DomainError(
    'unsupported_media_type',
    `content-type: ${type.slice(0, 60)} is not read here; send ${readable}`,
    {
      issues: [{ in: 'header', field: 'content-type', message: `send ${readable}` }],
    },
  );
}

const PROTOBUF_TYPES = new Set(['application/x-protobuf', 'application/protobuf']);
const JSON_TYPES = new Set(['', 'application/json', 'text/json']);

/** Whether a body of OTLP is protobuf. Error: unsupported_media_type. */
function isProtobufBody({ incoming }: AnyRequest): boolean {
  const type = incoming.mediaType;
  if (PROTOBUF_TYPES.has(type)) return true;
  if (JSON_TYPES.has(type)) return false;
  throw unsupported(type, 'application/json or application/x-protobuf');
}

async function ingestTrace(request: AnyRequest, deps: ApiDeps): Promise<EndpointResponse> {
  const isProtobuf = isProtobufBody(request);
  const batch = await read(request, deps, isProtobuf ? 'otlp_protobuf' : 'otlp_json');
  const outcome = await store(request, deps, batch);
  if (isProtobuf) {
    const partial = partialSuccessOf(batch.rejections);
    return {
      status: 202,
      content: { type: 'application/x-protobuf', data: deps.otlp.encodeExportResponse(partial) },
    };
  }
  return {
    status: 202,
    body: presentIngest(request.caller.orgId, outcome, batch.ignored + outcome.leftOut, batch.rejections),
  };
}

const traceDocs = {
  method: 'post',
  tag: 'Ingest',
  access: { scope: 'ingest', workspace: 'own' },
  idempotency: 'ignored',
  streams: { 'application/json': traceRequestDoc, 'application/x-protobuf': 'binary' },
  responses: {
    202: {
      description:
        'Committed. `accepted` counts stored and repeated calls; spans that are no model call are `ignored`',
      schema: ingestResponse,
    },
  },
  problems: [...BODY_PROBLEMS, 'invalid_protobuf'],
} as const;

const trace = defineEndpoint({
  ...traceDocs,
  operationId: 'ingestTrace',
  path: '/api/v1/ingest/trace',
  aliases: ['/api/v1/ingest/trace/v1/traces'],
  summary: 'OTLP traces, JSON or protobuf, gzip or deflate',
  handle: ingestTrace,
});

const standardTrace = defineEndpoint({
  ...traceDocs,
  operationId: 'ingestTraceStandardPath',
  path: '/v1/traces',
  summary: 'OTLP traces at the standard path of exporters',
  handle: ingestTrace,
});

const langfuseTrace = defineEndpoint({
  ...traceDocs,
  operationId: 'ingestTraceLangfusePath',
  path: '/api/public/otel/v1/traces',
  authSchemes: ['bearer', 'basic'],
  summary: 'OTLP traces of Langfuse clients, unmodified: the secret key is the API key',
  handle: ingestTrace,
});

/** OTLP's own answer, in the encoding of the request. */
function otlpAnswer(
  request: AnyRequest,
  deps: ApiDeps,
  partial: PartialSuccess | undefined,
  present: (partial: PartialSuccess | undefined) => object,
): EndpointResponse {
  if (!isProtobufBody(request)) return { status: 200, body: present(partial) };
  const data = deps.otlp.encodeExportResponse(partial);
  return { status: 200, content: { type: 'application/x-protobuf', data } };
}

async function ingestLogs(request: AnyRequest, deps: ApiDeps): Promise<EndpointResponse> {
  const batch = await read(request, deps, isProtobufBody(request) ? 'logs_protobuf' : 'logs_json');
  await store(request, deps, batch);
  return otlpAnswer(request, deps, partialSuccessOf(batch.rejections), presentLogs);
}

const logs = defineEndpoint({
  method: 'post',
  tag: 'Ingest',
  access: { scope: 'ingest', workspace: 'own' },
  idempotency: 'ignored',
  operationId: 'ingestLogs',
  path: '/v1/logs',
  aliases: ['/api/v1/ingest/logs', '/api/v1/ingest/v1/logs'],
  summary: 'OTLP logs of coding agents, JSON or protobuf',
  description:
    'Records of calls of Claude Code, Codex CLI and Gemini CLI become events; others are ignored. The answer is OTLP’s own.',
  streams: { 'application/json': logsRequestDoc, 'application/x-protobuf': 'binary' },
  responses: { 200: { description: 'Committed', schema: logsResponse } },
  problems: [...BODY_PROBLEMS, 'invalid_protobuf'],
  handle: ingestLogs,
});

async function ingestMetrics(request: AnyRequest, deps: ApiDeps): Promise<EndpointResponse> {
  const batch = await read(request, deps, isProtobufBody(request) ? 'metrics_protobuf' : 'metrics_json');
  const whole = request.orgDb.leaveProject('sums of metrics carry their project');
  await meterPoints(whole, request.caller.workspace?.projectId ?? null, batch.points ?? []);
  await store(request, deps, batch);
  return otlpAnswer(request, deps, partialSuccessOf(batch.rejections), presentMetrics);
}

const metrics = defineEndpoint({
  method: 'post',
  tag: 'Ingest',
  access: { scope: 'ingest', workspace: 'own' },
  idempotency: 'ignored',
  operationId: 'ingestMetrics',
  path: '/v1/metrics',
  aliases: ['/api/v1/ingest/metrics', '/api/v1/ingest/v1/metrics'],
  summary: 'OTLP metrics of tokens, JSON or protobuf',
  description:
    'Token and cost metrics of Claude Code, Codex CLI, Gemini CLI and gen_ai.client.token.usage show in ingest health whether calls are missing; others are ignored. Metrics never become events. The answer is OTLP’s own.',
  streams: { 'application/json': metricsRequestDoc, 'application/x-protobuf': 'binary' },
  responses: { 200: { description: 'Committed', schema: metricsResponse } },
  problems: [...BODY_PROBLEMS, 'invalid_protobuf'],
  handle: ingestMetrics,
});

async function ingestLangfuse(request: AnyRequest, deps: ApiDeps): Promise<EndpointResponse> {
  const type = request.incoming.mediaType;
  if (!JSON_TYPES.has(type)) throw unsupported(type, 'application/json');
  const batch = await read(request, deps, 'langfuse');
  const reported = batch.observations ?? { itemIds: [], parts: [] };
  const reporter = {
    orgDb: request.orgDb.leaveProject('a key reports its own calls'),
    keyId: request.caller.keyId,
  };
  const joined = await joinObservations(reporter, reported);
  const { calls, rejections } = await mapObservations(reporter, joined, reported, mapContext(deps));
  batch.calls.push(...calls);
  batch.rejections.push(...rejections);
  await store(request, deps, batch);
  await noteLabelsPassedOn(reporter, joined);
  return { status: 207, body: presentLangfuse(reported.itemIds, batch.rejections) };
}

const langfuse = defineEndpoint({
  method: 'post',
  tag: 'Ingest',
  access: { scope: 'ingest', workspace: 'own' },
  idempotency: 'ignored',
  operationId: 'ingestLangfuse',
  path: '/api/public/ingestion',
  authSchemes: ['bearer', 'basic'],
  summary: 'Batches of older Langfuse clients, unmodified: the secret key is the API key',
  description:
    'Creates and updates of a generation become one event, in any order and any number of requests. Labels of traces reach their generations. Other items are accepted and ignored.',
  streams: { 'application/json': langfuseRequestDoc },
  responses: { 207: { description: 'Committed; each item with its result', schema: langfuseResponse } },
  problems: BODY_PROBLEMS,
  handle: ingestLangfuse,
});

const routes = endpointGroup({
  tag: 'Ingest',
  access: { read: { scope: 'events:read', workspace: 'own' }, write: { scope: 'ingest', workspace: 'own' } },
});

const observability = routes.post('/api/v1/ingest/observability', {
  operationId: 'ingestObservability',
  summary: 'Observability webhook',
  description:
    'Observations of type GENERATION become events, others are ignored. X-Observability-Signature is accepted and not verified.',
  idempotency: 'ignored',
  streams: { 'application/json': observationRequestDoc },
  responses: { 202: { description: 'Committed', schema: ingestResponse } },
  problems: [...BODY_PROBLEMS, 'unknown_observation_type'],
  async handle(request, deps) {
    const type = request.incoming.mediaType;
    if (!JSON_TYPES.has(type)) throw unsupported(type, 'application/json');
    const batch = await read(request, deps, 'observation');
    const outcome = await store(request, deps, batch);
    return {
      status: 202,
      body: presentIngest(request.caller.orgId, outcome, batch.ignored + outcome.leftOut, batch.rejections),
    };
  },
});

const events = routes.post('/api/v1/ingest/events', {
  operationId: 'ingestEvents',
  summary: 'Events of SDK wrappers, as {"events": […]} or one a line',
  idempotency: 'ignored',
  streams: { 'application/json': eventsRequestDoc, 'application/x-ndjson': 'binary' },
  responses: {
    202: { description: 'Committed; the first refused items are listed', schema: ingestEventsResponse },
  },
  problems: BODY_PROBLEMS,
  async handle(request, deps) {
    const batch = await read(request, deps, kindOfEvents(request.incoming.mediaType));
    const outcome = await store(request, deps, batch);
    return { status: 202, body: presentIngestEvents(request.caller.orgId, outcome, batch.rejections) };
  },
});

const litellm = routes.post('/api/v1/ingest/litellm', {
  operationId: 'ingestLitellm',
  summary: 'Calls of LiteLLM’s callback generic_api',
  description:
    'A list of its StandardLoggingPayload, one of them, or one a line. Answers from LiteLLM’s cache and requests that call no model are `ignored`.',
  idempotency: 'ignored',
  streams: { 'application/json': litellmRequestDoc, 'application/x-ndjson': 'binary' },
  responses: {
    202: { description: 'Committed; the first refused items are listed', schema: ingestLitellmResponse },
  },
  problems: BODY_PROBLEMS,
  async handle(request, deps) {
    const isLines = kindOfEvents(request.incoming.mediaType) === 'events_lines';
    const batch = await read(request, deps, isLines ? 'litellm_lines' : 'litellm_json');
    const outcome = await store(request, deps, batch);
    return {
      status: 202,
      body: presentIngestLitellm(
        request.caller.orgId,
        outcome,
        batch.ignored + outcome.leftOut,
        batch.rejections,
      ),
    };
  },
});

const NDJSON_TYPES = new Set(['application/x-ndjson', 'application/ndjson', 'application/jsonl']);

function kindOfEvents(type: string): BodyKind {
  if (NDJSON_TYPES.has(type)) return 'events_lines';
  if (JSON_TYPES.has(type)) return 'events_json';
  throw unsupported(type, 'application/json or application/x-ndjson');
}

const health = routes.get('/api/v1/ingest/health', {
  operationId: 'getIngestHealth',
  csv: 'ingest-sources',
  summary: 'Whether traffic arrives, and whether it is complete',
  description: 'The last 30 days by service and instrumentation scope.',
  responses: { 200: { description: 'Sources and what is wrong with them', schema: ingestHealthResponse } },
  async handle({ orgDb }, deps) {
    const sinceMicros = deps.nowMicros() - HEALTH_DAYS * MICROS_PER_DAY;
    const whole = orgDb.leaveProject('which scopes count is one rule for all projects');
    const found = await Promise.all([
      listSourceHealth(orgDb, sinceMicros),
      listMeteredSources(orgDb, sinceMicros),
      listDoubleReports(orgDb, sinceMicros),
      listPairedScopes(orgDb, sinceMicros),
      getOrganization(whole),
    ]);
    return { status: 200, body: presentIngestHealth(sinceMicros, ...found) };
  },
});

export const ingestEndpoints = [
  trace,
  standardTrace,
  langfuseTrace,
  langfuse,
  logs,
  metrics,
  observability,
  litellm,
  events,
  health,
];
