import { shiftDay } from '../../domain/period.js';
import type { HourOfBoth } from '../../domain/reconciliation/evidence/dayOffset.js';
import { countedRowsSql, countedSourcesSql } from '../billing/billingRows.js';
import type { OrgDb } from '../orgDb.js';
import { BILLING_QUANTITIES } from '../usage/rollups.js';
import { readFoldedXid } from '../usage/usage.js';
import { usageLogSql } from '../usage/usageLog.js';

/** Days that are looked at together: enough to tell one hour from the next, of any week. */
const DAYS = 14;

const QUANTITIES = [
  'input_tokens',
  'cache_read',
  'cache_write_5m',
  'cache_write_1h',
  'output_tokens',
  'input_audio',
  'output_audio',
];

/**
 * Tokens by hour of the newest 14 days before `toDay` for which the provider's usage report is there, up to its last day: what
 * the report counts, where it is hourly, and what was observed. All accounts and models together. `fromDay` is the first
 * of these days; null where there is no report before `toDay`.
 */
export async function listHoursOfBoth(
  inside: OrgDb,
  scope: { provider: string; toDay: string },
): Promise<{ hours: HourOfBoth[]; fromDay: string | null }> {
  const [row] = await inside.rows<{ day: string | null }>(
    `select max(day) as day from billing_days
     where org_id = $1 and provider = $2 and day < $3 and feed = 'usage' and superseded_at is null`,
    [inside.orgId, scope.provider, scope.toDay],
  );
  if (!row?.day) return { hours: [], fromDay: null };
  const days = [shiftDay(row.day, 1 - DAYS), shiftDay(row.day, 1)] as const;
  const billed = await listBilledHours(inside, scope.provider, days);
  const observed = billed.length === 0 ? [] : await listObservedHours(inside, scope.provider, days);
  return { hours: [...billed, ...observed], fromDay: days[0] };
}

type Days = readonly [from: string, to: string];

async function listBilledHours(inside: OrgDb, provider: string, [from, to]: Days): Promise<HourOfBoth[]> {
  return inside.rows<HourOfBoth>(
    `with counted as materialized (${countedSourcesSql(`d.org_id = $1 and d.provider = $2 and d.day >= $3 and d.day < $4 and d.feed = 'usage'`)})
     select (extract(epoch from date_trunc('hour', starts, 'UTC')) / 3600)::float8 as hour, sum(quantity)::float8 as billed, 0::float8 as observed
     from (select r.period_start as starts, sum(r.quantity) as quantity
       from ${countedRowsSql()} r
       where r.quantity is not null and r.period_end - r.period_start <= interval '1 hour' and r.token_class not in ('requests', 'other')
       group by 1) reported
     group by 1 order by 1`,
    [inside.orgId, provider, from, to],
  );
}

async function listObservedHours(inside: OrgDb, provider: string, [from, to]: Days): Promise<HourOfBoth[]> {
  return inside.rows<HourOfBoth>(
    `select (extract(epoch from hour) / 3600)::float8 as hour, 0::float8 as billed, sum(${QUANTITIES.join(' + ')})::float8 as observed from (
       select hour, ${QUANTITIES.join(', ')} from billing_cells
       where org_id = $1 and hour >= $3::date and hour < $4::date and billed_by = $2 and status <> 'blocked'
       union all
       select hour, ${QUANTITIES.join(', ')} from (
         select date_trunc('hour', end_at, 'UTC') as hour, ${BILLING_QUANTITIES} from (${usageLogSql('$5')}) log
         where end_at >= $3::date and end_at < $4::date and billed_by = $2 and status <> 'blocked' group by 1) unfolded) parts
     group by 1 order by 1`,
    [inside.orgId, provider, from, to, await readFoldedXid(inside)],
  );
}
