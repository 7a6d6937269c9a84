import type { CalledSpend } from '../../domain/usage/chargeback.js';
import { eventConditions } from '../events/events.js';
import type { OrgDb, SqlValue } from '../orgDb.js';

/**
 * The most expensive requests of a half-open window, as they are known now, by `api_key_hash`. No totals are kept by
 * request, so this reads the calls themselves.
 */
export async function listRequestCosts(
  orgDb: OrgDb,
  window: { fromMicros: bigint; toMicros: bigint },
  limit: number,
): Promise<CalledSpend[]> {
  const values: SqlValue[] = [];
  const where = eventConditions(orgDb, { ...window, withoutBlocked: true }, values);
  return orgDb.rows<CalledSpend>(
    `select e.api_key_hash as key, sum(e.cost_usd) as "costPico",
       sum(e.input_tokens + e.output_tokens + e.cache_read + e.cache_creation)::bigint as tokens, count(*) as rows
     from events e where ${where} group by 1 order by 2 desc, 1 limit $${values.push(limit)}`,
    values,
  );
}
