import { DomainError } from '../../domain/errors.js';
import { EVENT_COLUMNS } from '../../domain/events/event.js';
import { findMicrosOfUuid } from '../../domain/ids.js';
import { isoFromMicros } from '../../domain/period.js';
import type { CopiedRows } from '../copyOut.js';
import { andOfProject, type OrgDb, type SqlValue } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';
import { Turns } from '../turns.js';
import { AT_PLACES, type EventPlace, inOrderOfIds, placeAt, placesOf } from './eventPlaces.js';
import {
  type EventRow,
  fromEventRow,
  PAYLOAD_COLUMNS,
  PAYLOAD_JOIN,
  SELECT_EVENT,
  SELECT_PROMPT_HASH,
  type StoredEvent,
} from './storedEvents.js';

export interface EventFilter {
  sessionId?: string | undefined;
  provider?: string | undefined;
  model?: string | undefined;
  teamId?: string | undefined;
  feature?: string | undefined;
  projectId?: string | undefined;
  kind?: string | undefined;
  fromMicros?: bigint | undefined;
  toMicros?: bigint | undefined;
  includeSuperseded?: boolean | undefined;
  /** Excludes blocked calls, which are not usage. */
  withoutBlocked?: boolean | undefined;
}

export interface EventPage {
  limit: number;
  offset: number;
  /** The last row of the previous page; the page contains the rows after it. */
  after?: { timestampMicros: bigint; id: string } | undefined;
}

/** SQL conditions of a filter and of the handle over the alias `e`; pushes their values. */
export function eventConditions(orgDb: OrgDb, filter: EventFilter, values: SqlValue[]): string {
  const bind = (value: SqlValue) => `$${values.push(value)}`;
  const conditions = [`e.org_id = ${bind(orgDb.orgId)}`];
  const equal: [string, string | undefined][] = [
    ['session_id', filter.sessionId],
    ['provider', filter.provider],
    ['model', filter.model],
    ['team_id', filter.teamId],
    ['feature', filter.feature],
    ['project_id', filter.projectId],
    ['kind', filter.kind],
  ];
  for (const [column, value] of equal)
    if (value !== undefined) conditions.push(`e.${column} = ${bind(value)}`);
  if (filter.fromMicros !== undefined)
    conditions.push(`e.timestamp >= ${bind(isoFromMicros(filter.fromMicros))}::timestamptz`);
  if (filter.toMicros !== undefined)
    conditions.push(`e.timestamp < ${bind(isoFromMicros(filter.toMicros))}::timestamptz`);
  if (!filter.includeSuperseded) conditions.push('e.superseded_by is null');
  if (filter.withoutBlocked) conditions.push(`e.status <> 'blocked'`);
  return conditions.join(' and ') + andOfProject(orgDb, values, 'e.project_id');
}

/** One page of events, newest first. `recentMicros` is tried first so that Postgres plans for few partitions. */
export async function listEvents(
  orgDb: OrgDb,
  filter: EventFilter,
  page: EventPage,
  includePayload: boolean,
  recentMicros?: bigint,
): Promise<{ events: StoredEvent[]; hasMore: boolean }> {
  const upper = page.after?.timestampMicros ?? filter.toMicros;
  const isRecent = recentMicros !== undefined && (upper === undefined || upper > recentMicros);
  if (isRecent && (filter.fromMicros === undefined || filter.fromMicros < recentMicros)) {
    const recent = await readPage(orgDb, { ...filter, fromMicros: recentMicros }, page, includePayload);
    if (recent.hasMore) return recent;
  }
  return readPage(orgDb, filter, page, includePayload);
}

/**
 * SQL of the newest events, `e`, and of all events as old as the last of them. Without an order among equal times the
 * index already has this order, so Postgres never sorts all events to find a few (docs/decisions/0042).
 */
const newestFirst = (where: string, limitAt: number) =>
  `select * from events e where ${where} order by e.timestamp desc fetch first ($${limitAt}) rows with ties`;

async function readPage(
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
     from (${newestFirst(where, values.push(page.limit + 1 + page.offset))}) e ${includePayload ? PAYLOAD_JOIN : ''}
     order by e.timestamp desc, e.id desc
     limit $${values.push(page.limit + 1)} offset $${values.push(page.offset)}`,
    values,
  );
  const events = rows.slice(0, page.limit).map((row) => fromEventRow(row, includePayload));
  return { events: await withLiveEvents(orgDb, events), hasMore: rows.length > page.limit };
}

/** Follows superseded events to the event that counts for their call now, where the named one is superseded too. */
async function withLiveEvents(orgDb: OrgDb, events: StoredEvent[]): Promise<StoredEvent[]> {
  const named = events.flatMap(({ supersededBy }) => supersededBy ?? []);
  if (named.length === 0) return events;
  const live = await findLiveIds(orgDb, named);
  return events.map((event) =>
    event.supersededBy === null
      ? event
      : { ...event, supersededBy: live.get(event.supersededBy) ?? event.supersededBy },
  );
}

/** The event with an id, found by the time in it. Error: not_found, also for another organization or project. */
export async function getEvent(orgDb: OrgDb, id: string, includePayload: boolean): Promise<StoredEvent> {
  const micros = findMicrosOfUuid(id);
  const values: SqlValue[] = micros === undefined ? [] : [orgDb.orgId, isoFromMicros(micros), id];
  const rows =
    micros === undefined
      ? []
      : await orgDb.rows<EventRow>(
          `select ${SELECT_EVENT}${includePayload ? `, ${PAYLOAD_COLUMNS}` : ''}
           from events e ${includePayload ? PAYLOAD_JOIN : ''}
           where e.org_id = $1 and e.timestamp = $2::timestamptz and e.id = $3::uuid${andOfProject(orgDb, values, 'e.project_id')}`,
          values,
        );
  const row = rows[0];
  if (!row) throw new DomainError('not_found', 'there is no event with this id');
  const [event] = await withLiveEvents(orgDb, [fromEventRow(row, includePayload)]);
  return event as StoredEvent;
}

/** Events by uuid, oldest first, locked until the transaction ends; unknown ids are skipped. */
export function lockEventsById(orgDb: OrgDb, ids: readonly string[]): Promise<StoredEvent[]> {
  return selectById(orgDb, ids, 'for update of e');
}

/** `lockEventsById` without a lock, for columns that never change. */
export function findEventsById(orgDb: OrgDb, ids: readonly string[]): Promise<StoredEvent[]> {
  return selectById(orgDb, ids, '');
}

async function selectById(
  orgDb: OrgDb,
  ids: readonly string[],
  lock: '' | 'for update of e',
): Promise<StoredEvent[]> {
  const places = inOrderOfIds([...new Set(ids)].flatMap(placeOfId));
  if (places.length === 0) return [];
  const rows = await orgDb.rows<EventRow>(
    `select ${SELECT_EVENT}, ${SELECT_PROMPT_HASH} from events e where ${AT_PLACES} order by e.id ${lock}`,
    placesOf(orgDb.orgId, places),
    lock === '' ? 'events_by_id' : 'events_to_change',
  );
  const events: StoredEvent[] = [];
  const turns = new Turns();
  for (const row of rows) {
    events.push(fromEventRow(row, false));
    if (turns.isOver()) await turns.next();
  }
  return events;
}

/** Most rounds; in each one another transaction has just superseded an event that the previous round found. */
const ROUNDS_MAX = 64;
const RETRY_AFTER_SECONDS = 1;

/** The locked event that counts for each event's call; shortens long chains on the way. */
export async function lockLiveEvents(
  orgDb: OrgDb,
  ids: readonly string[],
): Promise<Map<string, StoredEvent>> {
  const live = new Map<string, StoredEvent>();
  const walked: Chains = new Map();
  // The next event to check, by the requested one. Most events count themselves.
  let open = new Map(ids.map((id) => [id, id]));
  for (let round = 0; open.size > 0; round += 1) {
    if (round === ROUNDS_MAX) throw tooManyAtOnce();
    const locked = await lockEventsById(orgDb, [...new Set(open.values())]);
    const byId = new Map(locked.map((event) => [event.id, event]));
    const superseded = new Map<string, string>();
    for (const [id, at] of open) {
      const event = byId.get(at);
      if (event === undefined) continue;
      walked.set(at, event.supersededBy);
      if (event.supersededBy === null) live.set(id, event);
      else superseded.set(id, event.supersededBy);
    }
    open = new Map();
    if (superseded.size === 0) break;
    const chains = await walkChains(orgDb, [...new Set(superseded.values())]);
    for (const [id, next] of chains) walked.set(id, next);
    for (const [id, at] of superseded) {
      const end = endOf(chains, at);
      if (end !== undefined) open.set(id, end);
    }
  }
  await shortenChains(orgDb, walked);
  return live;
}

function tooManyAtOnce(): DomainError {
  return new DomainError(
    'service_unavailable',
    'too many requests report the same call at once; send these again',
    { retryAfterSeconds: RETRY_AFTER_SECONDS },
  );
}

/** `superseded_by` names the successor at that time, which may be superseded since: chains can have any length. */

/** Events of long chains that one transaction corrects. */
const SHORTENED_MAX = 1_000;

/** The time in an event's id, which determines its partition (domain/ids.ts, uuidFromMicros). */
export const timeOfId = (id: string) => {
  const hex = (from: number, digits: number) =>
    `('x' || lpad(substr(replace(${id}::text, '-', ''), ${from}, ${digits}), 16, '0'))::bit(64)::bigint`;
  return `(timestamptz 'epoch' + (${hex(1, 12)} * 1000 + ${hex(14, 3)}) * interval '1 microsecond')`;
};

/** The next event of each event of a chain; null at the end. */
export type Chains = Map<string, string | null>;

// Each step is one index lookup, whatever number of rows Postgres estimates; `union` ends a circle.
const WALK = `
with recursive walked (id, superseded_by) as (
  select e.id, e.superseded_by from unnest($2::timestamptz[], $3::uuid[]) as s (at, id) cross join lateral (
    select id, superseded_by from events where org_id = $1 and timestamp = s.at and id = s.id limit 1) e
  union
  select e.id, e.superseded_by from walked w cross join lateral (
    select id, superseded_by from events
    where org_id = $1 and timestamp = ${timeOfId('w.superseded_by')} and id = w.superseded_by limit 1) e
  where w.superseded_by is not null)
select id, superseded_by as "supersededBy" from walked`;

/** The chains from these events to their ends, in one statement. */
export async function walkChains(orgDb: OrgDb, ids: readonly string[]): Promise<Chains> {
  const timed = ids.flatMap(placeOfId);
  if (timed.length === 0) return new Map();
  const links = await orgDb.rows<{ id: string; supersededBy: string | null }>(
    WALK,
    [orgDb.orgId, textArray(timed.map(({ timestamp }) => timestamp)), plainArray(timed.map(({ id }) => id))],
    'walk_chains',
  );
  return new Map(links.map(({ id, supersededBy }) => [id, supersededBy]));
}

/** The end of the chain; undefined: an event was removed for its age. @throws Error for a circle. */
export function endOf(chains: Chains, id: string): string | undefined {
  let at = id;
  for (let step = 0; step <= chains.size; step += 1) {
    const next = chains.get(at);
    if (next === undefined) return undefined;
    if (next === null) return at;
    at = next;
  }
  throw new Error(`the events of a call supersede each other in a circle: ${id}`);
}

/** The event's place by its id; none: the id is none of an event. */
function placeOfId(id: string): EventPlace[] {
  const micros = findMicrosOfUuid(id);
  return micros === undefined ? [] : [placeAt(id, micros)];
}

/** The event that counts for each event's call; without those whose chain ends at a removed event. */
export async function findLiveIds(orgDb: OrgDb, ids: readonly string[]): Promise<Map<string, string>> {
  const chains = await walkChains(orgDb, [...new Set(ids)]);
  return new Map(
    ids.flatMap((id) => {
      const end = endOf(chains, id);
      return end === undefined ? [] : [[id, end]];
    }),
  );
}

/**
 * Points events at the end of their chain where they name a superseded event. Rows that others lock are left for later.
 */
export async function shortenChains(orgDb: OrgDb, walked: Chains): Promise<void> {
  const long = [...walked].flatMap(([id, next]) => {
    const end = next === null ? undefined : endOf(walked, id);
    return end === undefined || end === next ? [] : placeOfId(id).map((place) => ({ ...place, end }));
  });
  const some = long.slice(0, SHORTENED_MAX);
  if (some.length === 0) return;
  await orgDb.run(
    `update events e set superseded_by = s.live_id from unnest($2::timestamptz[], $3::uuid[], $4::uuid[]) as w (at, id, live_id)
     cross join lateral (
       select timestamp, id, w.live_id from events
       where org_id = $1 and timestamp = w.at and id = w.id and superseded_by is not null for update skip locked) s
     where e.org_id = $1 and e.timestamp = s.timestamp and e.id = s.id`,
    [
      orgDb.orgId,
      textArray(some.map(({ timestamp }) => timestamp)),
      plainArray(some.map(({ id }) => id)),
      plainArray(some.map(({ end }) => end)),
    ],
  );
}

/** Rows of the first statement of an export; the size of the rows before determines that of each further one. */
const EXPORT_ROWS_FIRST = 500;
/** Most rows of one. Planning a statement costs as much as 200 rows. */
const EXPORT_ROWS_MAX = 8_000;
/** Bytes that a statement of an export shall read. Two blocks are in memory at a time. */
const EXPORT_BLOCK_BYTES = 2_097_152;
/** Bytes from which on it leaves out its further rows, which are larger than those before. */
const EXPORT_BYTES_MAX = 8 * EXPORT_BLOCK_BYTES;

/** Indexes of the keyset's columns in an exported row. */
const EXPORT_ID_INDEX = EVENT_COLUMNS.indexOf('id');
const EXPORT_TIMESTAMP_INDEX = EVENT_COLUMNS.indexOf('timestamp');

const LIST_COLUMNS: ReadonlySet<string> = new Set(['price_gaps', 'usage_missing', 'usage_flags']);

/** Payloads of the events `e`, with bounds that exclude partitions when the statement is planned. */
const EXPORT_PAYLOADS = (lower: string) => `
left join lateral (select * from event_payloads where org_id = $1 and timestamp = e.timestamp and event_id = e.id
  and timestamp >= ${lower}::timestamptz and timestamp < $3::timestamptz offset 0) p on true`;

/**
 * `project` is the parameter of the handle's project. A keyset of times alone is read in the index's order
 * (docs/decisions/0042).
 */
const EXPORT_BASE = (includePayload: boolean, after: boolean, project: string | undefined, rows: number) => `
select ${EVENT_COLUMNS.map((name) => (LIST_COLUMNS.has(name) ? `array_to_json(e.${name})` : `e.${name}`)).join(', ')}
  ${includePayload ? `, p.payload, p.tool_input, p.tool_output, p.service` : ''}
from (select * from events e where e.org_id = $1 and e.timestamp >= $2::timestamptz and e.timestamp < $3::timestamptz and e.ingested_at <= $4::timestamptz
  and e.superseded_by is null ${project === undefined ? '' : `and e.project_id = ${project}`}
  ${after ? 'and e.timestamp >= $5::timestamptz and (e.timestamp, e.id) > ($5::timestamptz, $6::uuid)' : ''}
  order by e.timestamp fetch first ${rows} rows with ties) e ${includePayload ? EXPORT_PAYLOADS(after ? '$5' : '$2') : ''}
order by e.timestamp, e.id
limit ${rows}`;

/**
 * Events of a window as lines of COPY, oldest first, in blocks of whole lines, each read in one transaction; events that
 * are ingested later are excluded. A line has the columns of EVENT_COLUMNS, lists as JSON, and with `includePayload` the
 * payload, the tool's input and output and the service behind them.
 */
export async function* streamEventLines(
  orgDb: OrgDb,
  window: { fromMicros: bigint; toMicros: bigint; snapshotMicros: bigint },
  includePayload: boolean,
): AsyncGenerator<Buffer> {
  const base: SqlValue[] = [
    orgDb.orgId,
    isoFromMicros(window.fromMicros),
    isoFromMicros(window.toMicros),
    isoFromMicros(window.snapshotMicros),
  ];
  const { projectId } = orgDb;
  const ofProject = projectId === undefined ? [] : [projectId];
  const read = (rows: number, after: readonly string[]) => {
    const values = [...base, ...after, ...ofProject];
    const project = projectId === undefined ? undefined : `$${values.length}`;
    const sql = EXPORT_BASE(includePayload, after.length > 0, project, rows);
    return orgDb.copyRows(sql, values, EXPORT_BYTES_MAX);
  };
  let asked = EXPORT_ROWS_FIRST;
  let copied = await read(asked, []);
  while (copied.count > 0) {
    const hasMore = copied.isCut || copied.count === asked;
    asked = rowsOfBlock(copied);
    // The next block is read while this one is written.
    const next = hasMore ? read(asked, placeOfLast(copied.lines)) : undefined;
    next?.catch(() => undefined);
    yield copied.lines;
    if (!next) return;
    copied = await next;
  }
}

/** Rows of the next block, if they are as large as those of this one. */
function rowsOfBlock({ count, lines }: CopiedRows): number {
  return Math.min(Math.ceil((EXPORT_BLOCK_BYTES * count) / lines.length), EXPORT_ROWS_MAX);
}

/** Time and id of the last line. */
function placeOfLast(lines: Buffer): string[] {
  const start = lines.lastIndexOf('\n', lines.length - 2) + 1;
  const fields = lines.toString('latin1', start, lines.length - 1).split('\t');
  return [fields[EXPORT_TIMESTAMP_INDEX] as string, fields[EXPORT_ID_INDEX] as string];
}
