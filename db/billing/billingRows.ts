import {
  type BilledRow,
  type ChargeCategory,
  type Feed,
  MONTH_REPORT,
} from '../../domain/billing/billedRow.js';
import { LATE_REPORTS } from '../../domain/billing/formats/tableFormat.js';
import {
  BILLING_FORMATS,
  type BillingFormat,
  factsOfFormat,
  isTierNamed,
  provisionalDaysOf,
} from '../../domain/billing/sources.js';
import { decimalFromPico, type Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { Provider } from '../../domain/providers.js';
import type { BilledCell, CoveredAccount, UsageCell } from '../../domain/reconciliation/matching/cells.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';
import { hourCountsSql, readHourCounts } from '../usage/hourCounts.js';

type Column = readonly [
  name: string,
  type: string,
  quoted: boolean,
  of: (row: BilledRow) => string | boolean | null,
];

const decimal = (value: bigint | null) => (value === null ? null : decimalFromPico(value));

const COLUMNS: readonly Column[] = [
  ['feed', 'text', true, (row) => row.feed],
  ['report', 'text', true, (row) => row.report],
  ['provider_account_id', 'text', true, (row) => row.account],
  ['day', 'date', false, (row) => row.day],
  ['period_start', 'timestamptz', true, (row) => isoFromMicros(row.periodStartMicros)],
  ['period_end', 'timestamptz', true, (row) => isoFromMicros(row.periodEndMicros)],
  ['charge_category', 'text', true, (row) => row.chargeCategory],
  ['line_item', 'text', true, (row) => row.lineItem],
  ['observable', 'bool', false, (row) => row.observable],
  ['model', 'text', true, (row) => row.model],
  ['token_class', 'text', true, (row) => row.tokenClass],
  ['service_tier', 'text', true, (row) => row.serviceTier],
  ['is_batch', 'bool', false, (row) => row.isBatch],
  ['long_context', 'bool', false, (row) => row.longContext],
  ['region', 'text', true, (row) => row.region],
  ['project', 'text', true, (row) => row.project],
  ['api_key', 'text', true, (row) => row.apiKey],
  ['quantity', 'numeric', false, (row) => decimal(row.quantity)],
  ['quantity_unit', 'text', true, (row) => row.quantityUnit],
  ['amount_usd', 'numeric', false, (row) => decimal(row.amountPico)],
  ['list_amount_usd', 'numeric', false, (row) => decimal(row.listPico)],
  ['contracted_amount_usd', 'numeric', false, (row) => decimal(row.contractedPico)],
  ['net_amount_usd', 'numeric', false, (row) => decimal(row.netPico)],
  ['currency', 'text', true, (row) => row.currency],
  ['original_amount', 'numeric', false, (row) => decimal(row.originalAmount)],
];

const NAMES = COLUMNS.map(([name]) => name).join(', ');
const INSERT_ROWS = `
insert into billing_rows (org_id, source_id, provider, row_no, ${NAMES})
select $1::uuid, $2::uuid, $3::text, $4::bigint + ordinality, ${NAMES}
from unnest(${COLUMNS.map(([, type], at) => `$${at + 5}::${type}[]`).join(', ')}) with ordinality as t(${NAMES}, ordinality)
on conflict do nothing`;

/** Stores rows of one source from number `firstRowNo` on. A repeated attempt stores the same rows again. */
export async function insertBillingRows(
  orgDb: OrgDb,
  source: { id: string; provider: Provider; firstRowNo: number },
  rows: readonly BilledRow[],
): Promise<void> {
  if (rows.length === 0) return;
  const columns = COLUMNS.map(([, , quoted, of]) => {
    const values = rows.map(of);
    return quoted ? textArray(values as (string | null)[]) : plainArray(values);
  });
  await orgDb.run(INSERT_ROWS, [orgDb.orgId, source.id, source.provider, source.firstRowNo - 1, ...columns]);
}

export async function deleteBillingRows(orgDb: OrgDb, sourceId: string): Promise<void> {
  await orgDb.run('delete from billing_rows where org_id = $1 and source_id = $2', [orgDb.orgId, sourceId]);
}

/** A day that a source covers in one category, with its sums. */
export interface BillingDay {
  accountId: string;
  day: string;
  feed: Feed;
  report: string;
  chargeCategory: ChargeCategory;
  rowCount: number;
  amountPico: Pico;
  /** Rows in a currency without an exchange rate. */
  unconvertedRows: number;
  /** As the bill states it; null: it does not state it. */
  isFinal: boolean | null;
}

/** Stores the days that a source covers, each with its rank among the day's copies. */
export async function insertBillingDays(
  orgDb: OrgDb,
  source: { id: string; provider: Provider; fetchedAtMicros: bigint },
  days: readonly (BillingDay & { rank: number })[],
): Promise<void> {
  if (days.length === 0) return;
  await orgDb.run(
    `insert into billing_days (org_id, source_id, provider, source_fetched_at, source_rank, provider_account_id, day, feed, report, charge_category,
       row_count, amount_usd, unconverted_rows, is_final)
     select $1::uuid, $2::uuid, $3::text, $4::timestamptz, d.*
     from unnest($5::smallint[], $6::text[], $7::date[], $8::text[], $9::text[], $10::text[], $11::bigint[], $12::numeric[], $13::bigint[], $14::bool[]) d`,
    [
      orgDb.orgId,
      source.id,
      source.provider,
      isoFromMicros(source.fetchedAtMicros),
      plainArray(days.map((day) => day.rank)),
      textArray(days.map((day) => day.accountId)),
      plainArray(days.map((day) => day.day)),
      textArray(days.map((day) => day.feed)),
      textArray(days.map((day) => day.report)),
      textArray(days.map((day) => day.chargeCategory)),
      plainArray(days.map((day) => day.rowCount)),
      plainArray(days.map((day) => decimalFromPico(day.amountPico))),
      plainArray(days.map((day) => day.unconvertedRows)),
      plainArray(days.map((day) => day.isFinal)),
    ],
  );
}

/** A month's total counts where its category has no days; else an invoice and its days would bill twice. */
const MONTH_STANDS_ALONE = `(d.report <> '${MONTH_REPORT}' or not exists (select from billing_days daily
      where daily.org_id = d.org_id and daily.provider = d.provider and daily.day >= d.day and daily.day < d.day + interval '1 month'
        and daily.provider_account_id = d.provider_account_id and daily.feed = 'cost' and daily.report <> '${MONTH_REPORT}'
        and daily.charge_category = d.charge_category and daily.superseded_at is null))`;

/**
 * SQL: whether a copy `x` of a day's bill, in the format `format`, lacks the later charges of that day in an invoice
 * (its `report`). The bill of one period always lacks them. Any other copy lacks them only if it was read before the
 * invoice's month began.
 */
export const lacksLateCharge = (x: string, format: string, report: string) =>
  `(${format} = any('{${PERIOD_FORMATS.join(',')}}') or coalesce(${x}.confirmed_at, ${x}.source_fetched_at) < to_date(substr(${report}, 9), 'YYYYMM')::timestamp at time zone 'UTC')`;

const PERIOD_FORMATS = BILLING_FORMATS.filter((format) => factsOfFormat(format).isOfOnePeriod);

/** A late charge adds to its day only if the day's counted copy lacks it; else it would count twice. */
const LATE_ADDS = `(d.report not like '${LATE_REPORTS}' or coalesce((select ${lacksLateCharge('own', 's.format', 'd.report')}
      from billing_days own join billing_sources s on s.org_id = own.org_id and s.id = own.source_id
      where own.org_id = d.org_id and own.provider = d.provider and own.day = d.day and own.provider_account_id = d.provider_account_id
        and own.feed = d.feed and own.report = '' and own.charge_category = d.charge_category and own.superseded_at is null
      order by own.source_rank desc, coalesce(own.confirmed_at, own.source_fetched_at) desc, own.source_id desc limit 1), true))`;

/** The columns that join a row of a bill to an entry of `counted`. */
const COUNTED_KEY = [
  'provider',
  'day',
  'source_id',
  'provider_account_id',
  'feed',
  'report',
  'charge_category',
];

/**
 * SQL: whether the row `row` of a bill belongs to a day that `counted` lists (`countedSourcesSql`). Inside an
 * expression IN is a hash table with and without statistics; a join would compare every row with every entry
 * (docs/decisions/0042).
 */
export const isCountedRow = (row: string) =>
  `coalesce((${COUNTED_KEY.map((name) => `${row}.${name}`).join(', ')}) in (select ${COUNTED_KEY.join(', ')} from counted), false)`;

/**
 * SQL of the rows of the days that `counted` lists, each with the format of its source; organization $1. `where`
 * narrows billing_rows. OFFSET 0 makes each source's day one index lookup, with and without statistics.
 */
export const countedRowsSql = (where = 'true') => `(
  select r.*, c.format
  from (select d.*, s.format from (select distinct provider, day, source_id, feed from counted) d
    cross join lateral (select format from billing_sources where org_id = $1 and id = d.source_id offset 0) s) c
  cross join lateral (select * from billing_rows
    where org_id = $1 and provider = c.provider and day = c.day and source_id = c.source_id and feed = c.feed and ${where} offset 0) r
  where ${isCountedRow('r')})`;

/**
 * SQL of the counted copies: for each (account, day, feed, report, category) the copy of the highest rank, then the
 * latest (docs/decisions/0011). Where that copy covers a part of the account, the best copy of every part counts, and
 * copies of the whole account only serve to cross-check. Copies that a newer fetch replaced never count. `where`
 * narrows billing_days, which is named d.
 */
export function countedSourcesSql(where: string): string {
  return `select provider, day, provider_account_id, feed, report, charge_category, source_id, source_fetched_at, told_at, scope, amount_usd, is_final, row_count, unconverted_rows
  from (select d.*, coalesce(d.confirmed_at, d.source_fetched_at) as told_at, row_number() over copies as place,
      array_agg(d.scope) over (copies rows between unbounded preceding and unbounded following) as scopes
    from billing_days d where ${where} and d.superseded_at is null and ${MONTH_STANDS_ALONE} and ${LATE_ADDS}
    window copies as (partition by d.provider, d.day, d.provider_account_id, d.feed, d.report, d.charge_category
      order by d.source_rank desc, coalesce(d.confirmed_at, d.source_fetched_at) desc, d.source_id desc)) ranked
  where case when scopes[1] = '' then place = 1 else place = any(disjoint_scopes(scopes)) end`;
}

interface DayScope {
  provider: Provider;
  day: string;
}

const ONE_DAY = `d.org_id = $1 and d.provider = $2 and d.day = $3`;

/** Dollars billed as usage on one day in the counted copies, summed by meter. Time grows with the day's rows. */
export async function listBilledCells(orgDb: OrgDb, scope: DayScope): Promise<BilledCell[]> {
  const rows = await orgDb.rows<
    Omit<BilledCell, 'roundingPico' | 'unconverted'> & { format: BillingFormat; unconverted: boolean }
  >(
    `with counted as (${countedSourcesSql(`${ONE_DAY} and d.feed = 'cost' and d.charge_category = 'usage' and d.report <> '${MONTH_REPORT}'`)})
     select r.provider_account_id as "accountId", r.format,
       case when r.model is null or not r.observable then r.line_item else '' end as "lineItem", r.model, r.token_class as "tokenClass",
       r.service_tier as "serviceTier", r.is_batch as "isBatch", r.long_context as "longContext", r.region, r.observable,
       count(*)::bigint as "rowCount", case when bool_and(r.quantity is not null) then sum(r.quantity) end as quantity,
       coalesce(sum(r.amount_usd), 0) as "amountPico", r.amount_usd is null as unconverted,
       case when bool_and(r.list_amount_usd is not null) then sum(r.list_amount_usd) end as "listAmountPico"
     from ${countedRowsSql()} r
     group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, r.amount_usd is null order by 1, 3, 4, 5, 6, 7, 8, 9`,
    [orgDb.orgId, scope.provider, scope.day],
    'day_billed_cells',
  );
  return rows.map(({ format, unconverted, ...cell }) => ({
    ...cell,
    roundingPico: factsOfFormat(format).roundingPico,
    ...(isTierNamed(format, cell.longContext) ? { tierNamed: true } : {}),
    ...(unconverted ? { unconverted } : {}),
  }));
}

const USAGE_KEYS = '"accountId", model, "tokenClass", "serviceTier", "isBatch", "longContext", region';
/** The counted rows of a day's usage report, in byte order: a language's order would cost more than reading them. */
const USAGE_ROWS = `with counted as (${countedSourcesSql(`${ONE_DAY} and d.feed = 'usage'`)}),
reported as (
  select r.provider_account_id collate "C" as "accountId", r.model collate "C" as model, r.token_class collate "C" as "tokenClass",
    r.service_tier collate "C" as "serviceTier", r.is_batch as "isBatch", r.long_context as "longContext", r.region collate "C" as region, r.quantity,
    case when r.period_end - r.period_start <= interval '1 hour' then r.period_start end as starts
  from ${countedRowsSql()} r
  where r.quantity is not null)`;

/** The provider's usage report of one day, from the counted copies; by hour where the report is hourly. */
export async function listUsageCells(orgDb: OrgDb, scope: DayScope): Promise<UsageCell[]> {
  return orgDb.rows<UsageCell>(
    `${USAGE_ROWS}
     select ${USAGE_KEYS}, date_trunc('hour', starts, 'UTC') as "hourMicros", sum(quantity) as quantity
     from reported group by ${USAGE_KEYS}, "hourMicros" order by ${USAGE_KEYS}, "hourMicros"`,
    [orgDb.orgId, scope.provider, scope.day],
    'day_usage_cells',
  );
}

/** The same report with its hours summed: each cell with its hours that have usage. */
export async function listUsageOfDay(orgDb: OrgDb, scope: DayScope): Promise<UsageCell[]> {
  const rows = await orgDb.rows<Omit<UsageCell, 'hourMicros' | 'hours'> & { hours: string | null }>(
    // Postgres estimates a dozen rows for the thousands of a day, and would sort them by seven texts. A transaction
    // number has no sort order, so grouping by it too makes Postgres hash them.
    `${USAGE_ROWS},
     usage as materialized (
       select ${USAGE_KEYS}, sum(quantity) as quantity, ${hourCountsSql('starts', 'trim_scale(quantity)', 'starts is not null')} as hours
       from reported group by ${USAGE_KEYS}, null::xid)
     select ${USAGE_KEYS}, quantity, hours from usage order by ${USAGE_KEYS}`,
    [orgDb.orgId, scope.provider, scope.day],
    'day_usage',
  );
  return rows.map((row) => ({ ...row, hourMicros: null, hours: readHourCounts(row.hours) }));
}

/** An account that a bill covers on a day, with a digest that shows whether the bill has changed since. */
export interface BilledAccount extends CoveredAccount {
  /** Digest of the day's counted copies: another text means that the day was restated. */
  countedSources: string;
}

export type BilledAccountRow = Omit<BilledAccount, 'provisionalDays'> & {
  formats: BillingFormat[];
  isFinal: boolean;
};

/** `day`: the day of the row, `YYYY-MM-DD`. */
export function billedAccountOf<Row extends BilledAccountRow>(
  { formats, isFinal, ...account }: Row,
  day: string,
) {
  return { ...account, provisionalDays: provisionalDaysOf(formats, isFinal, day) };
}

/** Text that identifies the counted copies of one account's day, over rows of `counted`. */
export const COUNTED_SOURCES_TEXT = `md5(string_agg(feed || '/' || report || '/' || charge_category || '=' || source_id, ',' order by feed, report, charge_category, source_id))`;

/** Whether an entry of `counted` is a day's usage charges: no other category, and no total of a whole month. */
export const IS_DAILY_USAGE = `feed = 'cost' and charge_category = 'usage' and report <> '${MONTH_REPORT}'`;

/** Adds the format of each source to `counted`, by lookups with and without statistics (docs/decisions/0042). */
export const JOIN_FORMATS = `cross join lateral (
       select format from billing_sources where org_id = $1 and id = counted.source_id offset 0) source`;

/** SQL of a BilledAccount over `counted` with its formats, for groups with usage: they are `having bool_or(..)`. */
export const BILLED_ACCOUNT = `provider_account_id as "accountId", ${COUNTED_SOURCES_TEXT} as "countedSources",
       array_agg(format) filter (where ${IS_DAILY_USAGE}) as formats,
       bool_and(coalesce(is_final, false)) filter (where ${IS_DAILY_USAGE}) as "isFinal",
       min(told_at) filter (where ${IS_DAILY_USAGE}) as "fetchedAtMicros"`;

export async function listBilledAccounts(orgDb: OrgDb, scope: DayScope): Promise<BilledAccount[]> {
  const rows = await orgDb.rows<BilledAccountRow>(
    `with counted as (${countedSourcesSql(ONE_DAY)})
     select ${BILLED_ACCOUNT} from counted ${JOIN_FORMATS} group by 1 having bool_or(${IS_DAILY_USAGE}) order by 1`,
    [orgDb.orgId, scope.provider, scope.day],
    'day_billed_accounts',
  );
  return rows.map((row) => billedAccountOf(row, scope.day));
}

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

/** The billed sum of an account's day in one category, from the counted copies. */
export interface BilledTotal {
  provider: string;
  accountId: string;
  day: string;
  chargeCategory: ChargeCategory;
  amountPico: Pico;
}

export async function listBilledTotals(
  orgDb: OrgDb,
  window: { provider: string | null; fromDay: string; toDay: string },
): Promise<BilledTotal[]> {
  return orgDb.rows<BilledTotal>(
    `select provider, provider_account_id as "accountId", day, charge_category as "chargeCategory", sum(amount_usd) as "amountPico"
     from (${countedSourcesSql(`d.org_id = $1 and ($2::text is null or d.provider = $2) and d.day >= $3 and d.day < $4 and d.feed = 'cost'`)}) counted
     group by 1, 2, 3, 4 order by 1, 3, 2, 4`,
    [orgDb.orgId, window.provider, window.fromDay, window.toDay],
  );
}
