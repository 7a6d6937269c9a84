import { isoFromMicros } from '../../domain/period.js';
import { type ObservedSource, SOURCES_MAX } from '../../domain/reconciliation/evidence/seriesDay.js';
import type { OrgDb } from '../orgDb.js';
import { BILLING_KEYS } from './rollups.js';

/** Longer calls are not looked for: a source is named as a hint, and no amount rests on it. */
const CALL_HOURS = 1;

/** Classes of which a client that cannot send them leaves cached input among the rest. */
const CACHE_CLASSES = `array['cache_read', 'cache_write_5m', 'cache_write_1h']`;

/**
 * By model: the services that a biller's calls of a half-open time came from, by when they ended, the busiest first and
 * at most SOURCES_MAX, with how many of the calls cannot tell cached input. Calls that are stored alone; reads each of
 * the time's calls.
 */
export async function listObservedSources(
  orgDb: OrgDb,
  scope: { provider: string; fromMicros: bigint; toMicros: bigint },
): Promise<Map<string, ObservedSource[]>> {
  const rows = await orgDb.rows<{ model: string; service: string; calls: number; without: number }>(
    `select model, service, calls, without from (
       select *, row_number() over (partition by model order by calls desc, service collate "C") as place from (
         select ${BILLING_KEYS.model} as model, service_name as service, count(*) as calls,
           count(*) filter (where unmetered or usage_missing && ${CACHE_CLASSES}) as without
         from events where org_id = $1 and timestamp >= $2::timestamptz - interval '${CALL_HOURS} hours' and timestamp < $3::timestamptz
           and end_at >= $2::timestamptz and end_at < $3::timestamptz and billed_by = $4 and superseded_by is null and status <> 'blocked'
         group by 1, 2) services) ranked
     where place <= ${SOURCES_MAX} order by model collate "C", place`,
    [orgDb.orgId, isoFromMicros(scope.fromMicros), isoFromMicros(scope.toMicros), scope.provider],
  );
  const sources = new Map<string, ObservedSource[]>();
  for (const row of rows) {
    const known = sources.get(row.model) ?? [];
    known.push({
      serviceName: row.service,
      calls: Number(row.calls),
      callsWithoutCache: Number(row.without),
    });
    sources.set(row.model, known);
  }
  return sources;
}
