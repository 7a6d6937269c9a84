import { identityBiller } from '../../domain/events/biller.js';
import type { SpanLink } from '../../domain/events/event.js';
import type { Database } from '../client.js';
import { type OrgDb, unscoped } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';
import type { StorableEvent } from './eventColumns.js';
import { linkOf, SPAN_COLUMNS, type SpanRow } from './storedEvents.js';
import { spanNumber } from './storeStatement.js';

/**
 * The identities of calls (call_spans): a response id at its biller, or a place in a trace. Two reports with the same
 * identity are of one call, and unique indexes decide between processes which was first. `event_id` is the event of a
 * report with the identity; for a place in a trace the richest report from there, which the sweep compares.
 * `live_event_id` is the event that counts for the call; null: the same event.
 */
export type CallIdentity = { biller: string; responseId: string } | SpanLink;

/** The fields of a report that determine its identities. */
export type IdentifiedCall = Pick<
  StorableEvent['call'],
  'provider' | 'billedBy' | 'billerFromHost' | 'responseId' | 'trace'
>;

export interface IdentifiedReport {
  id: string;
  call: IdentifiedCall;
}

/** An identity that another report has, with its row locked. */
export interface HeldIdentity {
  identity: CallIdentity;
  eventId: string;
  /** The event that counts for the call according to the row; it may be superseded since. */
  holderId: string;
  /** The place of `holderId` in its trace; null: the row has none. */
  link: SpanLink | null;
  /** The row is close to its deletion, although the call is still being reported. */
  isOld: boolean;
}

/** Days after which identities are deleted: no report of a call arrives so late. */
const IDENTITY_DAYS = 35;
/** Identities that one transaction deletes. */
const DROPPED_MAX = 50_000;
/** Age at which a row is renewed when its call is reported again, long before its deletion. */
const OLD = `interval '1 day'`;

export const isPlace = (identity: CallIdentity): identity is SpanLink => 'spanId' in identity;

export function identityKey(identity: CallIdentity): string {
  return isPlace(identity)
    ? `span ${identity.traceId} ${identity.spanId}`
    : `response ${identity.biller} ${identity.responseId}`;
}

export function identitiesOf(call: IdentifiedCall): CallIdentity[] {
  const identities: CallIdentity[] = [];
  if (call.responseId !== null)
    identities.push({ biller: identityBiller(call), responseId: call.responseId });
  if (call.trace !== null) identities.push(call.trace);
  return identities;
}

interface Wanted {
  identity: CallIdentity;
  /** The reports with this identity, the first one first. */
  eventIds: [string, ...string[]];
  /** It is stored. */
  isKnown: boolean;
}

/**
 * Stores new identities and locks existing ones, in the same order in every transaction. `known` reports have a response
 * id that is stored; of their identities only that one is locked.
 */
export async function lockIdentities(
  orgDb: OrgDb,
  reports: readonly IdentifiedReport[],
  known: readonly IdentifiedReport[] = [],
): Promise<HeldIdentity[]> {
  const byKey = new Map<string, Wanted>();
  const want = (identity: CallIdentity, id: string, isKnown: boolean) => {
    const wanted = byKey.get(identityKey(identity));
    if (wanted) wanted.eventIds.push(id);
    else byKey.set(identityKey(identity), { identity, eventIds: [id], isKnown });
  };
  for (const { id, call } of known)
    for (const identity of identitiesOf(call)) if (!isPlace(identity)) want(identity, id, true);
  for (const { id, call } of reports) for (const identity of identitiesOf(call)) want(identity, id, false);
  const wanted = [...byKey].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, one]) => one);
  const made = await insertIdentities(
    orgDb,
    wanted.filter(({ isKnown }) => !isKnown),
  );
  // An identity that only one report has, and had first, leads to no other report.
  const held = wanted.filter(
    ({ identity, eventIds }) => eventIds.length > 1 || !made.has(identityKey(identity)),
  );
  return [...(await lockResponses(orgDb, held)), ...(await lockPlaces(orgDb, held))];
}

interface IdentityRow extends SpanRow {
  biller: string | null;
  response_id: string | null;
}

/** The columns of identities, from $2 on; columns of the other kind are null. */
function identityArrays(identities: readonly CallIdentity[]): string[] {
  const places = identities.map((identity) => (isPlace(identity) ? identity : null));
  const responses = identities.map((identity) => (isPlace(identity) ? null : identity));
  return [
    textArray(responses.map((response) => response?.biller ?? null)),
    textArray(responses.map((response) => response?.responseId ?? null)),
    plainArray(places.map((place) => place?.traceId ?? null)),
    plainArray(places.map((place) => (place ? spanNumber(place.spanId) : null))),
    plainArray(places.map((place) => (place?.parentSpanId ? spanNumber(place.parentSpanId) : null))),
  ];
}

async function insertIdentities(orgDb: OrgDb, wanted: readonly Wanted[]): Promise<Set<string>> {
  if (wanted.length === 0) return new Set();
  const rows = await orgDb.rows<IdentityRow>(
    `insert into call_spans (org_id, biller, response_id, trace_id, span_id, parent_span_id, event_id)
     select $1::uuid, i.* from unnest($2::text[], $3::text[], $4::uuid[], $5::int8[], $6::int8[], $7::uuid[]) as i
     on conflict do nothing returning biller, response_id, ${SPAN_COLUMNS}, event_id`,
    [
      orgDb.orgId,
      ...identityArrays(wanted.map(({ identity }) => identity)),
      plainArray(wanted.map(({ eventIds: [first] }) => first)),
    ],
  );
  return new Set(rows.map((row) => identityKey(responseOf(row) ?? (linkOf(row) as SpanLink))));
}

function responseOf({ biller, response_id: responseId }: IdentityRow): CallIdentity | undefined {
  return biller === null || responseId === null ? undefined : { biller, responseId };
}

interface HeldRow extends IdentityRow {
  live_event_id: string | null;
  is_old: boolean;
}

const HELD_COLUMNS = `s.biller, s.response_id, ${SPAN_COLUMNS}, s.event_id, s.live_event_id, s.created_at < now() - ${OLD} as is_old`;

function heldIdentity(row: HeldRow, identity: CallIdentity): HeldIdentity {
  const eventId = row.event_id as string;
  const holderId = row.live_event_id ?? eventId;
  const link = holderId === eventId ? linkOf(row) : null;
  return { identity, eventId, holderId, link, isOld: row.is_old };
}

/**
 * Each identity is one lookup in its index, in the order of the arrays, whatever number of rows Postgres estimates: a join
 * reads all identities of an organization that is not analyzed yet (docs/decisions/0042).
 */
const RESPONSES = 'unnest($2::text[], $3::text[]) as i (biller, response_id)';
const BY_RESPONSE = 'call_spans where org_id = $1 and biller = i.biller and response_id = i.response_id';
const PLACES = 'unnest($2::uuid[], $3::int8[]) as i (at_trace, at_span)';
const BY_PLACE = 'call_spans where org_id = $1 and trace_id = i.at_trace and span_id = i.at_span';

/** SQL that updates locked identities: `named` has an array for each column of `i`, and `found` is one identity of it. */
const updateSql = (assignments: string, named: string, found: string) => `
update call_spans s set ${assignments}
from (select i.*, f.at from ${named} cross join lateral (select ctid as at from ${found} limit 1) f) i
where s.org_id = $1 and s.ctid = i.at`;

async function lockResponses(orgDb: OrgDb, wanted: readonly Wanted[]): Promise<HeldIdentity[]> {
  const responses = wanted.flatMap(({ identity }) => (isPlace(identity) ? [] : [identity]));
  if (responses.length === 0) return [];
  const rows = await orgDb.rows<HeldRow>(
    `select ${HELD_COLUMNS} from ${RESPONSES} cross join lateral (select * from ${BY_RESPONSE} for update) s`,
    [orgDb.orgId, ...identityArrays(responses).slice(0, 2)],
  );
  return rows.map((row) => heldIdentity(row, responseOf(row) as CallIdentity));
}

async function lockPlaces(orgDb: OrgDb, wanted: readonly Wanted[]): Promise<HeldIdentity[]> {
  const places = wanted.filter(({ identity }) => isPlace(identity));
  if (places.length === 0) return [];
  const rows = await orgDb.rows<HeldRow>(
    `select ${HELD_COLUMNS} from ${PLACES} cross join lateral (select * from ${BY_PLACE} for update) s`,
    [orgDb.orgId, ...identityArrays(places.map(({ identity }) => identity)).slice(2, 4)],
  );
  const keyed = rows.map((row) => ({ row, link: linkOf(row) as SpanLink }));
  const free = new Set(keyed.filter(({ row }) => row.event_id === null).map(({ link }) => identityKey(link)));
  await takePlaces(
    orgDb,
    places.filter(({ identity }) => free.has(identityKey(identity))),
  );
  return keyed.flatMap(({ row, link }) => (row.event_id === null ? [] : [heldIdentity(row, link)]));
}

/**
 * Assigns reports to places where so far only a span was stored that is not a call; the sweep visits their traces
 * again.
 */
async function takePlaces(orgDb: OrgDb, places: readonly Wanted[]): Promise<void> {
  if (places.length === 0) return;
  await orgDb.run(
    updateSql(
      'event_id = i.event_id, ingest_xid = current_xid()',
      'unnest($2::uuid[], $3::int8[], $4::uuid[]) as i (at_trace, at_span, event_id)',
      `${BY_PLACE} and event_id is null`,
    ),
    [
      orgDb.orgId,
      ...identityArrays(places.map(({ identity }) => identity)).slice(2, 4),
      plainArray(places.map(({ eventIds: [first] }) => first)),
    ],
  );
}

/** An identity and the event that counts for its call from now on. */
export interface PointedIdentity {
  identity: CallIdentity;
  liveId: string;
}

/** Points identities at the events that count for their calls, and renews their rows. */
export async function pointIdentities(orgDb: OrgDb, pointed: readonly PointedIdentity[]): Promise<void> {
  const point = async (some: readonly PointedIdentity[], columns: readonly [number, number], sql: string) => {
    if (some.length === 0) return;
    const arrays = identityArrays(some.map(({ identity }) => identity)).slice(...columns);
    await orgDb.run(sql, [orgDb.orgId, ...arrays, plainArray(some.map(({ liveId }) => liveId))]);
  };
  await point(
    pointed.filter(({ identity }) => !isPlace(identity)),
    [0, 2],
    updateSql(
      'live_event_id = i.live_id, created_at = now()',
      'unnest($2::text[], $3::text[], $4::uuid[]) as i (biller, response_id, live_id)',
      BY_RESPONSE,
    ),
  );
  await point(
    pointed.filter(({ identity }) => isPlace(identity)),
    [2, 4],
    updateSql(
      'live_event_id = i.live_id, created_at = now()',
      'unnest($2::uuid[], $3::int8[], $4::uuid[]) as i (at_trace, at_span, live_id)',
      BY_PLACE,
    ),
  );
}

/** A place in a trace with its richest report, and the event that counts for the call. */
export interface RicherPlace extends PointedIdentity {
  identity: SpanLink;
  eventId: string;
}

/** Assigns richer reports to places. The sweep visits their traces again. */
export async function movePlaces(orgDb: OrgDb, places: readonly RicherPlace[]): Promise<void> {
  if (places.length === 0) return;
  await orgDb.run(
    updateSql(
      'event_id = i.event_id, live_event_id = i.live_id, ingest_xid = current_xid()',
      'unnest($2::uuid[], $3::int8[], $4::uuid[], $5::uuid[]) as i (at_trace, at_span, event_id, live_id)',
      BY_PLACE,
    ),
    [
      orgDb.orgId,
      ...identityArrays(places.map(({ identity }) => identity)).slice(2, 4),
      plainArray(places.map(({ eventId }) => eventId)),
      plainArray(places.map(({ liveId }) => liveId)),
    ],
  );
}

/**
 * `pointIdentities` for response ids that superseded events reported first; rows that are locked elsewhere are skipped.
 */
export async function pointResponsesOf(
  orgDb: OrgDb,
  traceIds: readonly string[],
  superseded: readonly { id: string; liveId: string }[],
): Promise<void> {
  if (superseded.length === 0) return;
  await orgDb.run(
    `update call_spans s set live_event_id = l.live_id
     from (
       select c.biller, c.response_id, e.live_id from unnest($3::uuid[], $4::uuid[]) as e (id, live_id)
       join call_spans c on c.org_id = $1 and c.trace_id = any($2::uuid[]) and c.event_id = e.id
       where c.response_id is not null for update of c skip locked) l
     where s.org_id = $1 and s.biller = l.biller and s.response_id = l.response_id`,
    [
      orgDb.orgId,
      plainArray(traceIds),
      plainArray(superseded.map(({ id }) => id)),
      plainArray(superseded.map(({ liveId }) => liveId)),
    ],
  );
}

/** Deletes old identities of all organizations, a bounded number at a time; returns the number. */
export async function deleteOldIdentities(database: Database): Promise<number> {
  return unscoped(database, 'prune span identities of all organizations', (system) =>
    system.run(
      `delete from call_spans where ctid = any(array(
         select ctid from call_spans where created_at < now() - make_interval(days => ${IDENTITY_DAYS}) limit ${DROPPED_MAX}))`,
    ),
  );
}
