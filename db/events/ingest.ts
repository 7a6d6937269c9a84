import { compare } from '../../domain/compare.js';
import { identityBiller } from '../../domain/events/biller.js';
import { responseKey } from '../../domain/events/callReport.js';
import type { CallRecord, SpanLink } from '../../domain/events/event.js';
import { type OrganizationSettings, parseSettings } from '../../domain/installation/settings.js';
import { isoFromMicros } from '../../domain/period.js';
import type { Policy } from '../../domain/policies/policy.js';
import type { OrgDb } from '../orgDb.js';
import { jsonLines, jsonLinesSql, plainArray, plainItems, textArray } from '../pgArray.js';
import { ALERT_TYPES, alertArrays, insertAlertsSql, type NewAlert } from '../policies/policyAlerts.js';
import { COLUMNS, type Column, type ColumnValue, LIST_COLUMNS, type StorableEvent } from './eventColumns.js';

export interface StoreResult {
  stored: Set<string>;
  claimed: Set<string>;
  alerted: string[];
  /** Version mark of the rules that were applied: AssumedRules. */
  rulesMark: string | null;
}

/**
 * Stores a batch of one organization in the running transaction, with the alerts of its calls. A repeat changes
 * nothing.
 */
export async function insertEvents(
  orgDb: OrgDb,
  events: readonly StorableEvent[],
  links: readonly SpanLink[],
  alerts: readonly NewAlert[] = [],
): Promise<StoreResult> {
  const { name, text, values } = storeStatement(orgDb.orgId, events, links, alerts);
  const [row] = await orgDb.rows<{
    stored: string | null;
    claimed: string | null;
    alerted: string | null;
    rules_mark: string | null;
  }>(text, values, name);
  return {
    stored: new Set(plainItems(row?.stored ?? null)),
    // A span that is not a call has a claim without an event.
    claimed: new Set(plainItems(row?.claimed ?? null)),
    alerted: plainItems(row?.alerted ?? null),
    rulesMark: row?.rules_mark ?? null,
  };
}

/** Refused and left out items of one source and reason. */
export interface RefusedItems {
  /** Project of the sending key's workspace; null: a key of the whole organization. */
  projectId: string | null;
  serviceName: string;
  scopeName: string;
  reason: string;
  count: number;
}

export async function recordRejections(orgDb: OrgDb, rejections: readonly RefusedItems[]): Promise<void> {
  if (rejections.length === 0) return;
  await orgDb.run(
    `insert into ingest_rejections (org_id, hour, project_id, service_name, scope_name, reason, count)
     select $1::uuid, date_trunc('hour', now()), r.* from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::int8[]) as r
     on conflict (org_id, hour, project_id, service_name, scope_name, reason) do update set count = ingest_rejections.count + excluded.count`,
    [
      orgDb.orgId,
      textArray(rejections.map((r) => r.projectId ?? '')),
      textArray(rejections.map((r) => r.serviceName)),
      textArray(rejections.map((r) => r.scopeName)),
      textArray(rejections.map((r) => r.reason)),
      plainArray(rejections.map((r) => r.count)),
    ],
  );
}

export interface StoreStatement {
  name: string;
  text: string;
  values: string[];
}

const CLAIM_TYPES = ['text', 'text', 'uuid', 'int8', 'int8', 'uuid'];
const PAYLOAD_KEY_TYPES = ['timestamptz', 'uuid'];
const PAYLOAD_TEXTS = ['payload', 'tool_input', 'tool_output', 'service'];

/** Most variants of the statement; each connection prepares those that it uses. */
const MAKES_MAX = 32;
const texts = new Map<string, string>();

/** Builds a statement without the columns, claims, payloads and alert arrays that the batch does not use. */
export function storeStatement(
  orgId: string,
  events: readonly StorableEvent[],
  links: readonly SpanLink[],
  alerts: readonly NewAlert[],
): StoreStatement {
  const claims = claimColumns(events, links);
  const payloads = payloadColumns(events);
  const told = alerts.length === 0 ? undefined : alertArrays(alerts);
  const said = COLUMNS.map((column) => columnLiteral(column, events, false));
  const make = makeOf(said, claims, payloads, told);
  if (texts.has(make) || texts.size < MAKES_MAX)
    return statementOf(make, orgId, [...said, ...(claims ?? []), ...(payloads ?? []), ...(told ?? [])]);
  const all = COLUMNS.map((column) => columnLiteral(column, events, true));
  const nothing = (types: readonly string[]) => types.map(() => '{}');
  return statementOf(WHOLE, orgId, [
    ...all,
    ...(claims ?? nothing(CLAIM_TYPES)),
    ...(payloads ?? [...nothing(PAYLOAD_KEY_TYPES), ...PAYLOAD_TEXTS.map(() => '')]),
    ...(told ?? nothing(ALERT_TYPES)),
  ]);
}

/** A digit for each column, the claims, the payloads and the alerts: 1 where the statement includes it. */
function makeOf(columns: readonly unknown[], ...parts: unknown[]): string {
  return [...columns, ...parts].map((part) => (part === undefined ? '0' : '1')).join('');
}

const WHOLE = '1'.repeat(COLUMNS.length + 3);

function statementOf(make: string, orgId: string, literals: readonly (string | undefined)[]): StoreStatement {
  let text = texts.get(make);
  if (text === undefined) {
    text = storeSql(make);
    texts.set(make, text);
  }
  const values = literals.filter((literal) => literal !== undefined);
  return { name: `store_${BigInt(`0b${make}`).toString(36)}`, text, values: [orgId, ...values] };
}

/**
 * One statement that stores new events, claims, payloads and alerts. Returns the stored ids as texts and the rules'
 * mark.
 */
function storeSql(make: string): string {
  let parameters = 1;
  const arrays = (types: readonly string[]) =>
    types.map((type) => {
      parameters += 1;
      return `$${parameters}::${type}[]`;
    });
  const sent = COLUMNS.filter((_, index) => make[index] === '1');
  const unnested = arrays(sent.map(([, type]) => type));
  const selected = COLUMNS.map((column, index) =>
    make[index] === '1' ? selectedColumn(column) : `${column[4]}`,
  );
  const revised = sent.some(([name]) => name === 'superseded_by')
    ? 'case when i.superseded_by is null then null else current_xid() end'
    : 'null';
  const parts = [
    `stored as (
  insert into events (org_id, revised_xid, ${COLUMNS.map(([name]) => name).join(', ')})
  select $1::uuid, ${revised}, ${selected.join(', ')}
  from unnest(${unnested.join(', ')}) as i (${sent.map(([name]) => name).join(', ')})
  on conflict do nothing
  returning id
)`,
  ];
  const hasClaims = make[COLUMNS.length] === '1';
  if (hasClaims) {
    parts.push(`claimed as (
  insert into call_spans (org_id, biller, response_id, trace_id, span_id, parent_span_id, event_id)
  select $1::uuid, c.* from unnest(${arrays(CLAIM_TYPES).join(', ')}) as c
  on conflict do nothing
  returning event_id
)`);
  }
  if (make[COLUMNS.length + 1] === '1') {
    const keys = arrays(PAYLOAD_KEY_TYPES);
    const texts = PAYLOAD_TEXTS.map(() => {
      parameters += 1;
      return jsonLinesSql(`$${parameters}`);
    });
    parts.push(`kept as (
  insert into event_payloads (org_id, timestamp, event_id, ${PAYLOAD_TEXTS.join(', ')})
  select $1::uuid, p.* from unnest(${[...keys, ...texts].join(', ')}) as p (at, event_id, ${PAYLOAD_TEXTS.join(', ')})
  where p.event_id in (select id from stored)
  -- one event twice in the batch
  on conflict do nothing
)`);
  }
  const hasAlerts = make[COLUMNS.length + 2] === '1';
  if (hasAlerts) {
    parts.push(`alerted as (
  ${insertAlertsSql(arrays(ALERT_TYPES), 'a.event_id in (select id from stored)')}
)`);
  }
  const alerted = hasAlerts ? '(select array_agg(id)::text from alerted)' : 'null::text';
  const claimed = hasClaims ? '(select array_agg(event_id)::text from claimed)' : 'null::text';
  return `with ${parts.join(', ')}
select (select array_agg(id)::text from stored) as stored, ${claimed} as claimed,
  ${alerted} as alerted, ${RULES_MARK} as rules_mark`;
}

function selectedColumn([name]: Column): string {
  return LIST_COLUMNS.has(name) ? `string_to_array(i.${name}, ',')` : `i.${name}`;
}

/** A column's array literal; undefined: the column is optional and every row has its empty value. */
function columnLiteral(
  column: Column,
  events: readonly StorableEvent[],
  always: boolean,
): string | undefined {
  const [, , form, of, nothing] = column;
  if (nothing !== undefined && !always && events.every((event) => of(event) === nothing)) return undefined;
  const values: ColumnValue[] = events.map(of);
  return form === 'text' ? textArray(values as (string | null)[]) : plainArray(values);
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

/** Rules for calls that are stored, with the version mark of the row that they were read from. */
export interface MarkedRules {
  settings: OrganizationSettings;
  /** JSON of the enabled policies, for `parsePolicies`: equal texts are equal policies. */
  policiesText: string;
  /** Whether an active webhook endpoint wants messages about alerts. */
  alertsWanted: boolean;
  mark: string | null;
}

/**
 * SQL of the version mark of organization $1's row: the transaction that last wrote it. All rules for calls are columns
 * of that row or increment its `rules_revision`, so a statement that returns the mark proves whether rules that were
 * read before still hold in its snapshot.
 */
export const RULES_MARK = '(select xmin::text from organizations where id = $1)';

/** The rules for the organization's calls in one snapshot, with the mark that proves them later. */
export async function readMarkedRules(orgDb: OrgDb): Promise<MarkedRules> {
  const [row] = await orgDb.rows<{
    settings: unknown;
    mark: string;
    policies: string | null;
    alerts_wanted: boolean;
  }>(
    `select settings, xmin::text as mark,
       (select jsonb_agg(jsonb_build_object('id', id, 'type', policy_type, 'config', config, 'enabled', enabled, 'skipped', skipped)
          order by policy_type)::text
        from policies where org_id = $1 and enabled) as policies,
       exists (select from webhook_endpoints where org_id = $1 and status = 'active' and removed_at is null
         and report_cadence is null and (event_types = '{}' or 'alert.created' = any(event_types))) as alerts_wanted
     from organizations where id = $1`,
    [orgDb.orgId],
    'rules_marked',
  );
  return {
    settings: parseSettings(row?.settings ?? {}).settings,
    policiesText: row?.policies ?? '[]',
    alertsWanted: row?.alerts_wanted ?? false,
    mark: row?.mark ?? null,
  };
}

/** Parses the policies text of `readMarkedRules`; the policies were validated when they were stored. */
export function parsePolicies(text: string): Policy[] {
  return JSON.parse(text) as Policy[];
}
