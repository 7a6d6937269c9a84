import type { Pico } from '../../domain/money.js';
import { isoFromMicros, MICROS_PER_HOUR } from '../../domain/period.js';
import type { FormerNotice } from '../../domain/policies/alert.js';
import type { Database } from '../client.js';
import { andOfProject, type OrgDb, type SqlValue, unscoped } from '../orgDb.js';
import { readFoldedXid } from '../usage/usage.js';
import {
  DIMENSION_KEYS,
  HEALTH_MEASURE_NAMES,
  HEALTH_MEASURES,
  MEASURES,
  SOURCE_SEPARATOR,
  usageLogSql,
} from '../usage/usageLog.js';

export interface SourceHealth {
  serviceName: string;
  scopeName: string;
  lastSeenMicros: bigint | null;
  calls: number;
  unmetered: number;
  unpriced: number;
  priceGaps: number;
  unknownBiller: number;
  /** Calls that were left out, because another scope of the service counts. */
  notCounted: number;
  rejected: Record<string, number>;
}

type Counted = Omit<SourceHealth, 'serviceName' | 'scopeName' | 'notCounted' | 'rejected'> & { key: string };

const camel = (name: string) => name.replace(/_[a-z]/g, (text) => text.slice(1).toUpperCase());

const SOURCE_NAMES = ['calls', 'unpriced', ...HEALTH_MEASURE_NAMES];

/** Totals by source and unfolded rows; $3: the transaction up to which the totals are complete. */
const SOURCES = `
  select key, ${SOURCE_NAMES.join(', ')}, last_seen from usage_rollups
  where org_id = $1 and dimension = 'source' and bucket >= $2::timestamptz
  union all
  select key, ${SOURCE_NAMES.join(', ')}, last_seen from adjustment_rollups
  where org_id = $1 and dimension = 'source' and bucket >= $2::timestamptz
  union all ${sourcesOf(usageLogSql('$3'))}`;

/** Totals by source cover the whole organization, so for a project its events are read; $3: the project. */
const SOURCES_OF_PROJECT = sourcesOf(`
  select 1::smallint as sign, * from events where org_id = $1 and project_id = $3 and superseded_by is null`);

/** Sources of rows of the log, or of signed events. */
function sourcesOf(rows: string): string {
  return `
  select ${DIMENSION_KEYS.source} as key, ${SOURCE_NAMES.join(', ')}, last_seen from (
    select service_name, scope_name, ${MEASURES}, ${HEALTH_MEASURES}, max(timestamp) as last_seen
    from (${rows}) log where status <> 'blocked' and timestamp >= $2::timestamptz group by 1, 2) fresh`;
}

/**
 * Calls by service and instrumentation scope from the whole hour of `sinceMicros` on; in a transaction with one
 * snapshot.
 */
export async function readSources(inside: OrgDb, sinceMicros: bigint): Promise<SourceHealth[]> {
  const since = isoFromMicros(sinceMicros - (sinceMicros % MICROS_PER_HOUR));
  const rows = await inside.rows<Counted>(
    `with parts as (${inside.projectId === undefined ? SOURCES : SOURCES_OF_PROJECT})
       select key, ${SOURCE_NAMES.map((name) => `sum(${name})::bigint as "${camel(name)}"`).join(', ')}, max(last_seen) as "lastSeenMicros"
       from parts group by key having sum(calls) <> 0 order by calls desc, key limit 1000`,
    [inside.orgId, since, inside.projectId ?? (await readFoldedXid(inside))],
  );
  return rows.map(({ key, ...counted }) => {
    const [serviceName = '', scopeName = ''] = key.split(SOURCE_SEPARATOR);
    return { serviceName, scopeName, ...counted, notCounted: 0, rejected: {} };
  });
}

interface Rejections {
  serviceName: string;
  scopeName: string;
  reason: string;
  count: number;
}

/** Refused and left out items of the window, by source and reason. With a project's handle, those of its keys. */
export async function listRejections(orgDb: OrgDb, sinceMicros: bigint): Promise<Rejections[]> {
  const values: SqlValue[] = [orgDb.orgId, isoFromMicros(sinceMicros)];
  return orgDb.rows<Rejections>(
    `select service_name as "serviceName", scope_name as "scopeName", reason, sum(count)::bigint as count from ingest_rejections
     where org_id = $1 and hour >= date_trunc('hour', $2::timestamptz, 'UTC')${andOfProject(orgDb, values)}
     group by 1, 2, 3 order by 1, 2, 3 limit 10000`,
    values,
  );
}

/** Calls of one service that two instrumentation scopes seem to report, without an id that would prove it. */
export interface DoubleReport {
  serviceName: string;
  scopes: string[];
  calls: number;
  /** Cost of the reports that seem redundant. */
  costPico: Pico;
}

const DOUBLE_SAMPLE_ROWS = 20_000;
/** Fewer pairs than this are coincidence. */
const DOUBLE_PAIRS_MIN = 5;
/** Share of the rarer scope's calls that must have a partner before the pairs count as systematic. */
const DOUBLE_SHARE_MIN = 0.8;

/** Services whose two scopes systematically report equal calls within a second; they are not merged without proof. */
export async function listDoubleReports(orgDb: OrgDb, sinceMicros: bigint): Promise<DoubleReport[]> {
  const values: SqlValue[] = [orgDb.orgId, isoFromMicros(sinceMicros)];
  return orgDb.rows<DoubleReport>(
    `with recent as (
       select service_name, scope_name, coalesce(response_model, model) as model, timestamp, input_tokens, output_tokens,
         cache_read, cache_creation, cost_usd
       from events
       where org_id = $1 and timestamp >= $2::timestamptz and superseded_by is null and status = 'ok' and not unmetered
         ${andOfProject(orgDb, values)}
       order by timestamp desc limit ${DOUBLE_SAMPLE_ROWS}
     ), counted as (
       select service_name, scope_name, count(*) as calls from recent group by 1, 2
     ), near as (
       select service_name, scope_name, cost_usd, timestamp,
         lag(scope_name) over w as before_scope, lag(timestamp) over w as before_at
       from recent
       window w as (partition by service_name, model, input_tokens + cache_read + cache_creation, output_tokens order by timestamp)
     ), pairs as (
       select service_name, least(scope_name, before_scope) as scope_a, greatest(scope_name, before_scope) as scope_b,
         count(*) as pairs, sum(cost_usd) as cost_usd
       from near
       where before_scope is not null and before_scope <> scope_name and timestamp - before_at <= interval '1 second'
       group by 1, 2, 3
     )
     select p.service_name as "serviceName", array[p.scope_a, p.scope_b] as scopes, p.pairs::bigint as calls, p.cost_usd as "costPico"
     from pairs p
     join counted a on a.service_name = p.service_name and a.scope_name = p.scope_a
     join counted b on b.service_name = p.service_name and b.scope_name = p.scope_b
     where p.pairs >= ${DOUBLE_PAIRS_MIN} and p.pairs >= ${DOUBLE_SHARE_MIN} * least(a.calls, b.calls)
     order by p.cost_usd desc limit 100`,
    values,
  );
}

/** Organizations with a service that two scopes reported since a time, by the totals. */
export async function listDoublyReportedOrganizations(
  database: Database,
  sinceMicros: bigint,
): Promise<string[]> {
  const rows = await unscoped(database, 'services that are instrumented twice are looked for', (system) =>
    system.rows<{ org_id: string }>(
      `select s.org_id from rollup_state s where s.folded_at >= $1::timestamptz and exists (
         select from usage_rollups u
         where u.org_id = s.org_id and u.dimension = 'source' and u.bucket >= date_trunc('hour', $1::timestamptz, 'UTC')
         group by split_part(u.key, $2, 1) having count(distinct u.key) > 1)
       order by s.org_id`,
      [isoFromMicros(sinceMicros), SOURCE_SEPARATOR],
    ),
  );
  return rows.map(({ org_id }) => org_id);
}

/** The newest notice of a pair of scopes, whose notice keys begin with `pairKey`. */
export async function findFormerNotice(orgDb: OrgDb, pairKey: string): Promise<FormerNotice | undefined> {
  const [notice] = await orgDb.rows<FormerNotice>(
    `select id, status, acknowledged_at as "acknowledgedAtMicros" from alerts
     where org_id = $1 and kind = 'notice' and starts_with(notice_key, $2 || ':')
     order by created_at desc, id desc limit 1`,
    [orgDb.orgId, pairKey],
  );
  return notice;
}
