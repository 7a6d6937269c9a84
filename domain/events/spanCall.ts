import type { Provider } from '../providers.js';
import { type Meaning, USAGE_MEANINGS } from './attributeTable.js';
import { resolveBiller } from './biller.js';
import type { Client } from './clients.js';
import {
  type CallRecord,
  type EventStatus,
  ID_CHARS_MAX,
  type InputSemantics,
  type Json,
  LABEL_CHARS_MAX,
  MODEL_CHARS_MAX,
  type SpanLink,
  STOP_REASON_CHARS_MAX,
} from './event.js';
import {
  checkLength,
  ItemFault,
  type MapContext,
  readCost,
  readTokens,
  shown,
  timeOfSpan,
} from './itemFault.js';
import {
  type AttributeValue,
  labelOf,
  mapOf,
  parseJsonText,
  payloadOfSpan,
  stripJson,
  stripText,
  withinLimit,
} from './jsonValues.js';
import { readObjectText } from './litellm/pythonLiteral.js';
import type { OtlpSpan, SpanSource } from './otlpSpans.js';
import { keepingShort, promptHashOf, promptsOfSpan } from './prompts.js';
import type { SpanAttributes } from './spanAttributes.js';
import { isReported, meterUsage, type ReportedUsage, type UsageReport } from './usage.js';
import { type ReadUsage, readUsageObject } from './usageObjects.js';

const STATUS_ERROR = new Set<unknown>([2, 'STATUS_CODE_ERROR']);
const ABORTED = /abort|cancel|GeneratorExit/i;
const HTTP_STATUS = /^[1-5]\d\d$/;
/** A service tier that names a batch API. */
const BATCH_TIER = 'batch';

/** @param link the span's place in its trace. @throws ItemFault if the span cannot be stored as a call. */
export function callOfSpan(
  span: OtlpSpan,
  link: SpanLink | null,
  attributes: SpanAttributes,
  source: SpanSource,
  context: MapContext,
): CallRecord {
  const time = timeOfSpan(span.startTimeUnixNano, span.endTimeUnixNano, context);
  const models = modelsOf(attributes);
  const billed = billerOf(attributes, models, source, context);
  const reported = usageOfSpan(attributes, source.client, billed.provider);
  const metered = meterUsage(reported, billed.provider, models.responseModel ?? models.model);
  const ids = idsOf(span, link, attributes);
  const labels = labelsOf(attributes);
  const outcome = outcomeOf(span, attributes);
  const { unread } = attributes;
  const { events } = span;
  const prompts = keepingShort(() => promptsOfSpan(unread, events));
  const tier = attributes.label('serviceTier') ?? reported.serviceTier;
  return {
    kind: 'otel_span',
    ...billed,
    ...models,
    ...time,
    ...ids,
    ...labels,
    serviceTier: tier === undefined ? null : checkLength(tier, LABEL_CHARS_MAX, 'service_tier'),
    isBatch: isTrue(attributes.get('isBatch')) || reported.isBatch || tier === BATCH_TIER,
    stopReason: checkLength(stopReasonOf(attributes.get('stopReason')), STOP_REASON_CHARS_MAX, 'stop_reason'),
    ...outcome,
    blockedRuleId: null,
    preventedPico: null,
    ...metered,
    reportedCostPico: attributes.has('cost')
      ? readCost(attributes.get('cost'), attributes.nameOf('cost'))
      : null,
    prompts,
    promptHash: promptHashOf(prompts()),
    payload: payloadOfSpan(unread, events),
    toolInput: attributes.kept('toolInput') ?? null,
    toolOutput: attributes.kept('toolOutput') ?? null,
    serviceName: source.serviceName,
    scopeName: source.scopeName,
    scopeVersion: source.scopeVersion,
    process: source.process,
    trace: link,
    billerSpan: null,
  };
}

function modelsOf(attributes: SpanAttributes): { model: string; responseModel: string | null } {
  const requested = attributes.label('requestModel');
  const answered = attributes.label('responseModel');
  const model = requested ?? answered;
  if (model === undefined)
    throw new ItemFault('missing_field', 'the model is missing: send gen_ai.request.model');
  checkLength(model, MODEL_CHARS_MAX, 'model');
  return {
    model,
    responseModel: answered === undefined ? null : checkLength(answered, MODEL_CHARS_MAX, 'response_model'),
  };
}

function billerOf(
  attributes: SpanAttributes,
  models: { model: string; responseModel: string | null },
  source: SpanSource,
  context: MapContext,
) {
  // No provider's word is longer, and a resource may repeat it for each of its spans.
  const words = attributes.all('provider').map((word) => word.slice(0, LABEL_CHARS_MAX));
  const billed = resolveBiller(
    {
      words,
      hosts: attributes.all('host'),
      models: models.responseModel === null ? [models.model] : [models.model, models.responseModel],
      api: source.client?.api,
    },
    context.inferProvider,
  );
  if (billed === undefined) {
    const said =
      words.length > 0
        ? shown(words[0])
        : `none is named and the model ${shown(models.model)} has no single one`;
    throw new ItemFault('unknown_provider', `the provider is none of the eight: ${said}`);
  }
  return billed;
}

/** The ids of the call: the response id identifies the request, else the span's own ids do. */
function idsOf(span: OtlpSpan, link: SpanLink | null, attributes: SpanAttributes) {
  const responseId = attributes.label('responseId') ?? null;
  if (responseId !== null) checkLength(responseId, ID_CHARS_MAX, 'gen_ai.response.id');
  const traceId = link?.traceId ?? idText(span.traceId);
  const spanId = link?.spanId ?? idText(span.spanId);
  const requestId = responseId ?? (traceId === '' || spanId === '' ? null : `${traceId}:${spanId}`);
  if (requestId !== null) checkLength(requestId, ID_CHARS_MAX, 'request_id');
  const sessionId = checkLength(attributes.label('session') ?? traceId, ID_CHARS_MAX, 'session_id');
  return { responseId, requestId, sessionId };
}

/** An id that is not OpenTelemetry's still distinguishes spans; all zeros counts as none. */
function idText(value: unknown): string {
  return typeof value === 'string' && !/^0*$/.test(value) ? stripText(value) : '';
}

function labelsOf(attributes: SpanAttributes) {
  const inService = (key: string) => labelOf(attributes.inService(key) ?? undefined);
  const environment = label(inService('environment') ?? attributes.label('environment'), 'environment');
  return {
    teamId: label(attributes.label('team'), 'team_id'),
    feature: label(attributes.label('feature'), 'feature'),
    projectId: id(attributes.label('projectId'), 'project_id'),
    userId: id(attributes.label('user'), 'user_id'),
    batchId: id(attributes.label('batchId'), 'batch_id'),
    environment,
    providerAccountId: id(
      attributes.label('providerAccountId') ?? inService('provider_account_id'),
      'provider_account_id',
    ),
    providerKeyId: id(attributes.label('providerKeyId') ?? inService('provider_key_id'), 'provider_key_id'),
    service: serviceOf(attributes.service, environment),
  };
}

function label(text: string | undefined, field: string): string | null {
  return text === undefined ? null : checkLength(text, LABEL_CHARS_MAX, field);
}

function id(text: string | undefined, field: string): string | null {
  return text === undefined ? null : checkLength(text, ID_CHARS_MAX, field);
}

/** The `_service` block, with the environment of another attribute if it has none. */
export function serviceOf(
  service: { [key: string]: Json } | undefined,
  environment: string | null,
): Json | null {
  if (service === undefined) return environment === null ? null : { environment };
  return withinLimit(environment === null ? service : { ...service, environment });
}

/** The outcome of the call: an error becomes a failed attempt, a call that its caller ended becomes cancelled. */
function outcomeOf(
  span: OtlpSpan,
  attributes: SpanAttributes,
): { status: EventStatus; httpStatus: number | null } {
  const { code, message } = (span.status ?? {}) as { code?: unknown; message?: unknown };
  const errorType = attributes.label('errorType') ?? '';
  const httpText = attributes.label('httpStatus') ?? errorType;
  const httpStatus = HTTP_STATUS.test(httpText) ? Number(httpText) : null;
  const isError =
    STATUS_ERROR.has(code) || errorType !== '' || attributes.label('level')?.toUpperCase() === 'ERROR';
  if (!isError) return { status: 'ok', httpStatus };
  const isAborted =
    ABORTED.test(errorType) || (typeof message === 'string' && ABORTED.test(message.slice(0, 512)));
  return { status: isAborted ? 'cancelled' : 'error', httpStatus };
}

/** The first of the finish reasons, from a list, its JSON text, or a word; `unknown`: there is none. */
export function stopReasonOf(value: AttributeValue | Json): string {
  const list = typeof value === 'string' ? parseJsonText(value) : value;
  const first = Array.isArray(list)
    ? list.find((item) => labelOf(item ?? undefined) !== undefined)
    : (value ?? undefined);
  const text = labelOf((first ?? undefined) as AttributeValue);
  return text === undefined ? 'unknown' : stripText(text);
}

/** Whether a flag is set: true, 1, or one of their texts. */
export function isTrue(value: AttributeValue | Json): boolean {
  return value === true || value === 1 || value === 'true' || value === '1' || value === 'True';
}

/** Operations that are calls. Aggregate spans repeat the usage inside them, which would count twice. */

const CALL_OPERATIONS = new Set(['chat', 'text_completion', 'generate_content', 'embeddings']);
const AGGREGATE_OPERATIONS = new Set([
  'invoke_agent',
  'create_agent',
  'invoke_workflow',
  'execute_tool',
  'agent_step',
]);
/** Gemini CLI's spans of calls have no usage; its log record of the same call has it and is the call. */
const LOGGED_OPERATIONS = new Set(['llm_call']);
const CALL_KINDS = new Set(['LLM', 'EMBEDDING']);
const AGGREGATE_KINDS = new Set(['AGENT', 'CHAIN', 'TOOL']);
const CALL_OBSERVATIONS = new Set(['generation', 'embedding']);
const AI_SDK_CALL = /\.do(?:Generate|Stream|Embed|Rerank)$/;
/** Free requests that name a model; the Anthropic SDK traces them beside the calls. */
const FREE_REQUESTS = new Set(['anthropic.messages.count_tokens', 'anthropic.sessions.create']);

/** Whether a span is one call: by its marker, else because it names a model or carries usage. */
export function isCallSpan(attributes: SpanAttributes, spanName: string): boolean {
  const operation = attributes.label('operation');
  if (operation !== undefined && (AGGREGATE_OPERATIONS.has(operation) || LOGGED_OPERATIONS.has(operation)))
    return false;
  const kind = attributes.label('spanKind')?.toUpperCase();
  if (kind !== undefined && AGGREGATE_KINDS.has(kind)) return false;
  const observation = attributes.label('observationType')?.toLowerCase();
  if (observation !== undefined && !CALL_OBSERVATIONS.has(observation)) return false;
  const aiOperation = attributes.label('aiOperation');
  if (aiOperation !== undefined && !AI_SDK_CALL.test(aiOperation)) return false;
  if (FREE_REQUESTS.has(spanName)) return false;
  if (operation !== undefined && CALL_OPERATIONS.has(operation)) return true;
  if (kind !== undefined && CALL_KINDS.has(kind)) return true;
  if (observation !== undefined || aiOperation !== undefined) return true;
  return (
    attributes.has('requestModel') ||
    attributes.has('responseModel') ||
    USAGE_MEANINGS.some((meaning) => attributes.has(meaning))
  );
}

const COUNTS = [
  ['inputTokens', 'input'],
  ['outputTokens', 'output'],
  ['cacheRead', 'cacheRead'],
  ['cacheWrite', 'cacheWrite'],
  ['cacheWrite5m', 'cacheWrite5m'],
  ['cacheWrite1h', 'cacheWrite1h'],
  ['reasoning', 'reasoning'],
  ['totalTokens', 'total'],
  ['inputAudio', 'inputAudio'],
  ['outputAudio', 'outputAudio'],
] as const satisfies readonly (readonly [Meaning, keyof ReportedUsage])[];

/** Conventions by the prefixes of their attribute names. */
const CONVENTIONS = [
  ['gen_ai.usage.', 'otel'],
  ['llm.token_count.', 'openinference'],
  ['ai.usage.', 'ai_sdk'],
  ['llm.usage.', 'traceloop'],
] as const;

export interface SpanUsage extends UsageReport {
  isBatch: boolean;
  serviceTier: string | undefined;
}

/** A span's usage from attributes by the table, else from Langfuse's JSON text. @throws ItemFault invalid_number. */
export function usageOfSpan(
  attributes: SpanAttributes,
  client: Client | undefined,
  provider: Provider,
): SpanUsage {
  const reported: ReportedUsage = {};
  const raw: { [name: string]: unknown } = {};
  for (const [meaning, count] of COUNTS) {
    const value = attributes.get(meaning);
    if (value === undefined) continue;
    const name = attributes.nameOf(meaning);
    reported[count] = readTokens(value, name);
    raw[name] = value;
  }
  const isInputOnly = isEmbedding(attributes);
  if (!isReported(reported)) {
    const read = detailsOf(attributes);
    if (read) return { ...read, isInputOnly, cannotSend: client?.missing ?? [] };
  }
  if (attributes.has('providerMetadata')) addProviderMetadata(reported, attributes);
  if (attributes.has('usageObject')) addUsageObject(reported, raw, attributes);
  return {
    reported,
    expected: semanticsOf(attributes, client, provider),
    source: client?.source ?? conventionOf(attributes),
    cannotSend: client?.missing ?? [],
    raw: hasUsage(attributes) ? raw : null,
    isInputOnly,
    isBatch: false,
    serviceTier: undefined,
  };
}

function hasUsage(attributes: SpanAttributes): boolean {
  return USAGE_MEANINGS.some((meaning) => attributes.has(meaning));
}

function detailsOf(attributes: SpanAttributes): Omit<SpanUsage, 'cannotSend' | 'isInputOnly'> | undefined {
  const details = mapOf(attributes.get('usageDetails'));
  if (details === undefined) return undefined;
  const raw = stripJson(details) as { [key: string]: Json };
  const read: ReadUsage | undefined = readUsageObject(raw, attributes.nameOf('usageDetails'));
  if (read === undefined) return undefined;
  return {
    reported: read.reported,
    expected: read.semantics,
    source: 'langfuse',
    raw,
    isBatch: read.isBatch,
    serviceTier: read.serviceTier,
  };
}

function semanticsOf(
  attributes: SpanAttributes,
  client: Client | undefined,
  provider: Provider,
): InputSemantics {
  if (client === undefined) return 'inclusive';
  const passesOn = client.exclusiveFor?.includes(provider) === true && !attributes.has('uncachedTokens');
  return passesOn ? 'exclusive' : client.semantics;
}

function conventionOf(attributes: SpanAttributes): string {
  const name = attributes.nameOf(attributes.has('inputTokens') ? 'inputTokens' : 'outputTokens');
  return CONVENTIONS.find(([prefix]) => name.startsWith(prefix))?.[1] ?? 'otel';
}

function isEmbedding(attributes: SpanAttributes): boolean {
  return (
    attributes.get('operation') === 'embeddings' ||
    attributes.label('spanKind')?.toUpperCase() === 'EMBEDDING' ||
    attributes.label('observationType')?.toLowerCase() === 'embedding' ||
    attributes.label('aiOperation')?.endsWith('.doEmbed') === true
  );
}

/** LiteLLM's spans have the parts of input and output only in its own usage object. */
function addUsageObject(
  reported: ReportedUsage,
  raw: { [name: string]: unknown },
  attributes: SpanAttributes,
): void {
  const text = attributes.get('usageObject');
  const usage = typeof text === 'string' ? readObjectText(text) : undefined;
  if (usage === undefined) return;
  const name = attributes.nameOf('usageObject');
  const read = readUsageObject(stripJson(usage) as { [key: string]: Json }, name);
  if (read === undefined) return;
  for (const [count, value] of Object.entries(read.reported) as [keyof ReportedUsage, number][])
    reported[count] ??= value;
  raw[name] = usage;
}

/** The AI SDK passes on Anthropic's usage beside its own counts; only it contains cache writes and their lifetimes. */
function addProviderMetadata(reported: ReportedUsage, attributes: SpanAttributes): void {
  const anthropic = mapOf(mapOf(attributes.get('providerMetadata'))?.anthropic);
  const usage = mapOf(anthropic?.usage);
  const written =
    (usage && readUsageObject(usage, 'ai.response.providerMetadata.anthropic.usage')?.reported) ?? {};
  const own = anthropic?.cacheCreationInputTokens ?? undefined;
  const ownWrite =
    own === undefined
      ? undefined
      : readTokens(own, 'ai.response.providerMetadata.anthropic.cacheCreationInputTokens');
  const write = written.cacheWrite ?? ownWrite;
  if (write !== undefined) reported.cacheWrite ??= write;
  if (written.cacheWrite === undefined || written.cacheWrite !== reported.cacheWrite) return;
  if (written.cacheWrite5m !== undefined) reported.cacheWrite5m ??= written.cacheWrite5m;
  if (written.cacheWrite1h !== undefined) reported.cacheWrite1h ??= written.cacheWrite1h;
}
