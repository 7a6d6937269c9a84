import type { BillerSpan, CallRecord } from '../../domain/events/event.js';
import { lastingPairKeyOf } from '../../domain/events/pairs/pairReports.js';
import { decimalFromPico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import { type CallPrice, costOf, isUnmetered } from '../../domain/pricing/cost.js';
import { plainArray, textArray } from '../pgArray.js';
import { LOG_COLUMNS } from '../usage/usageLog.js';
import { AFTER_PLACES, valueAt } from './eventPlaces.js';

export interface StorableEvent {
  id: string;
  apiKeyHash: string;
  apiKeyId: string;
  call: CallRecord;
  price: CallPrice;
  projectId: string | null;
  /** Set on a report whose call another report represents: one of the same batch, or a stored one. */
  supersededBy: string | null;
  /** A stored event has its response id. */
  isResponseKnown?: boolean;
}

export type ColumnValue = string | number | bigint | boolean | null;

/**
 * One column: its name and SQL type; `text` for arbitrary text of clients, `plain` for values that need no quotes in an
 * array literal; its value; and for rarely used columns their empty value, so that a batch without values leaves the
 * column out of its statement (storeStatement.ts).
 */
export type Column = readonly [
  name: string,
  type: string,
  form: 'text' | 'plain',
  of: (event: StorableEvent) => ColumnValue,
  nothing?: null | 0 | false,
];

export const COLUMNS: readonly Column[] = [
  ['id', 'uuid', 'plain', (e) => e.id],
  ['timestamp', 'timestamptz', 'plain', (e) => isoFromMicros(e.call.startMicros)],
  ['end_at', 'timestamptz', 'plain', (e) => isoFromMicros(e.call.endMicros)],
  ['superseded_by', 'uuid', 'plain', (e) => e.supersededBy, null],
  ['kind', 'text', 'plain', (e) => e.call.kind],
  ['status', 'text', 'plain', (e) => e.call.status],
  ['http_status', 'int4', 'plain', (e) => e.call.httpStatus, null],
  ['provider', 'text', 'plain', (e) => e.call.provider],
  ['billed_by', 'text', 'plain', (e) => e.call.billedBy],
  ['provider_account_id', 'text', 'text', (e) => e.call.providerAccountId, null],
  ['provider_key_id', 'text', 'text', (e) => e.call.providerKeyId, null],
  ['model', 'text', 'text', (e) => e.call.model],
  ['response_model', 'text', 'text', (e) => e.call.responseModel],
  ['request_id', 'text', 'text', (e) => e.call.requestId],
  ['api_key_hash', 'text', 'plain', (e) => e.apiKeyHash],
  ['api_key_id', 'text', 'plain', (e) => e.apiKeyId],
  ['session_id', 'text', 'text', (e) => e.call.sessionId],
  ['team_id', 'text', 'text', (e) => e.call.teamId],
  ['feature', 'text', 'text', (e) => e.call.feature],
  ['project_id', 'text', 'text', (e) => e.projectId, null],
  ['user_id', 'text', 'text', (e) => e.call.userId],
  ['environment', 'text', 'text', (e) => e.call.environment],
  ['service_tier', 'text', 'text', (e) => e.call.serviceTier, null],
  ['is_batch', 'bool', 'plain', (e) => e.call.isBatch, false],
  ['batch_id', 'text', 'text', (e) => e.call.batchId, null],
  ['input_tokens', 'int8', 'plain', (e) => (e.call.usage ? e.call.usage.input + e.call.usage.inputAudio : 0)],
  [
    'output_tokens',
    'int8',
    'plain',
    (e) => (e.call.usage ? e.call.usage.output + e.call.usage.outputAudio : 0),
  ],
  ['cache_read', 'int8', 'plain', (e) => e.call.usage?.cacheRead ?? 0],
  ['cache_creation', 'int8', 'plain', (e) => e.call.usage?.cacheCreation ?? 0, 0],
  ['cache_creation_5m', 'int8', 'plain', (e) => e.call.usage?.cacheCreation5m ?? null, null],
  ['cache_creation_1h', 'int8', 'plain', (e) => e.call.usage?.cacheCreation1h ?? null, null],
  ['reasoning_tok', 'int8', 'plain', (e) => e.call.usage?.reasoning ?? 0],
  ['cached_tok', 'int8', 'plain', (e) => e.call.usage?.cached ?? 0],
  ['input_audio', 'int8', 'plain', (e) => e.call.usage?.inputAudio ?? 0, 0],
  ['output_audio', 'int8', 'plain', (e) => e.call.usage?.outputAudio ?? 0, 0],
  ['context_band', 'int4', 'plain', (e) => e.price.contextBand, 0],
  ['unmetered', 'bool', 'plain', (e) => isUnmetered(e.call), false],
  ['cost_usd', 'numeric', 'plain', (e) => decimalFromPico(costOf(e).pico)],
  [
    'computed_cost_usd',
    'numeric',
    'plain',
    (e) => (e.price.computedPico === null ? null : decimalFromPico(e.price.computedPico)),
  ],
  [
    'reported_cost_usd',
    'numeric',
    'plain',
    (e) => (e.call.reportedCostPico === null ? null : decimalFromPico(e.call.reportedCostPico)),
    null,
  ],
  ['cost_source', 'text', 'plain', (e) => costOf(e).source],
  ['price_gaps', 'text', 'text', (e) => joinList(e.price.priceGaps), null],
  ['usage_source', 'text', 'text', (e) => e.call.origin.usageSource],
  ['input_semantics', 'text', 'plain', (e) => e.call.origin.inputSemantics],
  ['usage_missing', 'text', 'text', (e) => joinList(e.call.origin.usageMissing), null],
  ['usage_flags', 'text', 'text', (e) => joinList(e.call.origin.usageFlags), null],
  ['usage_raw', 'text', 'text', (e) => e.call.origin.usageRaw],
  ['duration_ms', 'int8', 'plain', (e) => e.call.durationMs],
  ['stop_reason', 'text', 'text', (e) => e.call.stopReason],
  ['blocked_rule_id', 'text', 'text', (e) => e.call.blockedRuleId, null],
  [
    'prevented_usd',
    'numeric',
    'plain',
    (e) => (e.call.preventedPico === null ? null : decimalFromPico(e.call.preventedPico)),
    null,
  ],
  ['told_classes', 'int2', 'plain', (e) => e.call.reportedClasses],
  ['biller_from_host', 'bool', 'plain', (e) => e.call.billerFromHost],
  [
    'biller_span',
    'text',
    'text',
    (e) => (e.call.billerSpan === null ? null : spanText(e.call.billerSpan)),
    null,
  ],
  ['prompt_hash', 'int8', 'plain', (e) => e.call.promptHash, null],
  ['service_name', 'text', 'text', (e) => e.call.serviceName],
  ['scope_name', 'text', 'text', (e) => e.call.scopeName],
  ['pair_key', 'int8', 'plain', (e) => lastingPairKeyOf(e.call), null],
];

/** Lists are sent as one text each: Postgres has no arrays of arrays of unequal length. */
export const LIST_COLUMNS = new Set(['price_gaps', 'usage_missing', 'usage_flags']);

function joinList(values: readonly string[]): string | null {
  return values.length === 0 ? null : values.join(',');
}

/** Columns that identify the event; another report of the call can complete all other columns. */
const FIXED_COLUMNS = new Set([
  'id',
  'timestamp',
  'superseded_by',
  'kind',
  'provider',
  'model',
  'request_id',
  'api_key_hash',
  'api_key_id',
  'service_name',
  'scope_name',
  'told_classes',
  'pair_key',
]);
const COMPLETED_COLUMNS = COLUMNS.filter(([name]) => !FIXED_COLUMNS.has(name));

/** An event before and after another report completed it. */
export interface CompletedForm {
  before: StorableEvent;
  event: StorableEvent;
  /** A column changed that totals need. */
  isRecounted: boolean;
}

/** An update of the columns that some of the completed events changed. */
export interface Completion {
  assignments: string[];
  /** True where totals change. */
  isRecounted: string;
  /** An array for each changed column, and that of `isRecounted`. */
  values: string[];
}

/**
 * The update's arrays are the parameters behind those of the places (eventPlaces.ts). Where no total changes, the columns
 * that totals need stay as they were counted.
 * @param completed in the order of their ids
 */
export function completionOf(completed: readonly CompletedForm[]): Completion {
  const changed = COMPLETED_COLUMNS.filter(([, , , of]) =>
    completed.some(({ before, event }) => of(before) !== of(event)),
  );
  const events = completed.map(({ event }) => event);
  const isRecounted = valueAt(AFTER_PLACES + changed.length, 'bool');
  return {
    assignments: changed.map((column, index) => assignmentOf(column, AFTER_PLACES + index, isRecounted)),
    isRecounted,
    values: [
      ...changed.map(([, , form, of]) =>
        form === 'text' ? textArray(events.map(of) as (string | null)[]) : plainArray(events.map(of)),
      ),
      plainArray(completed.map((one) => one.isRecounted)),
    ],
  };
}

function assignmentOf([name, type]: Column, parameter: number, isRecounted: string): string {
  const sent = valueAt(parameter, type);
  const value = LIST_COLUMNS.has(name) ? `string_to_array(${sent}, ',')` : sent;
  return LOG_COLUMNS.has(name)
    ? `${name} = case when ${isRecounted} then ${value} else ${name} end`
    : `${name} = ${value}`;
}

/** Whether two forms of an event are equal in every completable column. */
export function isSameForm(one: StorableEvent, other: StorableEvent): boolean {
  return COMPLETED_COLUMNS.every(([, , , of]) => of(one) === of(other));
}

const COUNTED_COLUMNS = COMPLETED_COLUMNS.filter(([name]) => LOG_COLUMNS.has(name));

/** Whether two forms of an event are equal in every column that totals need. */
export function isCountedTheSame(one: StorableEvent, other: StorableEvent): boolean {
  return COUNTED_COLUMNS.every(([, , , of]) => of(one) === of(other));
}

/** A span as one text, for the rare event whose biller another span named. */
export function spanText({ trace, startMicros, endMicros }: BillerSpan): string {
  const place = [trace?.traceId ?? '', trace?.spanId ?? '', trace?.parentSpanId ?? ''];
  return [...place, startMicros, endMicros].join(' ');
}

export function spanOfText(text: string): BillerSpan {
  const [traceId = '', spanId = '', parent = '', start = '0', end = '0'] = text.split(' ');
  const trace = traceId === '' ? null : { traceId, spanId, parentSpanId: parent === '' ? null : parent };
  return { trace, startMicros: BigInt(start), endMicros: BigInt(end) };
}
