import { SCOPE_NOT_COUNTED } from '../../domain/events/countedScopes.js';
import type { Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { OrgDb, SqlValue } from '../orgDb.js';
import { sumSources } from '../usage/usage.js';
import { andOfProject } from './ofProject.js';

/** What one service's instrumentation scope has sent. */
export interface SourceHealth {
  serviceName: string;
  scopeName: string;
  lastSeenMicros: bigint | null;
  calls: number;
  unmetered: number;
  unpriced: number;
  priceGaps: number;
  unknownBiller: number;
  /** Calls that were left out, since another scope of the service is the one that counts. */
  notCounted: number;
  /** Refused items by reason. */
  rejected: Record<string, number>;
}

interface RejectedRow {
  service_name: string;
  scope_name: string;
  reason: string;
  count: number;
}

function emptySource(serviceName: string, scopeName: string): SourceHealth {
  return {
    serviceName,
    scopeName,
    lastSeenMicros: null,
    calls: 0,
    unmetered: 0,
    unpriced: 0,
    priceGaps: 0,
    unknownBiller: 0,
    notCounted: 0,
    rejected: {},
  };
}

/**
 * Sources of the window, the busiest first; one whose every item was refused is among them. With a handle of a project:
 * where its calls come from, and what its workspace's keys sent that was refused.
 */
export async function listSourceHealth(orgDb: OrgDb, sinceMicros: bigint): Promise<SourceHealth[]> {
  const sources = await sumSources(orgDb, sinceMicros);
  const byKey = new Map(sources.map((source) => [`${source.serviceName}\u001f${source.scopeName}`, source]));
  const values: SqlValue[] = [orgDb.orgId, isoFromMicros(sinceMicros)];
  const rejected = await orgDb.rows<RejectedRow>(
    `select service_name, scope_name, reason, sum(count)::bigint as count from ingest_rejections
     where org_id = $1 and hour >= date_trunc('hour', $2::timestamptz, 'UTC')${andOfProject(orgDb, values)}
     group by 1, 2, 3 order by 1, 2, 3 limit 10000`,
    values,
  );
  for (const row of rejected) {
    const key = `${row.service_name}\u001f${row.scope_name}`;
    const source = byKey.get(key) ?? emptySource(row.service_name, row.scope_name);
    byKey.set(key, source);
    if (row.reason === SCOPE_NOT_COUNTED) source.notCounted = row.count;
    else source.rejected[row.reason] = row.count;
  }
  return [...byKey.values()].sort((a, b) => b.calls - a.calls || (a.serviceName < b.serviceName ? -1 : 1));
}

/** Calls of one service that two scopes seem to tell, without an id that would prove it. */
export interface DoubleTelling {
  serviceName: string;
  scopes: string[];
  calls: number;
  /** Cost of the telling that looks superfluous. */
  costPico: Pico;
}

/** Newest events that are looked at: bounds the sort. */
const DOUBLE_SAMPLE_ROWS = 20_000;
/** Fewer pairs than this are chance. */
const DOUBLE_PAIRS_MIN = 5;
/** Share of the rarer scope's calls that must have a partner before the pairs are called systematic. */
const DOUBLE_SHARE_MIN = 0.8;

/**
 * Services that look instrumented twice (ingest.md, one call, several spans, 3): calls of two scopes of one service,
 * equal in model and tokens, that start within a second of each other, and systematically so. They are not merged,
 * since nothing proves it.
 */
export async function listDoubleTellings(orgDb: OrgDb, sinceMicros: bigint): Promise<DoubleTelling[]> {
  const values: SqlValue[] = [orgDb.orgId, isoFromMicros(sinceMicros)];
  const rows = await orgDb.rows<{
    service_name: string;
    scope_a: string;
    scope_b: string;
    pairs: number;
    cost_usd: Pico;
  }>(
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
     select p.service_name, p.scope_a, p.scope_b, p.pairs::bigint as pairs, p.cost_usd
     from pairs p
     join counted a on a.service_name = p.service_name and a.scope_name = p.scope_a
     join counted b on b.service_name = p.service_name and b.scope_name = p.scope_b
     where p.pairs >= ${DOUBLE_PAIRS_MIN} and p.pairs >= ${DOUBLE_SHARE_MIN} * least(a.calls, b.calls)
     order by p.cost_usd desc limit 100`,
    values,
  );
  return rows.map((row) => ({
    serviceName: row.service_name,
    scopes: [row.scope_a, row.scope_b],
    calls: row.pairs,
    costPico: row.cost_usd,
  }));
}
