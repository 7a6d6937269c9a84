import { PAIR_TOLERANCE_MICROS } from '../../domain/events/pairs/pairReports.js';
import type { Pico } from '../../domain/money.js';
import { decimalFromPico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { Database } from '../client.js';
import { andOfProject, type OrgDb, type SqlValue, unscoped } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';

/** Instrumentations of one service, and their reports that share no id and can be of one call (domain/events/pairs). */

/** Most instrumentations that an organization's services are known by; others are not paired. */
const SCOPES_MAX = 10_000;
/** Days after which reports are deleted here; ingest health shows those of the last 30. */
const PAIRED_DAYS = 35;
/** Reports that one transaction deletes. */
const DROPPED_MAX = 50_000;
/** Earlier reports that are read on each side of the new ones when a service has its second instrumentation. */
const EARLIER_MAX = 10_000;
/** Time before and after new reports in which others are looked for. */
const CALL_TIME = `interval '1 hour'`;
/** Most reports of one process with equal counts that are read on each side of new ones. */
const GROUP_ROWS_MAX = 1_000;

export interface InstrumentedService {
  serviceName: string;
  scopeName: string;
}

/** Records instrumentations of services; known ones stay. */
export async function recordScopes(orgDb: OrgDb, scopes: readonly InstrumentedService[]): Promise<void> {
  if (scopes.length === 0) return;
  await orgDb.run(
    `insert into instrumentation_scopes (org_id, service_name, scope_name)
     select $1::uuid, s.* from unnest($2::text[], $3::text[]) as s (service_name, scope_name)
     where (select count(*) from instrumentation_scopes where org_id = $1) < ${SCOPES_MAX}
     order by 2, 3 on conflict do nothing`,
    [
      orgDb.orgId,
      textArray(scopes.map(({ serviceName }) => serviceName)),
      textArray(scopes.map(({ scopeName }) => scopeName)),
    ],
  );
}

/** Transactions from one to another, without the latter. */
export interface TransactionRange {
  from: number;
  below: number;
}

/** A service with several instrumentations. */
export interface DoubleService {
  orgId: string;
  serviceName: string;
  scopes: string[];
  /** Whether one of them reported for the first time in the range. */
  isNew: boolean;
}

/** Services with several instrumentations, of organizations with spans of the range. */
export async function listDoubleServices(
  database: Database,
  { from, below }: TransactionRange,
): Promise<DoubleService[]> {
  return unscoped(database, 'the sweep looks for services with two instrumentations', (system) =>
    system.rows<DoubleService>(
      `select s.org_id as "orgId", s.service_name as "serviceName", array_agg(s.scope_name) as scopes,
         max(s.ingest_xid) >= $1 as "isNew"
       from instrumentation_scopes s
       where s.ingest_xid < $2 and s.org_id in (select org_id from call_spans where ingest_xid >= $1 and ingest_xid < $2)
       group by 1, 2 having count(*) > 1 order by 1, 2`,
      [from, below],
    ),
  );
}

/** A report that can be one of a pair. */
export interface PairableRow {
  eventId: string;
  pairKey: bigint;
  startMicros: bigint;
  endMicros: bigint;
  serviceName: string;
  scopeName: string;
}

export interface FoundReport extends PairableRow {
  supersededBy: string | null;
  /** Whether it was superseded as one of a pair, not by an id. */
  isPaired: boolean;
}

type FoundRow = Omit<FoundReport, 'pairKey'> & { pairKey: string };

const FOUND = `
select e.id as "eventId", e.pair_key::text as "pairKey", e.timestamp as "startMicros", e.end_at as "endMicros",
  e.service_name as "serviceName", e.scope_name as "scopeName", e.superseded_by as "supersededBy",
  p.paired_with is not null as "isPaired"
from events e left join paired_reports p on p.org_id = e.org_id and p.event_id = e.id
where e.org_id = $1 and e.pair_key is not null and e.service_name = any($2::text[])`;

const found = (rows: readonly FoundRow[]): FoundReport[] =>
  rows.map((row) => ({ ...row, pairKey: BigInt(row.pairKey) }));

/** Reports of services that a range of transactions stored. */
export async function listNewReports(
  orgDb: OrgDb,
  services: readonly string[],
  { from, below }: TransactionRange,
): Promise<FoundReport[]> {
  if (services.length === 0) return [];
  return found(
    await orgDb.rows<FoundRow>(
      `${FOUND} and e.ingest_xid >= $3 and e.ingest_xid < $4 order by e.timestamp, e.id`,
      [orgDb.orgId, textArray(services), from, below],
    ),
  );
}

/**
 * Reports of services that were stored before a transaction, of calls that began near a time; the nearest ones. Those
 * that began after it are included: the other report of their call can come in a later sweep.
 */
export async function listEarlierReports(
  orgDb: OrgDb,
  services: readonly string[],
  below: number,
  { fromMicros, toMicros }: { fromMicros: bigint; toMicros: bigint },
): Promise<FoundReport[]> {
  return found(
    await orgDb.rows<FoundRow>(
      `(${FOUND} and e.ingest_xid < $3 and e.timestamp >= $4::timestamptz - ${CALL_TIME} and e.timestamp <= $5::timestamptz
        order by e.timestamp desc, e.id limit ${EARLIER_MAX})
       union all
       (${FOUND} and e.ingest_xid < $3 and e.timestamp > $5::timestamptz and e.timestamp <= $5::timestamptz + ${CALL_TIME}
        order by e.timestamp, e.id limit ${EARLIER_MAX})`,
      [
        orgDb.orgId,
        textArray(services),
        below,
        isoFromMicros(fromMicros),
        isoFromMicros(toMicros + PAIR_TOLERANCE_MICROS),
      ],
    ),
  );
}

export interface NewPairable extends PairableRow {
  takenScopes: readonly string[];
}

/** Stores reports that can be one of a pair; known ones stay. */
export async function insertPairable(orgDb: OrgDb, reports: readonly NewPairable[]): Promise<void> {
  if (reports.length === 0) return;
  await orgDb.run(
    `insert into paired_reports (org_id, event_id, pair_key, start_at, end_at, service_name, scope_name)
     select $1::uuid, r.* from unnest($2::uuid[], $3::int8[], $4::timestamptz[], $5::timestamptz[], $6::text[], $7::text[]) as r
     order by 2 on conflict do nothing`,
    [
      orgDb.orgId,
      plainArray(reports.map(({ eventId }) => eventId)),
      plainArray(reports.map(({ pairKey }) => pairKey)),
      textArray(reports.map(({ startMicros }) => isoFromMicros(startMicros))),
      textArray(reports.map(({ endMicros }) => isoFromMicros(endMicros))),
      textArray(reports.map(({ serviceName }) => serviceName)),
      textArray(reports.map(({ scopeName }) => scopeName)),
    ],
  );
  await takeScopes(
    orgDb,
    reports.flatMap(({ eventId, takenScopes }) => takenScopes.map((scopeName) => ({ eventId, scopeName }))),
  );
}

/** A scope whose report of an event's call is known by an id. */
export interface TakenScope {
  eventId: string;
  scopeName: string;
}

/** Notes scopes on the events that have a row. */
export async function takeScopes(orgDb: OrgDb, taken: readonly TakenScope[]): Promise<void> {
  if (taken.length === 0) return;
  await orgDb.run(
    `update paired_reports p set taken_scopes = array(select distinct unnest(p.taken_scopes || t.scopes) order by 1)
     from (
       select l.event_id, s.scopes from (
         select event_id, array_agg(scope_name) as scopes from unnest($2::uuid[], $3::text[]) as t (event_id, scope_name)
         group by 1) s
       join paired_reports l on l.org_id = $1 and l.event_id = s.event_id order by 1 for update of l) t
     where p.org_id = $1 and p.event_id = t.event_id`,
    [
      orgDb.orgId,
      plainArray(taken.map(({ eventId }) => eventId)),
      textArray(taken.map(({ scopeName }) => scopeName)),
    ],
  );
}

/** A stored report that can be one of a pair, locked. */
export interface HeldPairable extends PairableRow {
  takenScopes: string[];
  pairedWith: string | null;
}

/** The times of reports with one pair key. */
export interface PairGroup {
  pairKey: bigint;
  fromMicros: bigint;
  toMicros: bigint;
}

/**
 * The reports with each pair key around its times, where two scopes have some; locked. Earlier and later ones are needed,
 * since a new report may take the partner of one of them, which then needs another.
 */
export async function lockPairable(orgDb: OrgDb, groups: readonly PairGroup[]): Promise<HeldPairable[]> {
  if (groups.length === 0) return [];
  const rows = await orgDb.rows<Omit<HeldPairable, 'pairKey'> & { pairKey: string }>(
    `select r.event_id as "eventId", r.pair_key::text as "pairKey", r.start_at as "startMicros", r.end_at as "endMicros",
       r.service_name as "serviceName", r.scope_name as "scopeName", r.taken_scopes as "takenScopes",
       r.paired_with as "pairedWith"
     from unnest($2::int8[], $3::timestamptz[], $4::timestamptz[]) as g (pair_key, from_at, to_at)
     cross join lateral (
       (select event_id from paired_reports
        where org_id = $1 and pair_key = g.pair_key and start_at between g.from_at - ${CALL_TIME} and g.to_at
        order by start_at desc limit ${GROUP_ROWS_MAX})
       union all
       (select event_id from paired_reports
        where org_id = $1 and pair_key = g.pair_key and start_at > g.to_at and start_at <= g.to_at + ${CALL_TIME}
        order by start_at limit ${GROUP_ROWS_MAX})) f
     join paired_reports r on r.org_id = $1 and r.event_id = f.event_id
     where exists (
       select from paired_reports o
       where o.org_id = $1 and o.pair_key = g.pair_key and o.scope_name <> r.scope_name
         and o.start_at between g.from_at - ${CALL_TIME} and g.to_at + ${CALL_TIME})
     order by r.event_id for update of r`,
    [
      orgDb.orgId,
      plainArray(groups.map(({ pairKey }) => pairKey)),
      textArray(groups.map(({ fromMicros }) => isoFromMicros(fromMicros))),
      textArray(groups.map(({ toMicros }) => isoFromMicros(toMicros + PAIR_TOLERANCE_MICROS))),
    ],
  );
  return rows.map((row) => ({ ...row, pairKey: BigInt(row.pairKey) }));
}

/** A report that counts no more, since the report of another scope counts for its call. */
export interface PairedReport {
  eventId: string;
  winnerId: string;
  winnerScope: string;
  /** Its cost, which is no longer counted. */
  costPico: Pico;
}

/** Notes pairs on the rows of their losers. */
export async function recordPairs(orgDb: OrgDb, pairs: readonly PairedReport[]): Promise<void> {
  if (pairs.length === 0) return;
  await orgDb.run(
    `update paired_reports r set paired_with = p.winner_id, paired_scope = p.winner_scope, cost_usd = p.cost
     from unnest($2::uuid[], $3::uuid[], $4::text[], $5::numeric[]) as p (event_id, winner_id, winner_scope, cost)
     where r.org_id = $1 and r.event_id = p.event_id`,
    [
      orgDb.orgId,
      plainArray(pairs.map(({ eventId }) => eventId)),
      plainArray(pairs.map(({ winnerId }) => winnerId)),
      textArray(pairs.map(({ winnerScope }) => winnerScope)),
      plainArray(pairs.map(({ costPico }) => decimalFromPico(costPico))),
    ],
  );
}

/** Those of the events that were superseded as one of a pair: that they are of one call is likely, but no id proves it. */
export async function findPairedIds(orgDb: OrgDb, eventIds: readonly string[]): Promise<Set<string>> {
  if (eventIds.length === 0) return new Set();
  const rows = await orgDb.rows<{ event_id: string }>(
    `select event_id from paired_reports where org_id = $1 and event_id = any($2::uuid[]) and paired_with is not null`,
    [orgDb.orgId, plainArray(eventIds)],
  );
  return new Set(rows.map(({ event_id: id }) => id));
}

/** Two instrumentations of a service whose reports were paired. */
export interface PairedScopes {
  serviceName: string;
  /** The scope whose reports count, then the other one. */
  scopes: [string, string];
  pairs: number;
  /** Reports of the two scopes that no report of the other one was found for; they count. */
  leftovers: number;
  /** Cost of the reports that count no more. */
  costPico: Pico;
}

/** Pairs and leftovers of calls since a time, most pairs first. */
export async function listPairedScopes(orgDb: OrgDb, sinceMicros: bigint): Promise<PairedScopes[]> {
  const values: SqlValue[] = [orgDb.orgId, isoFromMicros(sinceMicros)];
  return orgDb.rows<PairedScopes>(
    `with reports as (
       select r.event_id, r.service_name, r.scope_name, r.taken_scopes, r.paired_with, r.paired_scope, r.cost_usd, e.superseded_by
       from paired_reports r join events e on e.org_id = r.org_id and e.timestamp = r.start_at and e.id = r.event_id
       where r.org_id = $1 and r.start_at >= $2::timestamptz and e.timestamp >= $2::timestamptz${andOfProject(orgDb, values, 'e.project_id')}
     ), pairs as (
       select service_name, paired_scope as winner, scope_name as loser, count(*) as pairs, sum(cost_usd) as cost_usd
       from reports where paired_with is not null group by 1, 2, 3
     ), alone as (
       select * from reports where paired_with is null and superseded_by is null
     )
     select p.service_name as "serviceName", array[p.winner, p.loser] as scopes, p.pairs::bigint as pairs, p.cost_usd as "costPico",
       (select count(*)::bigint from alone a
        where a.service_name = p.service_name and (a.scope_name = p.loser and not p.winner = any(a.taken_scopes)
          or a.scope_name = p.winner and not p.loser = any(a.taken_scopes) and not exists (
            select from reports o where o.paired_with = a.event_id and o.scope_name = p.loser))) as leftovers
     from pairs p order by p.pairs desc, p.service_name, p.winner, p.loser limit 100`,
    values,
  );
}

/** Deletes old reports of all organizations, a bounded number at a time; returns the number. */
export async function deleteOldPairable(database: Database): Promise<number> {
  return unscoped(database, 'prune paired reports of all organizations', (system) =>
    system.run(
      `delete from paired_reports where ctid = any(array(
         select ctid from paired_reports where start_at < now() - make_interval(days => ${PAIRED_DAYS}) limit ${DROPPED_MAX}))`,
    ),
  );
}
