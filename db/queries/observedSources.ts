import { isoFromMicros } from '../../domain/period.js';
import { type ObservedSource, SOURCES_MAX } from '../../domain/reconciliation/evidence/seriesDay.js';
import type { OrgDb } from '../orgDb.js';
import { joinKeyAccount, keyAccount } from './keyAccounts.js';
import { BILLING_KEYS } from './rollups.js';

/** Longer calls are not looked for: a source is named as a hint, and no amount rests on it. */
const CALL_HOURS = 1;

/** Classes of which a client that cannot send them leaves cached input among the rest. */
const CACHE_CLASSES = `array['cache_read', 'cache_write_5m', 'cache_write_1h']`;

interface SourceRow {
  account: string;
  model: string;
  service: string;
  calls: number;
  without: number;
  named: number;
  refused: number;
}

/**
 * By account that the calls are compared under ('' without one), then model: the services that a biller's calls of a
 * half-open time came from, by when they ended, the busiest first and at most SOURCES_MAX, with how many of the calls
 * cannot tell cached input, name the model that answered, and were refused by the provider. Calls that are stored alone;
 * reads each of the time's calls.
 */
export async function listObservedSources(
  orgDb: OrgDb,
  scope: { provider: string; fromMicros: bigint; toMicros: bigint },
): Promise<Map<string, Map<string, ObservedSource[]>>> {
  const rows = await orgDb.rows<SourceRow>(
    // Added up by key first: what account a key has is looked up once for each, and not for each call. Ordered by bytes,
    // which is all that grouping needs; planned once, since a plan over all months of calls costs as much as the read.
    `select account, model, service, calls, without, named, refused from (
       select *, row_number() over (partition by account, model order by calls desc, service collate "C") as place from (
         select ${keyAccount('told')} as account, model, service, sum(calls)::bigint as calls, sum(without)::bigint as without, sum(named)::bigint as named, sum(refused)::bigint as refused from (
           select coalesce(provider_account_id, '') collate "C" as provider_account_id, coalesce(provider_key_id, '') collate "C" as provider_key_id,
             ${BILLING_KEYS.model} collate "C" as model, service_name collate "C" as service, count(*) as calls,
             count(*) filter (where unmetered or usage_missing && ${CACHE_CLASSES}) as without,
             count(response_model) filter (where status <> 'error') as named,
             count(*) filter (where status = 'error' and http_status >= 400) as refused
           from events where org_id = $1 and timestamp >= $2::timestamptz - interval '${CALL_HOURS} hours' and timestamp < $3::timestamptz
             and end_at >= $2::timestamptz and end_at < $3::timestamptz and billed_by = $4 and superseded_by is null and status <> 'blocked'
           group by 1, 2, 3, 4) told ${joinKeyAccount('told', '$4')}
         group by 1, 2, 3) services) ranked
     where place <= ${SOURCES_MAX} order by account collate "C", model collate "C", place`,
    [orgDb.orgId, isoFromMicros(scope.fromMicros), isoFromMicros(scope.toMicros), scope.provider],
    'observed_sources',
  );
  const sources = new Map<string, Map<string, ObservedSource[]>>();
  for (const row of rows) {
    const models = sources.get(row.account) ?? new Map<string, ObservedSource[]>();
    sources.set(row.account, models);
    const known = models.get(row.model) ?? [];
    models.set(row.model, known);
    known.push({
      serviceName: row.service,
      calls: row.calls,
      callsWithoutCache: row.without,
      ...(row.named > 0 && { namedByAnswer: row.named }),
      ...(row.refused > 0 && { refused: row.refused }),
    });
  }
  return sources;
}
