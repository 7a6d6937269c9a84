import { DomainError, type FieldIssue } from '../../errors.js';
import { resolveBiller } from '../biller.js';
import type { MissingClass } from '../clients.js';
import {
  type CallRecord,
  ID_CHARS_MAX,
  type MappedBatch,
  MODEL_CHARS_MAX,
  STOP_REASON_CHARS_MAX,
} from '../event.js';
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
  restOf,
  shown,
  textOf,
} from '../itemFault.js';
import { stripJson, withinLimit } from '../jsonValues.js';
import { keepingShort, promptHashOf, promptsOfPayload } from '../prompts.js';
import { serviceOf, stopReasonOf } from '../spanCall.js';
import { meterUsage, type UsageReport } from '../usage.js';
import { readUsageObject } from '../usageObjects.js';

/** The observability webhook (docs/ingest.md): GENERATION observations are calls, others are ignored. */

const OBSERVATION = 'observation-create';
const GENERATION = 'GENERATION';
const SCOPE_NAME = 'observability';

/** @throws DomainError invalid_body if the input is no observation, unknown_observation_type for another `type`. */
export function mapObservation(input: unknown, context: MapContext): MappedBatch {
  const message = stripJson(input);
  if (!isJsonObject(message)) throw structureFault('body', 'must be an object with type and body');
  const type = fieldOf(message, 'type');
  if (typeof type !== 'string') throw structureFault('type', `must be the text ${OBSERVATION}`);
  if (type !== OBSERVATION) {
    throw new DomainError(
      'unknown_observation_type',
      `type: ${shown(type)} is not taken; send ${OBSERVATION}`,
      {
        issues: [{ in: 'body', field: 'type', message: `must be ${OBSERVATION}` }],
      },
    );
  }
  const body = fieldOf(message, 'body');
  if (!isJsonObject(body)) throw structureFault('body', 'must be an object');
  if (typeof fieldOf(body, 'type') !== 'string')
    throw structureFault('body.type', 'must be a text such as GENERATION');
  const batch: MappedBatch = { calls: [], rejections: [], ignored: 0, links: [] };
  if (textOf(body, 'type')?.toUpperCase() !== GENERATION) {
    batch.ignored = 1;
    return batch;
  }
  try {
    batch.calls.push(callOfObservation(body, context));
  } catch (fault) {
    if (!(fault instanceof ItemFault)) throw fault;
    const { reason, message: text } = fault;
    const id = textOf(body, 'id');
    const label = id === undefined ? '' : `observation ${shown(id)}`;
    batch.rejections.push({ index: 0, label, reason, message: text, serviceName: '', scopeName: SCOPE_NAME });
  }
  return batch;
}

function structureFault(field: string, message: string): DomainError {
  const issue: FieldIssue = { in: 'body', field, message };
  return new DomainError('invalid_body', `${field}: ${message}`, { issues: [issue] });
}

/** Fields of the body that become fields of the event; the others are its payload. */
const READ = new Set([
  'id',
  'type',
  'model',
  'startTime',
  'endTime',
  'latency',
  'usage',
  'usageDetails',
  'traceId',
  'level',
  'environment',
  'metadata',
]);
/** Fields of the metadata that become fields of the event. */
export const READ_METADATA: ReadonlySet<string> = new Set([
  '_service',
  'provider',
  'team_id',
  'feature',
  'session_id',
  'user_id',
  'project_id',
  'environment',
  'is_batch',
  'batch_id',
  'service_tier',
  'provider_account_id',
  'provider_key_id',
  'stop_reason',
  'finish_reason',
  'cost_usd',
]);

/** The sender of an observation and its convention of usage. */
export interface ObservationSource {
  scopeName: string;
  usageSource: string;
  /** Classes that its objects of usage may lack although the call had them. */
  lacks: Readonly<Record<'usage' | 'usageDetails', readonly MissingClass[]>>;
}

const WEBHOOK: ObservationSource = {
  scopeName: SCOPE_NAME,
  usageSource: 'observability',
  lacks: { usage: [], usageDetails: [] },
};

/** The call of one observation of a model. @throws ItemFault */
export function callOfObservation(
  body: JsonObject,
  context: MapContext,
  source: ObservationSource = WEBHOOK,
): CallRecord {
  const given = fieldOf(body, 'metadata');
  const metadata = isJsonObject(given) ? given : undefined;
  const model = checkLength(textOf(body, 'model') ?? missing('model'), MODEL_CHARS_MAX, 'model');
  const time = timeOfObservation(body, context);
  const word = textOf(metadata, 'provider');
  const billed = resolveBiller(
    { words: word === undefined ? [] : [word], hosts: hostsOf(metadata), models: [model] },
    context.inferProvider,
  );
  if (billed === undefined) {
    const said = word === undefined ? `none is named and ${shown(model)} has no single one` : shown(word);
    throw new ItemFault(
      'unknown_provider',
      `the provider is none of the eight: ${said}; name it in metadata.provider`,
    );
  }
  const isError = textOf(body, 'level')?.toUpperCase() === 'ERROR';
  const payload = payloadOf(body, metadata);
  const prompts = keepingShort(() => promptsOfPayload(body));
  const cost = fieldOf(metadata, 'cost_usd');
  const stop = fieldOf(metadata, 'stop_reason') ?? fieldOf(metadata, 'finish_reason');
  return {
    kind: 'observability_generation',
    ...billed,
    model,
    responseModel: null,
    ...time,
    requestId: idIn(textOf(body, 'id'), 'id'),
    responseId: null,
    sessionId: checkLength(
      textOf(metadata, 'session_id') ?? textOf(body, 'traceId') ?? '',
      ID_CHARS_MAX,
      'session_id',
    ),
    ...labelsOf(body, metadata),
    stopReason: checkLength(stopReasonOf(stop), STOP_REASON_CHARS_MAX, 'stop_reason'),
    status: isError ? 'error' : 'ok',
    httpStatus: null,
    blockedRuleId: null,
    preventedPico: null,
    ...meterUsage(usageReportOf(body, source), billed.provider, model),
    reportedCostPico: cost === undefined ? null : readCost(cost, 'metadata.cost_usd'),
    prompts,
    promptHash: promptHashOf(prompts()),
    payload,
    toolInput: null,
    toolOutput: null,
    serviceName: '',
    scopeName: source.scopeName,
    scopeVersion: '',
    process: null,
    trace: null,
    billerSpan: null,
  };
}

function missing(field: string): never {
  throw new ItemFault('missing_field', `${field} is missing`);
}

function timeOfObservation(body: JsonObject, context: MapContext) {
  const startMicros = readInstant(fieldOf(body, 'startTime'), 'startTime');
  checkTime(startMicros, context);
  const hashTimestamp = hashTimestampOf(startMicros);
  const latency = fieldOf(body, 'latency');
  if (latency !== undefined) {
    const durationMs = readDurationMs(latency, 'latency');
    return { startMicros, endMicros: startMicros + BigInt(durationMs) * 1_000n, durationMs, hashTimestamp };
  }
  const end = fieldOf(body, 'endTime');
  const endMicros = end === undefined ? startMicros : readInstant(end, 'endTime');
  return {
    startMicros,
    endMicros,
    durationMs: durationBetween(startMicros * 1_000n, endMicros * 1_000n),
    hashTimestamp,
  };
}

function labelsOf(body: JsonObject, metadata: JsonObject | undefined) {
  const given = fieldOf(metadata, '_service');
  const service = isJsonObject(given) ? given : undefined;
  const environment = labelIn(
    textOf(service, 'environment') ?? textOf(metadata, 'environment') ?? textOf(body, 'environment'),
    'environment',
  );
  const serviceTier = labelIn(textOf(metadata, 'service_tier'), 'service_tier');
  return {
    teamId: labelIn(textOf(metadata, 'team_id'), 'team_id'),
    feature: labelIn(textOf(metadata, 'feature'), 'feature'),
    projectId: idIn(textOf(metadata, 'project_id'), 'project_id'),
    userId: idIn(textOf(metadata, 'user_id'), 'user_id'),
    environment,
    serviceTier,
    isBatch: flagOf(metadata, 'is_batch') || serviceTier === 'batch',
    batchId: idIn(textOf(metadata, 'batch_id'), 'batch_id'),
    providerAccountId: idIn(firstText([metadata, service], 'provider_account_id'), 'provider_account_id'),
    providerKeyId: idIn(firstText([metadata, service], 'provider_key_id'), 'provider_key_id'),
    service: serviceOf(service, environment),
  };
}

/** `usage.input` and `usage.output`, or a usage object in any known dialect. */
function usageReportOf(body: JsonObject, { usageSource, lacks }: ObservationSource): UsageReport {
  const none: UsageReport = {
    reported: {},
    expected: 'inclusive',
    source: usageSource,
    cannotSend: [],
    raw: null,
    isInputOnly: false,
  };
  for (const name of ['usageDetails', 'usage'] as const) {
    const usage = fieldOf(body, name);
    if (usage === undefined) continue;
    if (!isJsonObject(usage)) throw new ItemFault('invalid_field', `${name} is not an object`);
    const read = readUsageObject(usage, name);
    if (read === undefined) continue;
    return {
      ...none,
      cannotSend: lacks[name],
      reported: read.reported,
      expected: read.semantics,
      raw: usage,
    };
  }
  return none;
}

function payloadOf(body: JsonObject, metadata: JsonObject | undefined): CallRecord['payload'] {
  const rest = restOf(body, READ);
  const unread = metadata === undefined ? fieldOf(body, 'metadata') : restOf(metadata, READ_METADATA);
  const metadataRest = unread ?? null;
  if (rest === null && metadataRest === null) return null;
  return withinLimit({ ...rest, ...(metadataRest === null ? {} : { metadata: metadataRest }) });
}
