import { isGatewayWord } from '../gateways.js';
import { isProvider } from '../providers.js';
import { type BilledCall, resolveBiller } from './biller.js';
import {
  type CallRecord,
  type EventStatus,
  ID_CHARS_MAX,
  type Json,
  type MappedBatch,
  MODEL_CHARS_MAX,
  STOP_REASON_CHARS_MAX,
} from './event.js';
import {
  checkLength,
  checkTime,
  durationBetween,
  fieldOf,
  firstText,
  flagOf,
  hashTimestampOf,
  hostsOf,
  ItemFault,
  idIn,
  isJsonObject,
  type JsonObject,
  labelIn,
  type MapContext,
  readCost,
  readDurationMs,
  readInstant,
  readTokens,
  shown,
  textOf,
} from './itemFault.js';
import { stripJson, withinLimit } from './jsonValues.js';
import { keepingShort, promptHashOf, promptsOfPayload } from './prompts.js';
import { serviceOf, stopReasonOf } from './spanCall.js';
import { meterUsage, type ReportedUsage, type UsageReport } from './usage.js';
import { readUsageObject } from './usageObjects.js';

/** Maps wrapper events: their names, and tokens as disjoint classes or as the provider's usage object. */

const SCOPE_NAME = 'sdk';
const STATUSES: ReadonlySet<string> = new Set([
  'ok',
  'error',
  'cancelled',
  'blocked',
] satisfies EventStatus[]);
/** Forms of providers' ids: the same id in a span means the same call. A wrapper's own request ids have other forms. */
const RESPONSE_ID = /^(?:chatcmpl-|cmpl-|resp_|msg_|gen-)/;

/** Whether a wrapper's request id is the provider's response id. */
export function isResponseId(requestId: string): boolean {
  return RESPONSE_ID.test(requestId);
}

/** Maps items in order; a wrong item is rejected with its index and does not affect the others. */
export function mapSdkEvents(items: readonly unknown[], context: MapContext): MappedBatch {
  const batch: MappedBatch = { calls: [], rejections: [], ignored: 0, links: [] };
  items.forEach((item, index) => {
    let serviceName = '';
    try {
      const event = stripJson(item);
      if (!isJsonObject(event)) throw new ItemFault('invalid_field', 'the item is not an object');
      const service = fieldOf(event, '_service');
      if (isJsonObject(service)) serviceName = textOf(service, 'name') ?? '';
      batch.calls.push(
        callOfSdkEvent(event, { serviceName, scopeName: SCOPE_NAME, scopeVersion: '' }, context),
      );
    } catch (fault) {
      if (!(fault instanceof ItemFault)) throw fault;
      const { reason, message } = fault;
      batch.rejections.push({ index, label: '', reason, message, serviceName, scopeName: SCOPE_NAME });
    }
  });
  return batch;
}

/** The call of one event in the wrappers' form, and who sent it. @throws ItemFault */
export function callOfSdkEvent(
  event: JsonObject,
  { serviceName, scopeName, scopeVersion }: Pick<CallRecord, 'serviceName' | 'scopeName' | 'scopeVersion'>,
  context: MapContext,
): CallRecord {
  const model = checkLength(required(event, 'model'), MODEL_CHARS_MAX, 'model');
  const responseModel = textOf(event, 'response_model') ?? null;
  if (responseModel !== null) checkLength(responseModel, MODEL_CHARS_MAX, 'response_model');
  const billed = billerOf(event, context);
  const time = timeOfItem(event, context);
  const reported = usageReportOf(event);
  const metered = meterUsage(reported, billed.provider, responseModel ?? model);
  const requestId = idIn(textOf(event, 'request_id'), 'request_id');
  const responseId = idIn(textOf(event, 'response_id'), 'response_id');
  const payload = fieldOf(event, 'payload') ?? null;
  const prompts = keepingShort(() => promptsOfPayload(payload));
  const labels = labelsOf(event);
  const serviceTier = labels.serviceTier ?? labelIn(reported.serviceTier, 'usage.service_tier');
  return {
    kind: 'sdk_event',
    ...billed,
    model,
    responseModel,
    ...time,
    requestId: requestId ?? responseId,
    responseId: responseId ?? (requestId !== null && isResponseId(requestId) ? requestId : null),
    sessionId: checkLength(textOf(event, 'session_id') ?? '', ID_CHARS_MAX, 'session_id'),
    ...labels,
    serviceTier,
    isBatch: flagOf(event, 'is_batch') || reported.isBatch || serviceTier === 'batch',
    stopReason: checkLength(
      stopReasonOf(fieldOf(event, 'stop_reason')),
      STOP_REASON_CHARS_MAX,
      'stop_reason',
    ),
    ...metered,
    ...outcomeOf(event),
    prompts,
    promptHash: promptHashOf(prompts()),
    payload: payload === null ? null : withinLimit(payload),
    toolInput: toolOf(event, 'tool_input'),
    toolOutput: toolOf(event, 'tool_output'),
    serviceName,
    scopeName,
    scopeVersion,
    process: null,
    trace: null,
    billerSpan: null,
  };
}

function required(event: JsonObject, name: string): string {
  const text = textOf(event, name);
  if (text === undefined) throw new ItemFault('missing_field', `${name} is missing`);
  return text;
}

function billerOf(event: JsonObject, context: MapContext): BilledCall {
  const word = required(event, 'provider');
  // Only a gateway's calls have another provider than the named one.
  const models = isGatewayWord(word) ? [required(event, 'model')] : [];
  const billed = resolveBiller({ words: [word], hosts: hostsOf(event), models }, context.inferProvider);
  if (billed === undefined)
    throw new ItemFault('unknown_provider', `provider: ${shown(word)} is none of the eight`);
  const named = textOf(event, 'billed_by');
  if (named === undefined || billed.billerFromHost) return billed;
  if (named === 'unknown' || isProvider(named)) return { ...billed, billedBy: named, billerFromHost: true };
  throw new ItemFault('invalid_field', `billed_by: ${shown(named)} is neither a provider nor unknown`);
}

function timeOfItem(event: JsonObject, context: MapContext) {
  const startMicros = readInstant(fieldOf(event, 'timestamp'), 'timestamp');
  checkTime(startMicros, context);
  const hashTimestamp = hashTimestampOf(startMicros);
  const duration = fieldOf(event, 'duration_ms');
  const end = fieldOf(event, 'end_at');
  if (end !== undefined) {
    const endMicros = readInstant(end, 'end_at');
    const between = durationBetween(startMicros * 1_000n, endMicros * 1_000n);
    const durationMs = duration === undefined ? between : readDurationMs(duration, 'duration_ms');
    return { startMicros, endMicros, durationMs, hashTimestamp };
  }
  const durationMs = duration === undefined ? 0 : readDurationMs(duration, 'duration_ms');
  return { startMicros, endMicros: startMicros + BigInt(durationMs) * 1_000n, durationMs, hashTimestamp };
}

const TOKEN_FIELDS = [
  ['input_tokens', 'input'],
  ['output_tokens', 'output'],
  ['cache_read', 'cacheRead'],
  ['cache_creation', 'cacheWrite'],
  ['cache_creation_5m', 'cacheWrite5m'],
  ['cache_creation_1h', 'cacheWrite1h'],
  ['input_audio', 'inputAudio'],
  ['output_audio', 'outputAudio'],
  ['reasoning_tok', 'reasoning'],
] as const satisfies readonly (readonly [string, keyof ReportedUsage])[];

/** The provider's usage object if there is one, else the event's own token fields, which are already disjoint. */
function usageReportOf(
  event: JsonObject,
): UsageReport & { isBatch: boolean; serviceTier: string | undefined } {
  const own = ownCounts(event);
  const usage = fieldOf(event, 'usage');
  if (usage !== undefined && !isJsonObject(usage))
    throw new ItemFault('invalid_field', 'usage is not an object');
  const read = usage === undefined ? undefined : readUsageObject(usage, 'usage');
  // An event with input but no output is an embedding; if both are absent, both are unknown.
  const rest = { cannotSend: [], isBatch: false, serviceTier: undefined };
  if (usage !== undefined && read !== undefined) {
    const { reported, semantics: expected, source, isBatch, serviceTier } = read;
    return {
      ...rest,
      reported,
      expected,
      source,
      raw: usage,
      isInputOnly: reported.input !== undefined,
      isBatch,
      serviceTier,
    };
  }
  const { reported, raw } = own;
  checkSubset(reported.reasoning, reported.output, 'reasoning_tok');
  checkSubset(reported.inputAudio, reported.input, 'input_audio');
  checkSubset(reported.outputAudio, reported.output, 'output_audio');
  const isEmpty = Object.keys(raw).length === 0;
  // Cached tokens are separate from the input, but audio and reasoning are parts of input and output, as in
  // exclusive counts.
  return {
    ...rest,
    reported,
    expected: 'exclusive',
    shownAs: 'disjoint',
    source: 'event',
    raw: isEmpty ? null : raw,
    isInputOnly: reported.input !== undefined,
  };
}

function ownCounts(event: JsonObject): { reported: ReportedUsage; raw: { [name: string]: Json } } {
  const reported: ReportedUsage = {};
  const raw: { [name: string]: Json } = {};
  for (const [name, count] of TOKEN_FIELDS) {
    const value = fieldOf(event, name);
    if (value === undefined) continue;
    reported[count] = readTokens(value, name);
    raw[name] = value;
  }
  return { reported, raw };
}

function checkSubset(part: number | undefined, whole: number | undefined, name: string): void {
  if (part !== undefined && part > (whole ?? 0)) {
    throw new ItemFault('invalid_number', `${name}: ${part} is more than the tokens that contain it`);
  }
}

function labelsOf(event: JsonObject) {
  const given = fieldOf(event, '_service') ?? innerService(fieldOf(event, 'payload'));
  const service = isJsonObject(given) ? given : undefined;
  const environment = labelIn(textOf(service, 'environment') ?? textOf(event, 'environment'), 'environment');
  return {
    teamId: labelIn(textOf(event, 'team_id'), 'team_id'),
    feature: labelIn(textOf(event, 'feature'), 'feature'),
    projectId: idIn(textOf(event, 'project_id'), 'project_id'),
    userId: idIn(textOf(event, 'user_id'), 'user_id'),
    environment,
    serviceTier: labelIn(textOf(event, 'service_tier'), 'service_tier'),
    batchId: idIn(textOf(event, 'batch_id'), 'batch_id'),
    providerAccountId: idIn(firstText([event, service], 'provider_account_id'), 'provider_account_id'),
    providerKeyId: idIn(firstText([event, service], 'provider_key_id'), 'provider_key_id'),
    service: serviceOf(service, environment),
  };
}

/** `_service` belongs inside the payload, but wrappers may also send it beside the payload. */
function innerService(payload: Json | undefined): Json | undefined {
  return isJsonObject(payload) ? fieldOf(payload, '_service') : undefined;
}

function outcomeOf(event: JsonObject) {
  const status = textOf(event, 'status') ?? 'ok';
  if (!STATUSES.has(status)) {
    throw new ItemFault(
      'invalid_field',
      `status: ${shown(status)} is none of ok, error, cancelled and blocked`,
    );
  }
  const http = fieldOf(event, 'http_status');
  const httpStatus = http === undefined ? null : Number(http);
  if (httpStatus !== null && !/^[1-5]\d\d$/.test(typeof http === 'object' ? '' : String(http))) {
    throw new ItemFault('invalid_field', `http_status: ${shown(http)} is no HTTP status`);
  }
  const outcome = { status: status as EventStatus, httpStatus };
  const reportedCostPico = costOf(event, 'cost_usd');
  const blockedRuleId = idIn(textOf(event, 'blocked_rule_id'), 'blocked_rule_id');
  const preventedPico = costOf(event, 'prevented_usd');
  if (status === 'blocked') {
    if (reportedCostPico !== null && reportedCostPico > 0n) {
      throw new ItemFault(
        'invalid_field',
        'cost_usd: a blocked call costs nothing; send what it would have cost as prevented_usd',
      );
    }
    return { ...outcome, reportedCostPico: null, blockedRuleId, preventedPico };
  }
  // A call that names a rule but lacks the blocked status would count as made.
  if (blockedRuleId !== null) throw notBlocked('blocked_rule_id');
  if (preventedPico !== null && preventedPico > 0n) throw notBlocked('prevented_usd');
  return { ...outcome, reportedCostPico, blockedRuleId: null, preventedPico: null };
}

function notBlocked(field: string): ItemFault {
  return new ItemFault(
    'invalid_field',
    `${field}: only a call of status blocked has it; say so or leave it out`,
  );
}

function costOf(event: JsonObject, name: string): bigint | null {
  const value = fieldOf(event, name);
  return value === undefined ? null : readCost(value, name);
}

function toolOf(event: JsonObject, name: string): Json | null {
  const value = fieldOf(event, name);
  return value === undefined ? null : withinLimit(value);
}
