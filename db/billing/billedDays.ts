import { type BilledClass, type ChargeCategory, MONTH_REPORT } from '../../domain/billing/billedRow.js';
import { type BillingFormat, factsOfFormat, provisionalDaysOf } from '../../domain/billing/sources.js';
import type { Pico } from '../../domain/money.js';
import type { Provider } from '../../domain/providers.js';
import type { BilledCell, CoveredAccount, UsageCell } from '../../domain/reconciliation/matching/cells.js';
import type { OrgDb } from '../orgDb.js';
import { hourCountsSql, readHourCounts } from '../usage/hourCounts.js';
import { countedRowsSql, countedSourcesSql } from './billingRows.js';

interface DayScope {
  provider: Provider;
  day: string;
}

const ONE_DAY = `d.org_id = $1 and d.provider = $2 and d.day = $3`;

interface BilledCellRow {
  account: string;
  format: BillingFormat;
  line_item: string;
  model: string | null;
  token_class: BilledClass;
  service_tier: string;
  is_batch: boolean | null;
  long_context: boolean | null;
  region: string | null;
  observable: boolean;
  row_count: number;
  quantity: bigint | null;
  amount_usd: Pico;
  unconverted: boolean;
  list_amount_usd: Pico | null;
}

/** Money billed as usage on one day, of the sources that count, added up by meter. Work grows with the day's rows. */
export async function listBilledCells(orgDb: OrgDb, scope: DayScope): Promise<BilledCell[]> {
  const rows = await orgDb.rows<BilledCellRow>(
    `with counted as (${countedSourcesSql(`${ONE_DAY} and d.feed = 'cost' and d.charge_category = 'usage' and d.report <> '${MONTH_REPORT}'`)})
     select r.provider_account_id as account, r.format,
       case when r.model is null or not r.observable then r.line_item else '' end as line_item,
       r.model, r.token_class, r.service_tier, r.is_batch, r.long_context, r.region, r.observable, count(*)::bigint as row_count,
       case when bool_and(r.quantity is not null) then sum(r.quantity) end as quantity, coalesce(sum(r.amount_usd), 0) as amount_usd, r.amount_usd is null as unconverted,
       case when bool_and(r.list_amount_usd is not null) then sum(r.list_amount_usd) end as list_amount_usd
     from ${countedRowsSql()} r
     group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, r.amount_usd is null order by 1, 3, 4, 5, 6, 7, 8, 9`,
    [orgDb.orgId, scope.provider, scope.day],
    'day_billed_cells',
  );
  return rows.map((row) => ({
    accountId: row.account,
    lineItem: row.line_item,
    model: row.model,
    tokenClass: row.token_class,
    serviceTier: row.service_tier,
    isBatch: row.is_batch,
    longContext: row.long_context,
    region: row.region,
    observable: row.observable,
    rowCount: row.row_count,
    quantity: row.quantity,
    amountPico: row.amount_usd,
    listAmountPico: row.list_amount_usd,
    roundingPico: factsOfFormat(row.format).roundingPico,
    ...(row.unconverted ? { unconverted: true } : {}),
  }));
}

interface UsageCellRow {
  account: string;
  model: string | null;
  token_class: BilledClass;
  service_tier: string;
  is_batch: boolean | null;
  long_context: boolean | null;
  region: string | null;
  quantity: bigint;
}

const USAGE_KEYS = 'account, model, token_class, service_tier, is_batch, long_context, region';
/** The rows of a day's usage report that count. By bytes: a language's order would cost more than reading them. */
const USAGE_ROWS = `with counted as (${countedSourcesSql(`${ONE_DAY} and d.feed = 'usage'`)}),
reported as (
  select r.provider_account_id collate "C" as account, r.model collate "C" as model, r.token_class collate "C" as token_class,
    r.service_tier collate "C" as service_tier, r.is_batch, r.long_context, r.region collate "C" as region, r.quantity,
    case when r.period_end - r.period_start <= interval '1 hour' then r.period_start end as starts
  from ${countedRowsSql()} r
  where r.quantity is not null)`;

/** The provider's own usage report of one day, of the sources that count; by hour where the report is that fine. */
export async function listUsageCells(orgDb: OrgDb, scope: DayScope): Promise<UsageCell[]> {
  const rows = await orgDb.rows<UsageCellRow & { hour: bigint | null }>(
    `${USAGE_ROWS}
     select ${USAGE_KEYS}, date_trunc('hour', starts, 'UTC') as hour, sum(quantity) as quantity
     from reported group by ${USAGE_KEYS}, hour order by ${USAGE_KEYS}, hour`,
    [orgDb.orgId, scope.provider, scope.day],
    'day_usage_cells',
  );
  return rows.map((row) => fromUsageRow(row, row.hour));
}

/** The same with its hours added up: each cell with those of its hours that count something. */
export async function listUsageOfDay(orgDb: OrgDb, scope: DayScope): Promise<UsageCell[]> {
  const rows = await orgDb.rows<UsageCellRow & { hours: string | null }>(
    // Postgres takes the thousands of rows of a day for a dozen, and would sort them by seven texts. A number of a transaction has
    // no order, so with it in the group they are hashed.
    `${USAGE_ROWS},
     usage as materialized (
       select ${USAGE_KEYS}, sum(quantity) as quantity, ${hourCountsSql('starts', 'trim_scale(quantity)', 'starts is not null')} as hours
       from reported group by ${USAGE_KEYS}, null::xid)
     select ${USAGE_KEYS}, quantity, hours from usage order by ${USAGE_KEYS}`,
    [orgDb.orgId, scope.provider, scope.day],
    'day_usage',
  );
  return rows.map((row) => ({ ...fromUsageRow(row, null), hours: readHourCounts(row.hours) }));
}

function fromUsageRow(row: UsageCellRow, hourMicros: bigint | null): UsageCell {
  return {
    accountId: row.account,
    model: row.model,
    tokenClass: row.token_class,
    serviceTier: row.service_tier,
    isBatch: row.is_batch,
    longContext: row.long_context,
    region: row.region,
    quantity: row.quantity,
    hourMicros,
  };
}

/** An account that a bill covers on a day, with what tells whether the bill has changed since. */
export interface BilledAccount extends CoveredAccount {
  /** Names every source that counts for the day: another text means that the day was restated. */
  countedSources: string;
}

interface BilledAccountRow {
  account: string;
  formats: BillingFormat[];
  is_final: boolean;
  told_at: bigint;
  counted_sources: string;
}

/** Text that names the sources in force of one account's day, over rows of `counted`. */
export const COUNTED_SOURCES_TEXT = `md5(string_agg(feed || '/' || report || '/' || charge_category || '=' || source_id, ',' order by feed, report, charge_category, source_id))`;

/** Whether an entry of `counted` is the bill of a day's usage: neither another category nor what tells a month alone. */
export const IS_DAILY_USAGE = `feed = 'cost' and charge_category = 'usage' and report <> '${MONTH_REPORT}'`;

/** Adds the format of each source to `counted`. By lookups, whatever is known of the tables (docs/decisions/0042). */
export const JOIN_FORMATS = `cross join lateral (
       select format from billing_sources where org_id = $1 and id = counted.source_id offset 0) source`;

/** SQL of a BilledAccount over `counted` with its formats: of groups that have usage, since they are `having bool_or(..)`. */
export const BILLED_ACCOUNT = `provider_account_id as account, ${COUNTED_SOURCES_TEXT} as counted_sources,
       array_agg(format) filter (where ${IS_DAILY_USAGE}) as formats,
       bool_and(coalesce(is_final, false)) filter (where ${IS_DAILY_USAGE}) as is_final,
       min(told_at) filter (where ${IS_DAILY_USAGE}) as told_at`;

/** The accounts whose cost feed covers the day. */
export async function listBilledAccounts(orgDb: OrgDb, scope: DayScope): Promise<BilledAccount[]> {
  const rows = await orgDb.rows<BilledAccountRow>(
    `with counted as (${countedSourcesSql(ONE_DAY)})
     select ${BILLED_ACCOUNT} from counted ${JOIN_FORMATS} group by 1 having bool_or(${IS_DAILY_USAGE}) order by 1`,
    [orgDb.orgId, scope.provider, scope.day],
    'day_billed_accounts',
  );
  return rows.map((row) => ({
    accountId: row.account,
    // When the provider last said so, of the copy that was told longest ago: that is what can still be restated.
    fetchedAtMicros: row.told_at,
    provisionalDays: provisionalDaysOf(row.formats, row.is_final),
    countedSources: row.counted_sources,
  }));
}

/** Provider-days with a bill in a half-open window of days, in the order in which a run takes them. */
export async function listBilledProviderDays(
  orgDb: OrgDb,
  window: { provider: string | null; fromDay: string; toDay: string },
): Promise<DayScope[]> {
  return orgDb.rows<DayScope>(
    `select distinct provider, day from billing_days
     where org_id = $1 and ($2::text is null or provider = $2) and day >= $3 and day < $4 and feed = 'cost' and report <> '${MONTH_REPORT}'
     order by provider, day`,
    [orgDb.orgId, window.provider, window.fromDay, window.toDay],
  );
}

/** What an account was billed on a day in one category, of the sources that count. */
export interface BilledTotal {
  provider: string;
  accountId: string;
  day: string;
  chargeCategory: ChargeCategory;
  amountPico: Pico;
}

/** Billed totals by account, day and category in a half-open window of days. */
export async function listBilledTotals(
  orgDb: OrgDb,
  window: { provider: string | null; fromDay: string; toDay: string },
): Promise<BilledTotal[]> {
  const rows = await orgDb.rows<{
    provider: string;
    account: string;
    day: string;
    charge_category: ChargeCategory;
    amount_usd: Pico;
  }>(
    `select provider, provider_account_id as account, day, charge_category, sum(amount_usd) as amount_usd
     from (${countedSourcesSql(`d.org_id = $1 and ($2::text is null or d.provider = $2) and d.day >= $3 and d.day < $4 and d.feed = 'cost'`)}) counted
     group by 1, 2, 3, 4 order by 1, 3, 2, 4`,
    [orgDb.orgId, window.provider, window.fromDay, window.toDay],
  );
  return rows.map((row) => ({
    provider: row.provider,
    accountId: row.account,
    day: row.day,
    chargeCategory: row.charge_category,
    amountPico: row.amount_usd,
  }));
}
