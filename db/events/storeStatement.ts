import { compare } from '../../domain/compare.js';
import { identityBiller } from '../../domain/events/biller.js';
import { responseKey } from '../../domain/events/callReport.js';
import type { CallRecord, SpanLink } from '../../domain/events/event.js';
import { isoFromMicros } from '../../domain/period.js';
import { jsonTextLines, jsonTextsSql, plainArray, textArray } from '../pgArray.js';
import { ALERT_TYPES, alertArrays, insertAlertsSql, type NewAlert } from '../policies/policyAlerts.js';
import { COLUMNS, type Column, type ColumnValue, LIST_COLUMNS, type StorableEvent } from './eventColumns.js';

/** A batch of one organization's calls. */
export interface StoredCalls {
  events: readonly StorableEvent[];
  /** Spans that are not calls. */
  links: readonly SpanLink[];
  alerts: readonly NewAlert[];
  /**
   * Nothing of the batch was stored before, as far as is known: Postgres then looks for equal keys once, as it inserts,
   * instead of before each row and again. A key that is stored fails the statement.
   */
  isNew: boolean;
}

export interface StoreStatement {
  name: string;
  text: string;
  values: (string | null)[];
}

/** A column of the statement's rows: its name in its table, and its type. */
type SentColumn = readonly [name: string, type: string];

/**
 * A column's values: an array, and the value of all rows where they have the same one, which Postgres then reads once:
 * `unnest` fills the empty array up with nulls.
 */
type Values = readonly [array: string, constant: string | null];

const CLAIM_COLUMNS: readonly SentColumn[] = [
  ['biller', 'text'],
  ['response_id', 'text'],
  ['trace_id', 'uuid'],
  ['span_id', 'int8'],
  ['parent_span_id', 'int8'],
  ['event_id', 'uuid'],
];
const PAYLOAD_COLUMNS: readonly SentColumn[] = [
  ['timestamp', 'timestamptz'],
  ['event_id', 'uuid'],
  ['payload', 'jsonb'],
  ['tool_input', 'jsonb'],
  ['tool_output', 'jsonb'],
  ['service', 'jsonb'],
];

/** Most variants of the statement; each connection prepares those that it uses. */
const MAKES_MAX = 32;
const texts = new Map<string, string>();

/** Builds a statement without the columns, claims, payloads and alert arrays that the batch does not use. */
export function storeStatement(orgId: string, { events, links, alerts, isNew }: StoredCalls): StoreStatement {
  const claims = claimValues(events, links);
  const payloads = payloadValues(events);
  const told = alerts.length === 0 ? undefined : alertArrays(alerts);
  const said = COLUMNS.map((column) => columnValues(column, events, false));
  const make = makeOf(said, claims, payloads, told, isNew || undefined);
  if (texts.has(make) || texts.size < MAKES_MAX)
    return statementOf(make, orgId, [
      ...said.flatMap((values) => values ?? []),
      ...(claims ?? []).flat(),
      ...(payloads ?? []).flat(),
      ...(told ?? []),
    ]);
  return statementOf(makeOf([...COLUMNS], true, true, true, isNew || undefined), orgId, [
    ...COLUMNS.flatMap((column) => columnValues(column, events, true) ?? []),
    ...(claims ?? CLAIM_COLUMNS.map((): Values => ['{}', null])).flat(),
    ...(payloads ?? PAYLOAD_COLUMNS.map(([, type]): Values => [type === 'jsonb' ? '' : '{}', null])).flat(),
    ...(told ?? ALERT_TYPES.map(() => '{}')),
  ]);
}

/** A digit for each column, the claims, the payloads, the alerts and new calls: 1 where the statement includes it. */
function makeOf(columns: readonly unknown[], ...parts: unknown[]): string {
  return [...columns, ...parts].map((part) => (part === undefined ? '0' : '1')).join('');
}

function statementOf(make: string, orgId: string, values: readonly (string | null)[]): StoreStatement {
  let text = texts.get(make);
  if (text === undefined) {
    text = storeSql(make);
    texts.set(make, text);
  }
  return { name: `store_${BigInt(`0b${make}`).toString(36)}`, text, values: [orgId, ...values] };
}

/**
 * SQL of the version mark of organization $1's row: the transaction that last wrote it. All rules for calls are columns
 * of that row or increment its `rules_revision`, so a statement that returns the mark proves whether rules that were
 * read before still hold in its snapshot.
 */
const RULES_MARK = '(select xmin::text from organizations where id = $1)';

/**
 * One statement that stores events, claims, payloads and alerts. Returns the ids of what it stored as texts, unless the
 * calls are new, and the rules' mark.
 */
function storeSql(make: string): string {
  const [hasClaims, hasPayloads, hasAlerts, isNew] = [...make.slice(COLUMNS.length)].map(
    (one) => one === '1',
  );
  let parameters = 1;
  const parameter = (type: string) => {
    parameters += 1;
    return `$${parameters}::${type}`;
  };
  const ending = (column: string) => (isNew ? '' : `on conflict do nothing returning ${column}`);
  const insert = (name: string, table: string, columns: readonly SentColumn[], end: string) => {
    const sent = sentRows(columns, parameter);
    return `${name} as (
  insert into ${table} (org_id, ${sent.names})
  select $1::uuid, ${sent.values}
  from ${sent.rows}
  ${end}
)`;
  };
  const events = sentRows(
    COLUMNS.flatMap(([name, type], at) => (make[at] === '1' ? [[name, type]] : [])),
    parameter,
  );
  const revising = events.valueOf('superseded_by');
  const revised = revising && `case when ${revising} is not null then current_xid() end`;
  const parts = [
    `stored as (
  insert into events (org_id, revised_xid, ${COLUMNS.map(([name]) => name).join(', ')})
  select $1::uuid, ${revised ?? 'null'}, ${COLUMNS.map((column) => selectedColumn(column, events)).join(', ')}
  from ${events.rows}
  ${ending('id')}
)`,
  ];
  if (hasClaims) parts.push(insert('claimed', 'call_spans', CLAIM_COLUMNS, ending('event_id')));
  const ofStored = isNew ? '' : 'where i.event_id in (select id from stored) on conflict do nothing';
  if (hasPayloads) parts.push(insert('kept', 'event_payloads', PAYLOAD_COLUMNS, ofStored));
  if (hasAlerts) {
    const condition = isNew ? 'true' : 'a.event_id in (select id from stored)';
    const arrays = ALERT_TYPES.map((type) => parameter(`${type}[]`));
    parts.push(`alerted as (
  ${insertAlertsSql(arrays, condition)}
)`);
  }
  const listed = (part: string, column: string, has = true) =>
    has ? `(select array_agg(${column})::text from ${part})` : 'null::text';
  return `with ${parts.join(', ')}
select ${listed('stored', 'id', !isNew)} as stored, ${listed('claimed', 'event_id', hasClaims && !isNew)} as claimed,
  ${listed('alerted', 'id', hasAlerts)} as alerted, ${RULES_MARK} as rules_mark`;
}

/** SQL of the rows of some columns, `i`, each sent as `Values`: all at once, and each by its name. */
interface SentRows {
  rows: string;
  names: string;
  values: string;
  valueOf(name: string): string | undefined;
}

function sentRows(columns: readonly SentColumn[], parameter: (type: string) => string): SentRows {
  const arrays: string[] = [];
  const values = new Map<string, string>();
  for (const [name, type] of columns) {
    const isDocument = type === 'jsonb';
    arrays.push(isDocument ? jsonTextsSql(parameter('text')) : parameter(`${type}[]`));
    // Documents are parsed as they are stored: an array of them would be built before its parts are.
    values.set(name, `coalesce(i.${name}${isDocument ? '::jsonb' : ''}, ${parameter(type)})`);
  }
  const names = [...values.keys()].join(', ');
  return {
    rows: `unnest(${arrays.join(', ')}) as i (${names})`,
    names,
    values: [...values.values()].join(', '),
    valueOf: (name) => values.get(name),
  };
}

/** SQL of a column's value; its empty one if it is not sent. */
function selectedColumn([name, , , , nothing]: Column, sent: SentRows): string {
  const value = sent.valueOf(name);
  if (value === undefined) return `${nothing}`;
  return LIST_COLUMNS.has(name) ? `string_to_array(${value}, ',')` : value;
}

/** A column's values; undefined: the column is optional and every row has its empty value. */
function columnValues(
  [name, , form, of, nothing]: Column,
  events: readonly StorableEvent[],
  always: boolean,
): Values | undefined {
  const values = events.map(of);
  // The ids tell `unnest` how many rows there are.
  if (name === 'id') return [plainArray(values), null];
  const isEmpty = nothing !== undefined && values.every((value) => value === nothing);
  return isEmpty && !always ? undefined : valuesIn(form, values);
}

function valuesIn(form: 'text' | 'plain', values: readonly ColumnValue[]): Values {
  const [first = null] = values;
  if (values.every((value) => value === first)) return ['{}', first === null ? null : String(first)];
  return [form === 'text' ? textArray(values as (string | null)[]) : plainArray(values), null];
}

function documentsIn(documents: readonly unknown[]): Values {
  const lines = documents.map((document) => (document === null ? null : JSON.stringify(document)));
  const [first = null] = lines;
  return lines.every((line) => line === first) ? ['', first] : [jsonTextLines(lines), null];
}

/** Whether another span or ingest path can report the call again; else its winner's response id resolved it. */
export function hasClaim({ call, supersededBy, isResponseKnown }: StorableEvent): boolean {
  return call.trace !== null || (call.responseId !== null && supersededBy === null && !isResponseKnown);
}

/**
 * The order in which every transaction claims and settles, so that two that share calls wait instead of deadlocking.
 */
export function compareClaims(one: StorableEvent, other: StorableEvent): number {
  return compare(claimOrder(one), claimOrder(other));
}

function claimOrder({ call: { responseId, trace } }: StorableEvent): string {
  return responseId ?? (trace === null ? '' : trace.traceId + trace.spanId);
}

/** The claims of the events, then the spans between them that are not calls; undefined when there are none. */
function claimValues(events: readonly StorableEvent[], links: readonly SpanLink[]): Values[] | undefined {
  const claims = events.filter(hasClaim).sort(compareClaims);
  if (claims.length === 0 && links.length === 0) return undefined;
  const spans: (SpanLink | null)[] = [...claims.map((event) => event.call.trace), ...links];
  const owners = responseOwners(claims);
  const none = links.map(() => null);
  return [
    valuesIn('text', [...owners.map((call) => (call ? identityBiller(call) : null)), ...none]),
    valuesIn('text', [...owners.map((call) => call?.responseId ?? null), ...none]),
    valuesIn(
      'plain',
      spans.map((span) => span?.traceId ?? null),
    ),
    valuesIn(
      'plain',
      spans.map((span) => (span ? spanNumber(span.spanId) : null)),
    ),
    valuesIn(
      'plain',
      spans.map((span) => (span?.parentSpanId ? spanNumber(span.parentSpanId) : null)),
    ),
    [plainArray([...claims.map((event) => event.id), ...none]), null],
  ];
}

/**
 * The calls that store their response ids: a superseded report keeps its place in the trace, but shares the id of its
 * winner, which may be stored.
 */
function responseOwners(events: readonly StorableEvent[]): (CallRecord | null)[] {
  const taken = new Set<string>();
  if (events.some(({ supersededBy }) => supersededBy !== null))
    for (const { call, supersededBy } of events)
      if (supersededBy === null && call.responseId !== null) taken.add(responseKey(call) as string);
  return events.map(({ call, supersededBy, isResponseKnown }) => {
    if (call.responseId === null || isResponseKnown) return null;
    if (supersededBy === null) return call;
    const key = responseKey(call) as string;
    if (taken.has(key)) return null;
    taken.add(key);
    return call;
  });
}

/** A span id's 64 bits as the signed integer that Postgres stores. */
export function spanNumber(spanId: string): bigint {
  return BigInt.asIntN(64, BigInt(`0x${spanId}`));
}

/** The rows of calls that brought more than their event holds; undefined when there are none. */
function payloadValues(events: readonly StorableEvent[]): Values[] | undefined {
  const kept = events.filter(
    ({ call }) =>
      call.payload !== null || call.toolInput !== null || call.toolOutput !== null || call.service !== null,
  );
  if (kept.length === 0) return undefined;
  const documents = (of: (call: CallRecord) => unknown) => documentsIn(kept.map(({ call }) => of(call)));
  return [
    [plainArray(kept.map(({ call }) => isoFromMicros(call.startMicros))), null],
    [plainArray(kept.map(({ id }) => id)), null],
    documents((call) => call.payload),
    documents((call) => call.toolInput),
    documents((call) => call.toolOutput),
    documents((call) => call.service),
  ];
}
