/** One span that is a call → the call. */
import type { AttributeValue } from './anyValue.js';
import { labelOf, parseJsonText } from './anyValue.js';
import { resolveBiller } from './biller.js';
import { timeOfSpan } from './callTime.js';
import {
  type CallRecord,
  type EventStatus,
  ID_CHARS_MAX,
  type Json,
  LABEL_CHARS_MAX,
  MODEL_CHARS_MAX,
  type SpanLink,
  STOP_REASON_CHARS_MAX,
} from './event.js';
import { checkLength, ItemFault, readCost, shown } from './itemFault.js';
import type { MapContext } from './mapContext.js';
import { meterUsage } from './meteredUsage.js';
import type { OtlpSpan, SpanSource } from './otlpSpans.js';
import { payloadOfSpan, withinLimit } from './payload.js';
import { promptHashOf } from './promptHash.js';
import { keepingShort, promptsOfSpan } from './prompts.js';
import type { SpanAttributes } from './spanAttributes.js';
import { usageOfSpan } from './spanUsage.js';
import { stripText } from './stripText.js';

const STATUS_ERROR = new Set<unknown>([2, 'STATUS_CODE_ERROR']);
const ABORTED = /abort|cancel|GeneratorExit/i;
const HTTP_STATUS = /^[1-5]\d\d$/;
/** A service tier that names a batch API. */
const BATCH_TIER = 'batch';

/**
 * Maps a call span.
 * @param link the span's place in its trace, as read by the caller.
 * @throws ItemFault for what makes the span no storable call.
 */
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
  const told = usageOfSpan(attributes, source.client, billed.provider);
  const metered = meterUsage(told, billed.provider, models.responseModel ?? models.model);
  const ids = idsOf(span, link, attributes);
  const labels = labelsOf(attributes);
  const outcome = outcomeOf(span, attributes);
  const { unread } = attributes;
  const { events } = span;
  const prompts = keepingShort(() => promptsOfSpan(unread, events));
  const tier = attributes.label('serviceTier') ?? told.serviceTier;
  return {
    kind: 'otel_span',
    ...billed,
    ...models,
    ...time,
    ...ids,
    ...labels,
    serviceTier: tier === undefined ? null : checkLength(tier, LABEL_CHARS_MAX, 'service_tier'),
    isBatch: isTrue(attributes.get('isBatch')) || told.isBatch || tier === BATCH_TIER,
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
  // A longer word is no provider's, and a resource may repeat it for each of its spans.
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

/** Ids of the call: the response id, else the span's own ids, make it one request. */
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

/** An id that is not OpenTelemetry's still tells spans apart; all zeros is none. */
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

/** The `_service` block, with the environment filled in where another attribute names it. */
export function serviceOf(
  service: { [key: string]: Json } | undefined,
  environment: string | null,
): Json | null {
  if (service === undefined) return environment === null ? null : { environment };
  return withinLimit(environment === null ? service : { ...service, environment });
}

/** How the call ended: an error ends as an attempt, one that its caller gave up as cancelled. */
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

/** The first of the finish reasons: a list, the JSON text of one, or a word; `unknown` when there is none. */
export function stopReasonOf(value: AttributeValue | Json): string {
  const list = typeof value === 'string' ? parseJsonText(value) : value;
  const first = Array.isArray(list)
    ? list.find((item) => labelOf(item ?? undefined) !== undefined)
    : (value ?? undefined);
  const text = labelOf((first ?? undefined) as AttributeValue);
  return text === undefined ? 'unknown' : stripText(text);
}

/** Whether a flag is set: true, 1, or their texts. */
export function isTrue(value: AttributeValue | Json): boolean {
  return value === true || value === 1 || value === 'true' || value === '1' || value === 'True';
}
