/**
 * Observations that a client reports in parts: a create and updates, in any order and in any requests. A record holds
 * the latest value of each field with its time, so that parts join to the same record in any order
 * (docs/decisions/0002).
 */
import { hash } from 'node:crypto';
import { compare } from '../../compare.js';
import type { Pico } from '../../money.js';
import { isoFromMicros } from '../../period.js';
import { type CallRecord, ID_CHARS_MAX, type Json, MODEL_CHARS_MAX, type SpanLink } from '../event.js';
import {
  checkLength,
  fieldOf,
  isJsonObject,
  type JsonObject,
  type MapContext,
  readCost,
  textOf,
} from '../itemFault.js';
import { withinLimit } from '../jsonValues.js';
import { callOfObservation, type ObservationSource, READ_METADATA } from './observation.js';

/** The latest value of a field: when it was reported in microseconds, by an update (1) or a create (0), the value. */
export type Dated = readonly [atMicros: number, rank: 0 | 1, value: Json];

/** Fields of a record by name; keys of the metadata as `metadata.key`. */
export type RecordFields = Readonly<Record<string, Dated>>;

export const RECORD_KINDS = ['generation', 'trace'] as const;
export type RecordKind = (typeof RECORD_KINDS)[number];

/** Everything that was reported of a generation or a trace. */
export interface ObservationRecord {
  kind: RecordKind;
  /** The client's id. */
  id: string;
  /** Of a generation: the client's id of its trace; null: not reported yet. */
  traceId: string | null;
  fields: RecordFields;
}

/** One item of a client's batch that reports a generation or a trace. */
export interface ObservationPart extends ObservationRecord {
  /** Index of the item in its request, from 0. */
  index: number;
  /** Prompts, answers and other content, which no record keeps; null: none. */
  content: JsonObject | null;
}

/** Characters of a record's fields as JSON. */
export const RECORD_CHARS_MAX = 16_384;

/** Fields of a generation that its record keeps; the others are content. */
const GENERATION_FIELDS = [
  'startTime',
  'endTime',
  'usage',
  'usageDetails',
  'costDetails',
  'level',
  'environment',
  'parentObservationId',
] as const;
const TRACE_FIELDS = ['sessionId', 'userId', 'environment', 'name', 'tags', 'release', 'version'] as const;
/** Keys of the metadata with a meaning of their own, also under the names that LangChain gives them. */
const METADATA_KEYS: ReadonlySet<string> = new Set([
  ...READ_METADATA,
  'ls_provider',
  'server_address',
  'base_url',
  'api_base',
  'url',
]);

/** Keys of the service block that become fields of the event. */
const SERVICE_KEYS: ReadonlySet<string> = new Set([
  'environment',
  'provider_account_id',
  'provider_key_id',
  'api_key_prefix',
]);

/** The fields of one reported body, as a record keeps them, and the rest as content. */
export function fieldsOfBody(
  kind: RecordKind,
  body: JsonObject,
  { atMicros, isCreate }: { atMicros: bigint; isCreate: boolean },
): { fields: RecordFields; content: JsonObject | null } {
  const fields: Record<string, Dated> = {};
  const content: JsonObject = {};
  const note = (name: string, value: Json) => {
    fields[name] = [Number(atMicros), isCreate ? 0 : 1, value];
  };
  const kept: ReadonlySet<string> = new Set(kind === 'generation' ? GENERATION_FIELDS : TRACE_FIELDS);
  for (const [name, value] of Object.entries(body)) {
    if (value === null || name === 'id' || name === 'traceId' || name === 'type') continue;
    // The first model is the requested one; an update names the model that answered.
    if (name === 'model' && kind === 'generation') note(isCreate ? 'model' : 'answeredModel', value);
    else if (name === 'metadata' && isJsonObject(value)) splitMetadata(value, note, content);
    else if (kept.has(name)) note(name, value);
    else content[name] = value;
  }
  if (isCreate) note('created', true);
  // A trace's input and output repeat those of its observations.
  const isEmpty = kind === 'trace' || Object.keys(content).length === 0;
  return { fields, content: isEmpty ? null : content };
}

function splitMetadata(
  metadata: JsonObject,
  note: (name: string, value: Json) => void,
  content: JsonObject,
): void {
  const rest: JsonObject = {};
  for (const [key, value] of Object.entries(metadata)) {
    if (key === '_service' && isJsonObject(value)) {
      // The rest of the block is the client's own.
      const kept = Object.entries(value).filter(([name]) => SERVICE_KEYS.has(name));
      if (kept.length > 0) note(`metadata.${key}`, Object.fromEntries(kept));
      rest[key] = value;
    } else if (METADATA_KEYS.has(key) && value !== null) note(`metadata.${key}`, value);
    else if (value !== null) rest[key] = value;
  }
  if (Object.keys(rest).length > 0) content.metadata = rest;
}

/** The later value of each field; of two at one time the update's, then the greater JSON text. */
export function joinFields(one: RecordFields, other: RecordFields): RecordFields {
  const joined: Record<string, Dated> = { ...one };
  for (const [name, dated] of Object.entries(other)) {
    const known = joined[name];
    if (known === undefined || compareDated(dated, known) > 0) joined[name] = dated;
  }
  return joined;
}

function compareDated(one: Dated, other: Dated): number {
  return one[0] - other[0] || one[1] - other[1] || compare(JSON.stringify(one[2]), JSON.stringify(other[2]));
}

/** Whether the observation can become a call: its create and a model have arrived. */
export function isCallable({ kind, fields }: ObservationRecord): boolean {
  const hasModel = fields.model !== undefined || fields.answeredModel !== undefined;
  return kind === 'generation' && fields.created !== undefined && hasModel;
}

/** Labels of a trace's calls as one text; equal texts are equal labels. */
export function traceMark({ fields }: ObservationRecord): string {
  const values = Object.entries(fields)
    .filter(([name]) => name !== 'created')
    .map(([name, [, , value]]): [string, Json] => [name, value])
    .sort(([one], [other]) => compare(one, other));
  return values.length === 0 ? '' : hash('sha256', JSON.stringify(values), 'hex').slice(0, 32);
}

const SOURCE: ObservationSource = {
  scopeName: 'langfuse',
  usageSource: 'langfuse',
  lacks: {
    // It holds input and output alone.
    usage: ['cache_read', 'cache_write_5m', 'cache_write_1h', 'reasoning'],
    // The Python client 2.60.10 copies those fields of OpenAI's usage that OpenAI's client declares.
    usageDetails: ['cache_write_5m'],
  },
};

/** The parts of a call of a generation. */
export interface ReportedGeneration {
  record: ObservationRecord;
  trace: ObservationRecord | undefined;
  /** Content of the parts of this request. */
  contents: readonly JsonObject[];
  /** The reporting key: ids that are no UUIDs are unique only among its reports. */
  keyId: string;
}

/** The call of a generation, with the labels of its trace. @throws ItemFault */
export function callOfGeneration(
  { record, trace, contents, keyId }: ReportedGeneration,
  context: MapContext,
): CallRecord {
  const own = valuesOf(record.fields);
  const ofTrace = valuesOf(trace?.fields ?? {});
  const first = textOf(own, 'model') ?? textOf(own, 'answeredModel');
  const answered = textOf(own, 'answeredModel');
  const link = linkOf(record, keyId);
  const metadata = { ...metadataOf(ofTrace), ...metadataOf(own) };
  metadata.provider ??= metadata.ls_provider ?? null;
  metadata.session_id = fieldOf(ofTrace, 'sessionId') ?? metadata.session_id ?? sessionOfTrace(record, link);
  metadata.user_id = fieldOf(ofTrace, 'userId') ?? metadata.user_id ?? null;
  delete metadata.ls_provider;
  const content: JsonObject = Object.assign({}, ...contents);
  if (isJsonObject(content.metadata)) {
    const { _service: service } = content.metadata;
    Object.assign(
      metadata,
      { ...content.metadata, ...metadata },
      service === undefined ? {} : { _service: service },
    );
  }
  const labels = traceLabels(ofTrace);
  const body: JsonObject = {
    ...content,
    ...(labels === null ? {} : { trace: labels }),
    id: record.id,
    type: 'GENERATION',
    model: first ?? null,
    startTime: fieldOf(own, 'startTime') ?? isoFromMicros(createdMicros(record)),
    endTime: fieldOf(own, 'endTime') ?? null,
    usageDetails: fieldOf(own, 'usageDetails') ?? null,
    usage: countsTokens(own) ? (fieldOf(own, 'usage') ?? null) : null,
    level: fieldOf(own, 'level') ?? null,
    environment: fieldOf(own, 'environment') ?? fieldOf(ofTrace, 'environment') ?? null,
    metadata,
  };
  const call = callOfObservation(body, context, SOURCE);
  return {
    ...call,
    responseModel:
      answered === undefined || answered === first ? null : checkLength(answered, MODEL_CHARS_MAX, 'model'),
    reportedCostPico: costOf(own) ?? call.reportedCostPico,
    payload: call.payload === null ? null : withinLimit(call.payload),
    trace: link,
  };
}

function valuesOf(fields: RecordFields): JsonObject {
  return Object.fromEntries(Object.entries(fields).map(([name, [, , value]]) => [name, value]));
}

const METADATA_PREFIX = 'metadata.';

function metadataOf(values: JsonObject): JsonObject {
  const found = Object.entries(values).filter(([name]) => name.startsWith(METADATA_PREFIX));
  return Object.fromEntries(found.map(([name, value]) => [name.slice(METADATA_PREFIX.length), value]));
}

function traceLabels(values: JsonObject): JsonObject | null {
  const names = ['name', 'tags', 'release', 'version'].filter((name) => fieldOf(values, name) !== undefined);
  return names.length === 0 ? null : Object.fromEntries(names.map((name) => [name, values[name] as Json]));
}

/** A create without a start is of the time at which the client reported it. */
function createdMicros({ fields }: ObservationRecord): bigint {
  return BigInt(fields.created?.[0] ?? 0);
}

/** Langfuse counts characters, seconds, images or requests too. */
function countsTokens(values: JsonObject): boolean {
  const usage = fieldOf(values, 'usage');
  const unit = isJsonObject(usage) ? fieldOf(usage, 'unit') : undefined;
  return unit === undefined || (typeof unit === 'string' && unit.toUpperCase() === 'TOKENS');
}

/** The total of the cost details, else the sum of their parts; null: no cost was reported. @throws ItemFault */
function costOf(values: JsonObject): Pico | null {
  const details = fieldOf(values, 'costDetails');
  if (isJsonObject(details)) {
    const sum = sumOf(details, ({ total, ...parts }) => (typeof total === 'number' ? { total } : parts));
    if (sum !== null) return sum;
  }
  const usage = fieldOf(values, 'usage');
  if (!isJsonObject(usage)) return null;
  return sumOf(usage, ({ totalCost, inputCost, outputCost }) =>
    typeof totalCost === 'number'
      ? { totalCost }
      : { inputCost: inputCost ?? null, outputCost: outputCost ?? null },
  );
}

function sumOf(costs: JsonObject, choose: (costs: JsonObject) => JsonObject): Pico | null {
  const chosen = Object.entries(choose(costs)).filter(([, value]) => value !== null && value !== undefined);
  if (chosen.length === 0) return null;
  return chosen.reduce((sum, [name, value]) => sum + readCost(value, name), 0n);
}

const TRACE_UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;

/** The session of a call without one: its trace, if the client's id is in the form of the trace ids of OTLP. */
function sessionOfTrace({ traceId, id }: ObservationRecord, { traceId: linkId }: SpanLink): string | null {
  const named = traceId ?? id;
  return named.replaceAll('-', '').toLowerCase() === linkId ? named : null;
}

/** The place of an observation in its trace. An observation without a trace is a trace of its own. */
export function linkOf(
  { id, traceId, fields }: Pick<ObservationRecord, 'id' | 'traceId' | 'fields'>,
  keyId: string,
): SpanLink {
  const named = traceId ?? id;
  const parent = fields.parentObservationId?.[2];
  return {
    traceId: TRACE_UUID.test(named)
      ? named.replaceAll('-', '').toLowerCase()
      : hash('sha256', `${keyId} ${named}`, 'hex').slice(0, 32),
    spanId: spanIdOf(id),
    parentSpanId: typeof parent === 'string' && parent !== '' ? spanIdOf(parent) : null,
  };
}

function spanIdOf(observationId: string): string {
  return hash('sha256', checkLength(observationId, ID_CHARS_MAX, 'parentObservationId'), 'hex').slice(0, 16);
}
