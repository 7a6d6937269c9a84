import type { TokenClass } from '../../domain/events/event.js';
import type { Pico } from '../../domain/money.js';
import { isoFromMicros, microsOfDay } from '../../domain/period.js';
import type { BilledKeyDay, ObservedKeyDay } from '../../domain/reconciliation/coverage/keyCoverage.js';
import { countedRowsSql, countedSourcesSql } from '../billing/billingRows.js';
import { joinKeyAccount, keyAccount } from '../billing/keyAccounts.js';
import type { OrgDb } from '../orgDb.js';
import { BILLING_KEYS, BILLING_MEASURE_NAMES, BILLING_QUANTITIES } from '../usage/rollups.js';
import { readFoldedXid } from '../usage/usage.js';
import { sumOfMeasure, usageLogSql } from '../usage/usageLog.js';
import type { CoverageQuery } from './coverage.js';

/** Classes of tokens, as billing_cells name their sums. */
const MEASURES = {
  input: 'input_tokens',
  cache_read: 'cache_read',
  cache_write_5m: 'cache_write_5m',
  cache_write_1h: 'cache_write_1h',
  output: 'output_tokens',
  input_audio: 'input_audio',
  output_audio: 'output_audio',
} satisfies Record<TokenClass, string>;
const CLASSES = Object.keys(MEASURES) as TokenClass[];

/** Billed usage by provider key and day, of the sources that count. Work grows with the window's billed rows. */
export async function listBilledKeyDays(orgDb: OrgDb, query: CoverageQuery): Promise<BilledKeyDay[]> {
  const rows = await orgDb.rows<{
    provider: string;
    key: string;
    day: string;
    token_class: string;
    billed: Pico;
    not_observable: Pico;
    cost_quantity: bigint | null;
    usage_quantity: bigint | null;
    has_usage: boolean;
  }>(
    `with counted as materialized (${countedSourcesSql(
      'd.org_id = $1 and d.day >= $2 and d.day < $3 and ($4::text is null or d.provider = $4) and ($5::text is null or d.provider_account_id = $5)',
    )}),
     of_keys as (select r.*, (r.provider, r.provider_account_id, r.day) in (
         select provider, provider_account_id, day from counted where feed = 'usage') as is_reported
       from ${countedRowsSql("(feed = 'usage' or charge_category = 'usage')")} r offset 0)
     select r.provider, coalesce(r.api_key, '') as key, r.day, r.token_class,
       coalesce(sum(r.amount_usd) filter (where r.observable), 0) as billed,
       coalesce(sum(r.amount_usd) filter (where not r.observable), 0) as not_observable,
       case when bool_and(r.quantity is not null) filter (where r.feed = 'cost' and r.observable and not r.is_reported)
         then sum(r.quantity) filter (where r.feed = 'cost' and r.observable and not r.is_reported) end as cost_quantity,
       sum(r.quantity) filter (where r.feed = 'usage') as usage_quantity, bool_or(r.is_reported) as has_usage
     from of_keys r group by 1, 2, 3, 4 order by 1, 2, 3, 4`,
    [orgDb.orgId, query.fromDay, query.toDay, query.provider ?? null, query.accountId ?? null],
  );
  const days = new Map<string, BilledKeyDay>();
  for (const row of rows) {
    const name = [row.provider, row.key, row.day].join('\n');
    const day = days.get(name) ?? {
      provider: row.provider,
      providerKeyId: row.key,
      day: row.day,
      billedPico: 0n,
      notObservablePico: 0n,
      quantities: [],
    };
    days.set(name, day);
    day.billedPico += row.billed;
    day.notObservablePico += row.not_observable;
    const tokenClass = CLASSES.find((known) => known === row.token_class);
    if (tokenClass === undefined) continue;
    const quantity = row.usage_quantity ?? (row.has_usage ? null : row.cost_quantity);
    // Dollars of a class that the day's usage report gives to other keys: nobody knows this key's part.
    if (quantity !== null || row.billed !== 0n) day.quantities.push({ tokenClass, quantity });
  }
  return [...days.values()];
}

const SUMS = ['calls', ...Object.values(MEASURES), 'computed_cost_usd'];
const WHO = ['billed_by', 'provider_account_id', 'provider_key_id'] as const;

/**
 * Observed consumption by biller, provider key and UTC day (by the calls' end), folded and not, in one snapshot. Calls
 * of another account than the one that is asked for are left out; those that name none are not.
 */
export async function listObservedKeyDays(inside: OrgDb, query: CoverageQuery): Promise<ObservedKeyDay[]> {
  const rows = await inside.rows<
    { provider: string; key: string; day: string; calls: number; computed_cost_usd: Pico } & Record<
      string,
      number
    >
  >(
    `with parts as (
           select ${WHO.join(', ')}, (hour at time zone 'UTC')::date as day, ${BILLING_MEASURE_NAMES.join(', ')}
           from billing_cells where org_id = $1 and hour >= $2::timestamptz and hour < $3::timestamptz and status <> 'blocked'
           union all
           select ${WHO.map((name) => BILLING_KEYS[name]).join(', ')}, (end_at at time zone 'UTC')::date, ${BILLING_QUANTITIES}
           from (${usageLogSql('$6')}) log
           where end_at >= $2::timestamptz and end_at < $3::timestamptz and status <> 'blocked' group by 1, 2, 3, 4)
         select p.billed_by as provider, p.provider_key_id as key, p.day, ${SUMS.map((name) => `${sumOfMeasure(name)} as ${name}`).join(', ')}
         from parts p ${joinKeyAccount('p', 'p.billed_by')}
         where ($4::text is null or p.billed_by = $4) and ($5::text is null or ${keyAccount('p')} in ($5, ''))
         group by 1, 2, 3 having sum(calls) <> 0 order by 1, 2, 3`,
    [
      inside.orgId,
      isoFromMicros(microsOfDay(query.fromDay)),
      isoFromMicros(microsOfDay(query.toDay)),
      query.provider ?? null,
      query.accountId ?? null,
      await readFoldedXid(inside),
    ],
  );
  return rows.map((row) => ({
    provider: row.provider,
    providerKeyId: row.key,
    day: row.day,
    calls: row.calls,
    tokens: Object.fromEntries(CLASSES.map((name) => [name, BigInt(row[MEASURES[name]] ?? 0)])) as Record<
      TokenClass,
      bigint
    >,
    computedPico: row.computed_cost_usd,
  }));
}
