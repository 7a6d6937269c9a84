import { DomainError } from '../../domain/errors.js';
import type { CostSource, EventKind, EventStatus, InputSemantics, Json } from '../../domain/events/event.js';
import { findMicrosOfUuid } from '../../domain/ids.js';
import type { Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { OrgDb, SqlValue } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';

/** An event as it is stored. */
export interface StoredEvent {
  id: string;
  timestampMicros: bigint;
  endMicros: bigint;
  ingestedMicros: bigint;
  kind: EventKind;
  status: EventStatus;
  httpStatus: number | null;
  provider: string;
  billedBy: string;
  providerAccountId: string | null;
  providerKeyId: string | null;
  model: string;
  responseModel: string | null;
  requestId: string | null;
  apiKeyHash: string;
  apiKeyId: string;
  sessionId: string;
  teamId: string | null;
  feature: string | null;
  projectId: string | null;
  userId: string | null;
  environment: string | null;
  serviceTier: string | null;
  isBatch: boolean;
  batchId: string | null;
  inputTokens: number;
  outputTokens: number;
  cacheRead: number;
  cacheCreation: number;
  cacheCreation5m: number | null;
  cacheCreation1h: number | null;
  reasoningTok: number;
  cachedTok: number;
  inputAudio: number;
  outputAudio: number;
  contextBand: number;
  unmetered: boolean;
  toldClasses: number;
  billerFromHost: boolean;
  /** The span that named the biller, where it was another one (spanText). */
  billerSpan: string | null;
  serviceName: string;
  scopeName: string;
  costPico: Pico;
  computedCostPico: Pico | null;
  reportedCostPico: Pico | null;
  costSource: CostSource;
  priceGaps: string[];
  usageSource: string;
  inputSemantics: InputSemantics;
  usageMissing: string[];
  /** What is wrong with the counts as they came. */
  usageFlags: string[];
  usageRaw: string | null;
  durationMs: number;
  stopReason: string;
  blockedRuleId: string | null;
  preventedPico: Pico | null;
  supersededBy: string | null;
  /** Present only where payloads were asked for. */
  payload?: EventPayload;
}

export interface EventPayload {
  payload: Json | null;
  toolInput: Json | null;
  toolOutput: Json | null;
  service: Json | null;
}

/** Columns in the order in which exports write them. */
export const EVENT_COLUMNS = [
  'id',
  'provider',
  'model',
  'session_id',
  'team_id',
  'feature',
  'is_batch',
  'batch_id',
  'input_tokens',
  'output_tokens',
  'cache_read',
  'cache_creation',
  'reasoning_tok',
  'cached_tok',
  'cost_usd',
  'duration_ms',
  'stop_reason',
  'timestamp',
  'request_id',
  'response_model',
  'api_key_hash',
  'api_key_id',
  'provider_key_id',
  'kind',
  'status',
  'http_status',
  'project_id',
  'user_id',
  'environment',
  'service_tier',
  'billed_by',
  'provider_account_id',
  'end_at',
  'cache_creation_5m',
  'cache_creation_1h',
  'cost_source',
  'computed_cost_usd',
  'price_gaps',
  'usage_source',
  'input_semantics',
  'usage_missing',
  'usage_flags',
  'superseded_by',
  'blocked_rule_id',
  'prevented_usd',
  'ingested_at',
] as const;

const INNER_COLUMNS = [
  'input_audio',
  'output_audio',
  'context_band',
  'unmetered',
  'reported_cost_usd',
  'usage_raw',
  'told_classes',
  'biller_from_host',
  'biller_span',
  'service_name',
  'scope_name',
] as const;
const PAYLOAD_COLUMNS =
  'p.event_id is not null as has_payload, p.payload, p.tool_input, p.tool_output, p.service';
const PAYLOAD_JOIN =
  'left join event_payloads p on p.org_id = e.org_id and p.timestamp = e.timestamp and p.event_id = e.id';

const SELECT_EVENT = [...EVENT_COLUMNS, ...INNER_COLUMNS].map((name) => `e.${name}`).join(', ');

// biome-ignore lint/suspicious/noExplicitAny: one row of a statement of this file, read field by field below
type EventRow = Record<string, any>;

function fromEventRow(row: EventRow, withPayload: boolean): StoredEvent {
  const event: StoredEvent = {
    id: row.id,
    timestampMicros: row.timestamp,
    endMicros: row.end_at,
    ingestedMicros: row.ingested_at,
    kind: row.kind,
    status: row.status,
    httpStatus: row.http_status,
    provider: row.provider,
    billedBy: row.billed_by,
    providerAccountId: row.provider_account_id,
    providerKeyId: row.provider_key_id,
    model: row.model,
    responseModel: row.response_model,
    requestId: row.request_id,
    apiKeyHash: row.api_key_hash,
    apiKeyId: row.api_key_id,
    sessionId: row.session_id,
    teamId: row.team_id,
    feature: row.feature,
    projectId: row.project_id,
    userId: row.user_id,
    environment: row.environment,
    serviceTier: row.service_tier,
    isBatch: row.is_batch,
    batchId: row.batch_id,
    inputTokens: row.input_tokens,
    outputTokens: row.output_tokens,
    cacheRead: row.cache_read,
    cacheCreation: row.cache_creation,
    cacheCreation5m: row.cache_creation_5m,
    cacheCreation1h: row.cache_creation_1h,
    reasoningTok: row.reasoning_tok,
    cachedTok: row.cached_tok,
    inputAudio: row.input_audio,
    outputAudio: row.output_audio,
    contextBand: row.context_band,
    unmetered: row.unmetered,
    toldClasses: row.told_classes,
    billerFromHost: row.biller_from_host,
    billerSpan: row.biller_span,
    serviceName: row.service_name,
    scopeName: row.scope_name,
    costPico: row.cost_usd,
    computedCostPico: row.computed_cost_usd,
    reportedCostPico: row.reported_cost_usd,
    costSource: row.cost_source,
    priceGaps: row.price_gaps ?? [],
    usageSource: row.usage_source,
    inputSemantics: row.input_semantics,
    usageMissing: row.usage_missing ?? [],
    usageFlags: row.usage_flags ?? [],
    usageRaw: row.usage_raw,
    durationMs: row.duration_ms,
    stopReason: row.stop_reason,
    blockedRuleId: row.blocked_rule_id,
    preventedPico: row.prevented_usd,
    supersededBy: row.superseded_by,
  };
  if (withPayload) {
    event.payload = {
      payload: row.payload ?? null,
      toolInput: row.tool_input ?? null,
      toolOutput: row.tool_output ?? null,
      service: row.service ?? null,
    };
  }
  return event;
}

export interface EventFilter {
  sessionId?: string | undefined;
  provider?: string | undefined;
  model?: string | undefined;
  teamId?: string | undefined;
  feature?: string | undefined;
  kind?: string | undefined;
  /** Half-open bounds on the event's time. */
  fromMicros?: bigint | undefined;
  toMicros?: bigint | undefined;
  includeSuperseded?: boolean | undefined;
}

export interface EventPage {
  limit: number;
  offset: number;
  /** The last row of the page before: rows after it in the list's order. */
  after?: { timestampMicros: bigint; id: string } | undefined;
}

/** Conditions of a filter as SQL over the alias `e`; pushes its values. */
export function eventConditions(orgDb: OrgDb, filter: EventFilter, values: SqlValue[]): string {
  const bind = (value: SqlValue) => `$${values.push(value)}`;
  const conditions = [`e.org_id = ${bind(orgDb.orgId)}`];
  const equal: [string, string | undefined][] = [
    ['session_id', filter.sessionId],
    ['provider', filter.provider],
    ['model', filter.model],
    ['team_id', filter.teamId],
    ['feature', filter.feature],
    ['kind', filter.kind],
  ];
  for (const [column, value] of equal)
    if (value !== undefined) conditions.push(`e.${column} = ${bind(value)}`);
  if (filter.fromMicros !== undefined)
    conditions.push(`e.timestamp >= ${bind(isoFromMicros(filter.fromMicros))}::timestamptz`);
  if (filter.toMicros !== undefined)
    conditions.push(`e.timestamp < ${bind(isoFromMicros(filter.toMicros))}::timestamptz`);
  if (!filter.includeSuperseded) conditions.push('e.superseded_by is null');
  return conditions.join(' and ');
}

/** One page of events, newest first (timestamp, then id), and whether more follow. */
export async function listEvents(
  orgDb: OrgDb,
  filter: EventFilter,
  page: EventPage,
  includePayload: boolean,
): Promise<{ events: StoredEvent[]; hasMore: boolean }> {
  const values: SqlValue[] = [];
  let where = eventConditions(orgDb, filter, values);
  if (page.after) {
    const at = `$${values.push(isoFromMicros(page.after.timestampMicros))}::timestamptz`;
    const id = `$${values.push(page.after.id)}::uuid`;
    where += ` and e.timestamp <= ${at} and (e.timestamp, e.id) < (${at}, ${id})`;
  }
  const rows = await orgDb.rows<EventRow>(
    `select ${SELECT_EVENT}${includePayload ? `, ${PAYLOAD_COLUMNS}` : ''}
     from events e ${includePayload ? PAYLOAD_JOIN : ''}
     where ${where}
     order by e.timestamp desc, e.id desc
     limit $${values.push(page.limit + 1)} offset $${values.push(page.offset)}`,
    values,
  );
  return {
    events: rows.slice(0, page.limit).map((row) => fromEventRow(row, includePayload)),
    hasMore: rows.length > page.limit,
  };
}

/**
 * The event behind an id, superseded or not. The id carries the event's time, so it is found in the index that
 * serves every time-ordered read. Error: not_found, for an unknown id and for another organization's alike.
 */
export async function getEvent(orgDb: OrgDb, id: string, includePayload: boolean): Promise<StoredEvent> {
  const micros = findMicrosOfUuid(id);
  const rows =
    micros === undefined
      ? []
      : await orgDb.rows<EventRow>(
          `select ${SELECT_EVENT}${includePayload ? `, ${PAYLOAD_COLUMNS}` : ''}
           from events e ${includePayload ? PAYLOAD_JOIN : ''}
           where e.org_id = $1 and e.timestamp = $2::timestamptz and e.id = $3::uuid`,
          [orgDb.orgId, isoFromMicros(micros), id],
        );
  const row = rows[0];
  if (!row) throw new DomainError('not_found', 'there is no event with this id');
  return fromEventRow(row, includePayload);
}

/** Events by uuid, superseded ones too, in no order; ids that are not there are passed over. */
export async function listEventsById(orgDb: OrgDb, ids: readonly string[]): Promise<StoredEvent[]> {
  const timed = ids.flatMap((id) => {
    const micros = findMicrosOfUuid(id);
    return micros === undefined ? [] : [{ id, at: isoFromMicros(micros) }];
  });
  const rows = await orgDb.rows<EventRow>(
    `select ${SELECT_EVENT} from events e
     where e.org_id = $1 and (e.timestamp, e.id) in (select * from unnest($2::timestamptz[], $3::uuid[]))`,
    [orgDb.orgId, textArray(timed.map(({ at }) => at)), plainArray(timed.map(({ id }) => id))],
  );
  return rows.map((row) => fromEventRow(row, false));
}

/** Rows of one partition of an export. */
export const EXPORT_PARTITION_ROWS = 500;

/** Where the columns that the keyset needs stand in an exported row. */
export const EXPORT_ID_INDEX = EVENT_COLUMNS.indexOf('id');
export const EXPORT_TIMESTAMP_INDEX = EVENT_COLUMNS.indexOf('timestamp');

const LIST_COLUMNS: ReadonlySet<string> = new Set(['price_gaps', 'usage_missing', 'usage_flags']);

const EXPORT_BASE = (includePayload: boolean, after: boolean) => `
select ${EVENT_COLUMNS.map((name) => (LIST_COLUMNS.has(name) ? `array_to_json(e.${name})` : `e.${name}`)).join(', ')}
  ${includePayload ? `, p.payload, p.tool_input, p.tool_output, p.service` : ''}
from events e ${includePayload ? PAYLOAD_JOIN : ''}
where e.org_id = $1 and e.timestamp >= $2::timestamptz and e.timestamp < $3::timestamptz and e.ingested_at <= $4::timestamptz
  and e.superseded_by is null
  ${after ? 'and e.timestamp >= $5::timestamptz and (e.timestamp, e.id) > ($5::timestamptz, $6::uuid)' : ''}
order by e.timestamp, e.id
limit ${EXPORT_PARTITION_ROWS}`;

/** The database's time: what an export may not look beyond. */
export async function readSnapshotTime(orgDb: OrgDb): Promise<bigint> {
  const rows = await orgDb.rows<{ now: bigint }>('select clock_timestamp() as now');
  const now = rows[0]?.now;
  if (now === undefined) throw new Error('the database gave no time');
  return now;
}

/**
 * The events of a window in partitions of 500 rows, oldest first, as texts in the order of EVENT_COLUMNS (then the
 * payload columns). Each partition is its own short transaction; events ingested after `snapshotMicros` stay out, so
 * the tail cannot move while a slow client reads.
 */
export async function* streamEventTexts(
  orgDb: OrgDb,
  window: { fromMicros: bigint; toMicros: bigint; snapshotMicros: bigint },
  includePayload: boolean,
): AsyncGenerator<(string | null)[][]> {
  const base: SqlValue[] = [
    orgDb.orgId,
    isoFromMicros(window.fromMicros),
    isoFromMicros(window.toMicros),
    isoFromMicros(window.snapshotMicros),
  ];
  const variant = includePayload ? 'payload' : 'plain';
  const read = (after: (string | null)[] | undefined) =>
    after === undefined
      ? orgDb.textRows(EXPORT_BASE(includePayload, false), base, `export_first_${variant}`)
      : orgDb.textRows(
          EXPORT_BASE(includePayload, true),
          [...base, after[EXPORT_TIMESTAMP_INDEX] ?? null, after[EXPORT_ID_INDEX] ?? null],
          `export_next_${variant}`,
        );
  let rows = await read(undefined);
  while (rows.length > 0) {
    const last = rows.length === EXPORT_PARTITION_ROWS ? rows[rows.length - 1] : undefined;
    // The next partition is read while this one is written out.
    const next = last ? read(last) : Promise.resolve([]);
    next.catch(() => undefined);
    yield rows;
    rows = await next;
  }
}
