import { compare } from '../../domain/compare.js';
import { identityBiller } from '../../domain/events/biller.js';
import { responseKey } from '../../domain/events/callReport.js';
import type { CallRecord, SpanLink } from '../../domain/events/event.js';
import { isoFromMicros } from '../../domain/period.js';
import { jsonLines, jsonLinesSql, plainArray, textArray } from '../pgArray.js';
import { ALERT_TYPES, alertArrays, insertAlertsSql, type NewAlert } from '../policies/policyAlerts.js';
import { COLUMNS, type Column, LIST_COLUMNS, type StorableEvent } from './eventColumns.js';

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

const CLAIM_TYPES = ['text', 'text', 'uuid', 'int8', 'int8', 'uuid'];
const PAYLOAD_KEY_TYPES = ['timestamptz', 'uuid'];
const PAYLOAD_TEXTS = ['payload', 'tool_input', 'tool_output', 'service'];

/** Most variants of the statement; each connection prepares those that it uses. */
const MAKES_MAX = 32;
const texts = new Map<string, string>();

/** Builds a statement without the columns, claims, payloads and alert arrays that the batch does not use. */
export function storeStatement(orgId: string, { events, links, alerts, isNew }: StoredCalls): StoreStatement {
  const claims = claimColumns(events, links);
  const payloads = payloadColumns(events);
  const told = alerts.length === 0 ? undefined : alertArrays(alerts);
  const said = COLUMNS.map((column) => columnValues(column, events, false));
  const make = makeOf(said, claims, payloads, told, isNew || undefined);
  if (texts.has(make) || texts.size < MAKES_MAX)
    return statementOf(make, orgId, [
      ...said.flatMap((values) => values ?? []),
      ...(claims ?? []),
      ...(payloads ?? []),
      ...(told ?? []),
    ]);
  const nothing = (types: readonly string[]) => types.map(() => '{}');
  return statementOf(makeOf([...COLUMNS], true, true, true, isNew || undefined), orgId, [
    ...COLUMNS.flatMap((column) => columnValues(column, events, true) ?? []),
    ...(claims ?? nothing(CLAIM_TYPES)),
    ...(payloads ?? [...nothing(PAYLOAD_KEY_TYPES), ...PAYLOAD_TEXTS.map(() => '')]),
    ...(told ?? nothing(ALERT_TYPES)),
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
  const arrays = (types: readonly string[]) => types.map((type) => parameter(`${type}[]`));
  const returning = (columns: string) => (isNew ? '' : `on conflict do nothing returning ${columns}`);
  const sent = COLUMNS.flatMap((column, index) =>
    make[index] === '1'
      ? [{ column, array: parameter(`${column[1]}[]`), constant: parameter(column[1]) }]
      : [],
  );
  const sqlOf = new Map(
    sent.map(({ column: [name], constant }) => [name, `coalesce(i.${name}, ${constant})`]),
  );
  const revising = sqlOf.get('superseded_by');
  const revised =
    revising === undefined ? 'null' : `case when ${revising} is not null then current_xid() end`;
  const parts = [
    `stored as (
  insert into events (org_id, revised_xid, ${COLUMNS.map(([name]) => name).join(', ')})
  select $1::uuid, ${revised}, ${COLUMNS.map((column) => selectedColumn(column, sqlOf)).join(', ')}
  from unnest(${sent.map(({ array }) => array).join(', ')}) as i (${[...sqlOf.keys()].join(', ')})
  ${returning('id')}
)`,
  ];
  if (hasClaims) {
    parts.push(`claimed as (
  insert into call_spans (org_id, biller, response_id, trace_id, span_id, parent_span_id, event_id)
  select $1::uuid, c.* from unnest(${arrays(CLAIM_TYPES).join(', ')}) as c
  ${returning('event_id')}
)`);
  }
  if (hasPayloads) {
    const keys = arrays(PAYLOAD_KEY_TYPES);
    const documents = PAYLOAD_TEXTS.map(() => jsonLinesSql(parameter('text')));
    parts.push(`kept as (
  insert into event_payloads (org_id, timestamp, event_id, ${PAYLOAD_TEXTS.join(', ')})
  select $1::uuid, p.* from unnest(${[...keys, ...documents].join(', ')}) as p (at, event_id, ${PAYLOAD_TEXTS.join(', ')})
  ${isNew ? '' : 'where p.event_id in (select id from stored) on conflict do nothing'}
)`);
  }
  if (hasAlerts) {
    const condition = isNew ? 'true' : 'a.event_id in (select id from stored)';
    parts.push(`alerted as (
  ${insertAlertsSql(arrays(ALERT_TYPES), condition)}
)`);
  }
  const listed = (part: string, column: string, has = true) =>
    has ? `(select array_agg(${column})::text from ${part})` : 'null::text';
  return `with ${parts.join(', ')}
select ${listed('stored', 'id', !isNew)} as stored, ${listed('claimed', 'event_id', hasClaims && !isNew)} as claimed,
  ${listed('alerted', 'id', hasAlerts)} as alerted, ${RULES_MARK} as rules_mark`;
}

/** SQL of a column's value in a row `i`; `sqlOf` has those that are sent. */
function selectedColumn([name, , , , nothing]: Column, sqlOf: ReadonlyMap<string, string>): string {
  const value = sqlOf.get(name);
  if (value === undefined) return `${nothing}`;
  return LIST_COLUMNS.has(name) ? `string_to_array(${value}, ',')` : value;
}

/**
 * A column's values: an array literal, and the value of all rows where they have the same one, which Postgres then reads
 * once: `unnest` fills the empty array up with nulls. Undefined: the column is optional and every row has its empty value.
 */
function columnValues(
  [name, , form, of, nothing]: Column,
  events: readonly StorableEvent[],
  always: boolean,
): [array: string, constant: string | null] | undefined {
  const values = events.map(of);
  const [first = null] = values;
  // The ids tell `unnest` how many rows there are.
  if (name !== 'id' && values.every((value) => value === first)) {
    if (first === nothing && !always) return undefined;
    return ['{}', first === null ? null : String(first)];
  }
  return [form === 'text' ? textArray(values as (string | null)[]) : plainArray(values), null];
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
function claimColumns(events: readonly StorableEvent[], links: readonly SpanLink[]): string[] | undefined {
  const claims = events.filter(hasClaim).sort(compareClaims);
  if (claims.length === 0 && links.length === 0) return undefined;
  const spans: (SpanLink | null)[] = [...claims.map((event) => event.call.trace), ...links];
  const owners = responseOwners(claims);
  const none = links.map(() => null);
  return [
    textArray([...owners.map((call) => (call ? identityBiller(call) : null)), ...none]),
    textArray([...owners.map((call) => call?.responseId ?? null), ...none]),
    plainArray(spans.map((span) => span?.traceId ?? null)),
    plainArray(spans.map((span) => (span ? spanNumber(span.spanId) : null))),
    plainArray(spans.map((span) => (span?.parentSpanId ? spanNumber(span.parentSpanId) : null))),
    plainArray([...claims.map((event) => event.id), ...none]),
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

function payloadColumns(events: readonly StorableEvent[]): string[] | undefined {
  const kept = events.filter(
    ({ call }) =>
      call.payload !== null || call.toolInput !== null || call.toolOutput !== null || call.service !== null,
  );
  if (kept.length === 0) return undefined;
  const json = (of: (call: CallRecord) => unknown) => jsonLines(kept.map(({ call }) => of(call)));
  return [
    plainArray(kept.map(({ call }) => isoFromMicros(call.startMicros))),
    plainArray(kept.map(({ id }) => id)),
    json((call) => call.payload),
    json((call) => call.toolInput),
    json((call) => call.toolOutput),
    json((call) => call.service),
  ];
}
