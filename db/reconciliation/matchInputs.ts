import { nextMonth } from '../../domain/billing/periods.js';
import { TOKEN_CLASSES, type TokenClass } from '../../domain/events/event.js';
import { shiftDay } from '../../domain/period.js';
import type { Provider } from '../../domain/providers.js';
import {
  type BilledUse,
  type HourOfBoth,
  type ObservedUse,
  OFFSET_DAYS,
} from '../../domain/reconciliation/evidence/dayOffset.js';
import {
  BILLED_ACCOUNT,
  type BilledAccount,
  type BilledAccountRow,
  billedAccountOf,
  countedRowsSql,
  countedSourcesSql,
  IS_DAILY_USAGE,
  JOIN_FORMATS,
} from '../billing/billingRows.js';
import { listComparedInvoices } from '../invoices/comparedInvoices.js';
import type { OrgDb } from '../orgDb.js';
import { BILLING_KEYS, BILLING_QUANTITIES, CLASS_COLUMNS } from '../usage/rollups.js';
import { readFoldedXid } from '../usage/usage.js';
import { usageLogSql } from '../usage/usageLog.js';
import type { AccountName } from './explanations.js';

/** Digests of a match's inputs, read for a whole window: each value changes whenever the inputs do. */

interface InputWindow {
  provider: string | null;
  fromDay: string;
  toDay: string;
}

/** The counted copies of an account's day, including those of its usage reports. */
export interface CountedDay extends BilledAccount {
  provider: Provider;
  day: string;
}

export async function listCountedDays(orgDb: OrgDb, window: InputWindow): Promise<CountedDay[]> {
  const rows = await orgDb.rows<BilledAccountRow & { provider: Provider; day: string }>(
    `with counted as (${countedSourcesSql('d.org_id = $1 and ($2::text is null or d.provider = $2) and d.day >= $3 and d.day < $4')}),
     told as (select counted.*, source.format from counted ${JOIN_FORMATS})
     select provider, day, ${BILLED_ACCOUNT}
     from told group by 1, 2, 3 having bool_or(${IS_DAILY_USAGE}) order by 1, 2, 3`,
    [orgDb.orgId, window.provider, window.fromDay, window.toDay],
  );
  return rows.map((row) => billedAccountOf(row, row.day));
}

const dayKey = (row: { provider: string; day: string }) => `${row.provider} ${row.day}`;

/** Log rows behind each provider-day's cells, by `provider day`: constant across folds, different after any change. */
export async function listObservedRevisions(
  inside: OrgDb,
  window: InputWindow,
): Promise<Map<string, number>> {
  const rows = await inside.rows<{ provider: string; day: string; revision: number }>(
    `select billed_by as provider, day, sum(revision)::bigint as revision from (
           select billed_by, day, revision from observed_days
           where org_id = $1 and ($2::text is null or billed_by = $2) and day >= $3::date and day < $4::date
           union all
           select billed_by, (end_at at time zone 'UTC')::date, count(*) from (${usageLogSql('$5')}) log
           where ($2::text is null or billed_by = $2) and status <> 'blocked'
             and end_at >= $3::date and end_at < $4::date group by 1, 2
         ) parts group by 1, 2`,
    [inside.orgId, window.provider, window.fromDay, window.toDay, await readFoldedXid(inside)],
  );
  return new Map(rows.map((row) => [dayKey(row), row.revision]));
}

/** By provider: digest of the account of each of its keys. Providers without such keys are absent. */
export async function listKeyDigests(orgDb: OrgDb): Promise<Map<string, string>> {
  const rows = await orgDb.rows<{ provider: string; digest: string }>(
    `select provider, md5(string_agg(provider_key_id || '=' || provider_account_id, ',' order by provider_key_id)) as digest
     from provider_keys where org_id = $1 and provider_account_id is not null group by 1`,
    [orgDb.orgId],
  );
  return new Map(rows.map((row) => [row.provider, row.digest]));
}

/** The UTC day of the oldest stored call; of earlier days only sums are left. undefined: there are no calls. */
export async function findFirstEventDay(orgDb: OrgDb): Promise<string | undefined> {
  const [row] = await orgDb.rows<{ day: string | null }>(
    `select (min(timestamp) at time zone 'UTC')::date as day from events where org_id = $1`,
    [orgDb.orgId],
  );
  return row?.day ?? undefined;
}

export interface PublishedDay {
  provider: string;
  day: string;
  inputMark: string;
}

export async function listPublishedDays(orgDb: OrgDb, window: InputWindow): Promise<PublishedDay[]> {
  return orgDb.rows<PublishedDay>(
    `select p.provider, p.day, coalesce(min(u.input_mark), '') as "inputMark"
     from gap_published p
     left join lateral (select input_mark from gap_run_units
       where org_id = $1 and run_id = p.run_id and provider = p.provider and day = p.day offset 0) u on true
     where p.org_id = $1 and ($2::text is null or p.provider = $2) and p.day >= $3::date and p.day < $4::date
     group by 1, 2 order by 1, 2`,
    [orgDb.orgId, window.provider, window.fromDay, window.toDay],
  );
}

/** Days that are compared together: enough to distinguish hours in any week. */
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

/** Tokens by hour, billed and observed, of the 14 days up to the newest usage report before `toDay`. */
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
         select ${BILLING_KEYS.hour} as hour, ${BILLING_QUANTITIES} from (${usageLogSql('$5')}) log
         where end_at >= $3::date and end_at < $4::date and billed_by = $2 and status <> 'blocked' group by 1) unfolded) parts
     group by 1 order by 1`,
    [inside.orgId, provider, from, to, await readFoldedXid(inside)],
  );
}

/** Billed days and observed hours by model, of the newest billed days before `toDay`. */
export async function listUsesOfBoth(
  inside: OrgDb,
  scope: { provider: string; toDay: string },
): Promise<{ billed: BilledUse[]; observed: ObservedUse[] }> {
  const [row] = await inside.rows<{ day: string | null }>(
    `select max(day) as day from billing_days
     where org_id = $1 and provider = $2 and day < $3 and feed = 'cost' and superseded_at is null`,
    [inside.orgId, scope.provider, scope.toDay],
  );
  if (!row?.day) return { billed: [], observed: [] };
  const days = [shiftDay(row.day, 1 - OFFSET_DAYS), shiftDay(row.day, 1)] as const;
  return {
    billed: await listBilledUses(inside, scope.provider, days),
    observed: await listObservedUses(inside, scope.provider, days),
  };
}

async function listBilledUses(inside: OrgDb, provider: string, [from, to]: Days): Promise<BilledUse[]> {
  return inside.rows<BilledUse>(
    `with counted as materialized (${countedSourcesSql(`d.org_id = $1 and d.provider = $2 and d.day >= $3 and d.day < $4 and d.feed = 'cost' and d.charge_category = 'usage'`)})
     select r.model, r.token_class as "tokenClass", (extract(epoch from r.day) / 86400)::float8 as day,
       case when bool_and(r.quantity is not null) then sum(r.quantity) end as quantity, coalesce(sum(r.amount_usd), 0) as "amountPico"
     from ${countedRowsSql()} r
     where r.model is not null and r.token_class <> 'requests' and r.charge_category = 'usage'
     group by 1, 2, 3 order by 1, 2, 3`,
    [inside.orgId, provider, from, to],
  );
}

type ObservedUseRow = Omit<ObservedUse, 'tokens'> & Record<TokenClass, number>;

async function listObservedUses(inside: OrgDb, provider: string, [from, to]: Days): Promise<ObservedUse[]> {
  const measures = [...QUANTITIES, 'computed_cost_usd'].join(', ');
  const rows = await inside.rows<ObservedUseRow>(
    `select model, (extract(epoch from hour) / 3600)::float8 as hour, sum(computed_cost_usd) as "computedCostPico",
       ${TOKEN_CLASSES.map((name) => `sum(${CLASS_COLUMNS[name]})::bigint as ${name}`).join(', ')}
     from (
       select hour, model, ${measures} from billing_cells
       where org_id = $1 and hour >= $3::date and hour < $4::date and billed_by = $2 and status not in ('blocked', 'error')
       union all
       select hour, model, ${measures} from (
         select ${BILLING_KEYS.hour} as hour, ${BILLING_KEYS.model} as model, ${BILLING_QUANTITIES} from (${usageLogSql('$5')}) log
         where end_at >= $3::date and end_at < $4::date and billed_by = $2 and status not in ('blocked', 'error') group by 1, 2) unfolded) parts
     group by 1, 2 order by 1, 2`,
    [inside.orgId, provider, from, to, await readFoldedXid(inside)],
  );
  return rows.map(({ model, hour, computedCostPico, ...tokens }) => ({
    ...{ model, hour, computedCostPico },
    tokens: Object.fromEntries(
      TOKEN_CLASSES.map((name) => [name, BigInt(tokens[name])]),
    ) as ObservedUse['tokens'],
  }));
}

/** The comparison of a month's invoice, or of another copy of the month's whole bill, with the counted bill. */
export type InvoiceTie = 'exact' | 'close' | 'contradicts';

export interface AccountTie extends AccountName {
  month: string;
  tie: InvoiceTie;
}

/** Totals that differ by less than this share are close: rounding of many lines. */
const CLOSE_SHARE = 0.001;

/**
 * Whole months of a half-open window that uploaded invoices charge for, and how they compare; the latest issued counts.
 */
export async function listUploadedTies(
  orgDb: OrgDb,
  window: { provider: string | null; fromDay: string; toDay: string },
): Promise<AccountTie[]> {
  const invoices = await listComparedInvoices(orgDb, window);
  return invoices.flatMap(({ provider, accountId, fromDay, toDay, tie }) =>
    tie !== 'not_comparable' && fromDay.endsWith('-01') && toDay === shiftDay(nextMonth(fromDay), -1)
      ? [{ provider, accountId, month: fromDay.slice(0, 7), tie }]
      : [],
  );
}

/** Months that another copy of the whole bill covers, and whether it states the same amount to the cent. */
export async function listInvoiceTies(
  orgDb: OrgDb,
  window: { provider: string | null; fromDay: string; toDay: string },
): Promise<AccountTie[]> {
  const days = `d.org_id = $1 and ($2::text is null or d.provider = $2) and d.day >= $3 and d.day < $4 and d.feed = 'cost' and d.charge_category = 'usage'`;
  return orgDb.rows<AccountTie>(
    `with counted as materialized (${countedSourcesSql(days)}),
     months as (select provider, provider_account_id as account, date_trunc('month', day)::date as month,
         sum(amount_usd) as amount, count(distinct day) as days from counted group by 1, 2, 3),
     others as (select d.provider, d.provider_account_id as account, date_trunc('month', d.day)::date as month, d.source_id,
         max(d.source_rank) as rank, max(d.source_fetched_at) as fetched_at, sum(d.amount_usd) as amount, count(distinct d.day) as days
       from billing_days d where ${days} and d.superseded_at is null and d.scope = ''
         and (d.provider, d.provider_account_id, d.day, d.source_id) not in (select provider, provider_account_id, day, source_id from counted)
       group by 1, 2, 3, 4),
     whole as (select m.provider, m.account, m.month, m.amount, o.amount as other, row_number() over (
         partition by m.provider, m.account, m.month order by o.rank desc, o.fetched_at desc, o.source_id desc) as place
       from months m join others o using (provider, account, month)
       where m.days = o.days and m.days = date_part('days', m.month + interval '1 month' - interval '1 day'))
     select provider, account as "accountId", to_char(month, 'YYYY-MM') as month,
       case when round(amount, 2) = round(other, 2) then 'exact'
         when abs(amount - other) <= ${CLOSE_SHARE} * greatest(abs(amount), abs(other)) then 'close' else 'contradicts' end as tie
     from whole where place = 1 order by 1, 2, 3`,
    [orgDb.orgId, window.provider, window.fromDay, window.toDay],
  );
}
