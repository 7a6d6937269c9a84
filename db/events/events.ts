import { DomainError } from '../../domain/errors.js';
import { findMicrosOfUuid } from '../../domain/ids.js';
import { isoFromMicros } from '../../domain/period.js';
import { andOfProject, type OrgDb, type SqlValue } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';
import { Turns } from '../turns.js';
import {
  type EventRow,
  fromEventRow,
  PAYLOAD_COLUMNS,
  PAYLOAD_JOIN,
  SELECT_EVENT,
  SELECT_PROMPT_HASH,
  type StoredEvent,
} from './storedEvents.js';
import { type Chains, endOf, findLiveIds, shortenChains, walkChains } from './supersededChains.js';

export interface EventFilter {
  sessionId?: string | undefined;
  provider?: string | undefined;
  model?: string | undefined;
  teamId?: string | undefined;
  feature?: string | undefined;
  projectId?: string | undefined;
  kind?: string | undefined;
  /** Half-open bounds on the event's time. */
  fromMicros?: bigint | undefined;
  toMicros?: bigint | undefined;
  includeSuperseded?: boolean | undefined;
  /** Only calls that were made: those that were blocked are no usage. */
  withoutBlocked?: boolean | undefined;
}

export interface EventPage {
  limit: number;
  offset: number;
  /** The last row of the page before: rows after it in the list's order. */
  after?: { timestampMicros: bigint; id: string } | undefined;
}

/** Conditions of a filter, and of the handle, as SQL over the alias `e`; pushes their values. */
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

/**
 * One page of events, newest first (timestamp, then id), and whether more follow. `recentMicros`: a time from which on
 * a page is usually full; looked at first, so that Postgres plans for a few partitions instead of all. It changes no
 * answer.
 */
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
 * SQL of the newest events, `e`, and of all that are as old as the last of them. Without an order of its own among equal times
 * the index is in this order already: Postgres then never sorts all events to find some (docs/decisions/0042).
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

/** Superseded events with the event that counts for their call by now, where they name one that is superseded too. */
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

/**
 * The event behind an id, superseded or not. The id carries the event's time, so it is found in the index that
 * serves every time-ordered read. Error: not_found, for an unknown id and for another organization's or, with a handle of
 * a project, another project's alike.
 */
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

/**
 * Events by uuid, superseded ones too, oldest first; ids that are not there are passed over. The rows are locked: what
 * is decided on them holds until the transaction ends, and another one that decides on them waits and reads them anew.
 */
export function lockEventsById(orgDb: OrgDb, ids: readonly string[]): Promise<StoredEvent[]> {
  return selectById(orgDb, ids, 'for update of e');
}

/** As `lockEventsById`, for what of an event never changes. */
export function findEventsById(orgDb: OrgDb, ids: readonly string[]): Promise<StoredEvent[]> {
  return selectById(orgDb, ids, '');
}

async function selectById(
  orgDb: OrgDb,
  ids: readonly string[],
  lock: '' | 'for update of e',
): Promise<StoredEvent[]> {
  const timed = ids.flatMap((id) => {
    const micros = findMicrosOfUuid(id);
    return micros === undefined ? [] : [{ id, micros }];
  });
  const times = timed.map(({ micros }) => micros);
  const [first, ...others] = times;
  if (first === undefined) return [];
  const least = others.reduce((a, b) => (b < a ? b : a), first);
  const most = others.reduce((a, b) => (b > a ? b : a), first);
  // The bounds say which partitions to look into: of the list Postgres cannot tell.
  const rows = await orgDb.rows<EventRow>(
    `select ${SELECT_EVENT}, ${SELECT_PROMPT_HASH} from events e
     where e.org_id = $1 and (e.timestamp, e.id) in (select * from unnest($2::timestamptz[], $3::uuid[]))
       and e.timestamp between $4::timestamptz and $5::timestamptz
     order by e.timestamp, e.id ${lock}`,
    [
      orgDb.orgId,
      textArray(times.map(isoFromMicros)),
      plainArray(timed.map(({ id }) => id)),
      isoFromMicros(least),
      isoFromMicros(most),
    ],
  );
  const events: StoredEvent[] = [];
  const turns = new Turns();
  for (const row of rows) {
    events.push(fromEventRow(row, false));
    if (turns.isOver()) await turns.next();
  }
  return events;
}

/** Each round finds that another transaction has just superseded what the round before found. */
const ROUNDS_MAX = 64;
const RETRY_AFTER_SECONDS = 1;

/**
 * For each of these events the one that counts for its call, locked: of two reports that meet at the same time the
 * second sees what the first made of the call. Without those of which none is stored any more. What was walked over
 * names the end of its chain from then on.
 */
export async function lockLiveEvents(
  orgDb: OrgDb,
  ids: readonly string[],
): Promise<Map<string, StoredEvent>> {
  const live = new Map<string, StoredEvent>();
  const walked: Chains = new Map();
  // By event asked for: where to look next. Mostly it counts itself.
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
