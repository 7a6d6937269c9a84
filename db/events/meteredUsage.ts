import type { MeteredPoint } from '../../domain/events/agentMetrics.js';
import type { Pico } from '../../domain/money.js';
import { isoFromMicros, MICROS_PER_HOUR } from '../../domain/period.js';
import type { Database } from '../client.js';
import { andOfProject, type OrgDb, type SqlValue, unscoped } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';
import { readFoldedXid } from '../usage/usage.js';
import { SOURCE_SEPARATOR, startOf, usageLogSql } from '../usage/usageLog.js';

/** Days for which clients may repeat a point, for which a series may pause, and for which sums are kept. */
const REPEAT_DAYS = 2;
const PAUSE_DAYS = 35;
/** Rows that one transaction deletes of each table. */
const DROPPED_MAX = 50_000;

/** The last values of series, locked; unknown ones are created with 0. In one order, so that no two transactions deadlock. */
export async function lockSeries(
  inside: OrgDb,
  points: readonly Pick<MeteredPoint, 'seriesId' | 'isCumulative'>[],
): Promise<Map<string, bigint>> {
  const ids = plainArray(points.map(({ seriesId }) => seriesId));
  await inside.run(
    `insert into metered_series (org_id, series_id, is_cumulative, amount)
     select $1::uuid, p.id, p.cumulative, 0 from unnest($2::uuid[], $3::bool[]) as p (id, cumulative) order by p.id
     on conflict do nothing`,
    [inside.orgId, ids, plainArray(points.map(({ isCumulative }) => isCumulative))],
  );
  const rows = await inside.rows<{ id: string; amount: string }>(
    `select s.series_id as id, s.amount::text from unnest($2::uuid[]) as p (id)
     join metered_series s on s.org_id = $1 and s.series_id = p.id order by s.series_id for update of s`,
    [inside.orgId, ids],
  );
  return new Map(rows.map(({ id, amount }) => [id.replaceAll('-', ''), BigInt(amount)]));
}

/** Stores the values of locked series. */
export async function putSeries(
  inside: OrgDb,
  series: readonly Pick<MeteredPoint, 'seriesId' | 'amount'>[],
): Promise<void> {
  await inside.run(
    `update metered_series s set amount = p.amount, updated_at = now() from unnest($2::uuid[], $3::numeric[]) as p (id, amount)
     where s.org_id = $1 and s.series_id = p.id`,
    [
      inside.orgId,
      plainArray(series.map(({ seriesId }) => seriesId)),
      plainArray(series.map(({ amount }) => amount)),
    ],
  );
}

/** The increments that points add to the sum of an hour. */
export type MeteredGrowth = Pick<
  MeteredPoint,
  'hourMicros' | 'serviceName' | 'metric' | 'measure' | 'amount'
>;

/** Adds to the sums of hours; each sum at most once in a call. `projectId`: of the reporting key's workspace. */
export async function addMeteredUsage(
  inside: OrgDb,
  projectId: string | null,
  growths: readonly MeteredGrowth[],
): Promise<void> {
  if (growths.length === 0) return;
  await inside.run(
    `insert into metered_usage as m (org_id, project_id, hour, service_name, metric, measure, amount)
     select $1::uuid, $2, g.* from unnest($3::timestamptz[], $4::text[], $5::text[], $6::text[], $7::numeric[])
       as g (hour, service_name, metric, measure, amount) order by 3, 4, 5, 6
     on conflict (org_id, hour, project_id, service_name, metric, measure)
       do update set amount = m.amount + excluded.amount, last_at = now()`,
    [
      inside.orgId,
      projectId ?? '',
      textArray(growths.map(({ hourMicros }) => isoFromMicros(hourMicros))),
      textArray(growths.map(({ serviceName }) => serviceName)),
      textArray(growths.map(({ metric }) => metric)),
      textArray(growths.map(({ measure }) => measure)),
      plainArray(growths.map(({ amount }) => amount)),
    ],
  );
}

/** A metric's sums beside those of the calls of its service since the metric's first hour. */
export interface MeteredSource {
  serviceName: string;
  metric: string;
  firstHourMicros: bigint;
  lastAtMicros: bigint;
  inputTokens: number;
  outputTokens: number;
  /** Null: the metric reports tokens. */
  costPico: Pico | null;
  callInputTokens: number;
  callOutputTokens: number;
}

const TOKENS = (sign: string) =>
  `${sign}(input_tokens + cache_read + cache_creation) as input, ${sign}output_tokens as output`;

/** Calls by service and hour from totals and unfolded rows; $3: the transaction up to which the totals are complete. */
const CALLS = `
  select split_part(key, '${SOURCE_SEPARATOR}', 1) as service, bucket as hour, ${TOKENS('')} from usage_rollups
  where org_id = $1 and dimension = 'source' and bucket >= $2::timestamptz
  union all
  select split_part(key, '${SOURCE_SEPARATOR}', 1), bucket, ${TOKENS('')} from adjustment_rollups
  where org_id = $1 and dimension = 'source' and bucket >= $2::timestamptz
  union all
  select service_name, ${startOf('hour', 'timestamp')}, ${TOKENS('sign * ')} from (${usageLogSql('$3')}) log
  where status <> 'blocked' and timestamp >= $2::timestamptz`;

/** $3: the project, whose events are read. */
const CALLS_OF_PROJECT = `
  select service_name as service, ${startOf('hour', 'timestamp')} as hour, ${TOKENS('')} from events
  where org_id = $1 and project_id = $3 and superseded_by is null and status <> 'blocked' and timestamp >= $2::timestamptz`;

/** Metrics of the window by service, in a transaction with one snapshot. With a project's handle, those of its keys. */
export async function readMeteredSources(inside: OrgDb, sinceMicros: bigint): Promise<MeteredSource[]> {
  const since = isoFromMicros(sinceMicros - (sinceMicros % MICROS_PER_HOUR));
  const values: SqlValue[] = [inside.orgId, since, inside.projectId ?? (await readFoldedXid(inside))];
  return inside.rows<MeteredSource>(
    `with told as (
       select service_name, metric, min(hour) as first_hour, max(last_at) as last_at,
         coalesce(sum(amount) filter (where measure = 'input'), 0) as input,
         coalesce(sum(amount) filter (where measure = 'output'), 0) as output,
         sum(amount) filter (where measure = 'cost') as cost
       from metered_usage where org_id = $1 and hour >= $2::timestamptz${andOfProject(inside, values)}
       group by 1, 2 order by 5 desc, 1, 2 limit 100
     ), calls as (${inside.projectId === undefined ? CALLS : CALLS_OF_PROJECT})
     select service_name as "serviceName", metric, first_hour as "firstHourMicros", last_at as "lastAtMicros",
       t.input::bigint as "inputTokens", t.output::bigint as "outputTokens", t.cost / 1000000000000 as "costPico",
       coalesce(sum(c.input), 0)::bigint as "callInputTokens", coalesce(sum(c.output), 0)::bigint as "callOutputTokens"
     from told t left join calls c on c.service = t.service_name and c.hour >= t.first_hour
     group by service_name, metric, first_hour, last_at, t.input, t.output, t.cost
     order by t.input desc, service_name, metric`,
    values,
  );
}

/** Deletes old series and sums of all organizations, a bounded number at a time; returns the number. */
export async function deleteOldMeteredUsage(database: Database): Promise<number> {
  return unscoped(database, 'prune metrics of all organizations', async (system) => {
    const series = await system.run(
      `delete from metered_series where ctid = any(array(
         select ctid from metered_series
         where (not is_cumulative and updated_at < now() - make_interval(days => ${REPEAT_DAYS}))
           or (is_cumulative and updated_at < now() - make_interval(days => ${PAUSE_DAYS})) limit ${DROPPED_MAX}))`,
    );
    const sums = await system.run(
      `delete from metered_usage where ctid = any(array(
         select ctid from metered_usage where hour < now() - make_interval(days => ${PAUSE_DAYS}) limit ${DROPPED_MAX}))`,
    );
    return series + sums;
  });
}
