import {
  type BilledRow,
  type ChargeCategory,
  type Feed,
  MONTH_REPORT,
} from '../../domain/billing/billedRow.js';
import { LATE_REPORTS } from '../../domain/billing/formats/cells.js';
import { BILLING_FORMATS, factsOfFormat } from '../../domain/billing/sources.js';
import { decimalFromPico, type Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { Provider } from '../../domain/providers.js';
import type { OrgDb } from '../orgDb.js';
import { plainArray, textArray } from '../pgArray.js';

type Column = readonly [
  name: string,
  type: string,
  quoted: boolean,
  of: (row: BilledRow) => string | boolean | null,
];

const decimal = (value: bigint | null) => (value === null ? null : decimalFromPico(value));

/** The columns that come from the file, in the order of the statement's parameters. */
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

/**
 * Stores rows of one source; the first gets the number `firstRowNo`. Every row must name its account. Rows that an
 * attempt on its last legs has stored meanwhile are the same rows.
 */
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

/** Removes the rows of an import that is read anew, or of which nothing is kept. */
export async function deleteBillingRows(orgDb: OrgDb, sourceId: string): Promise<void> {
  await orgDb.run('delete from billing_rows where org_id = $1 and source_id = $2', [orgDb.orgId, sourceId]);
}

/** A day that a source covers in one category, with what it sums to. */
export interface BillingDay {
  accountId: string;
  day: string;
  feed: Feed;
  report: string;
  chargeCategory: ChargeCategory;
  rowCount: number;
  /** Of the rows that have one. */
  amountPico: Pico;
  /** Rows in a currency that nobody can convert. */
  unconvertedRows: number;
  /** As the bill itself says; null where it does not. */
  isFinal: boolean | null;
}

/** Stores what a source covers, each day with the rank that it has among the copies of that day. */
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

/**
 * What is told of a month counts where nothing of its category is told of its days: an invoice and the days that it sums up
 * would be the bill twice.
 */
const MONTH_STANDS_ALONE = `(d.report <> '${MONTH_REPORT}' or not exists (select from billing_days daily
      where daily.org_id = d.org_id and daily.provider = d.provider and daily.day >= d.day and daily.day < d.day + interval '1 month'
        and daily.provider_account_id = d.provider_account_id and daily.feed = 'cost' and daily.report <> '${MONTH_REPORT}'
        and daily.charge_category = d.charge_category and daily.superseded_at is null))`;

/**
 * SQL: whether a copy `x` of a day's own bill, in the format `format`, lacks what a later invoice (its `report`) has of that
 * day. The bill of one period always does. Whatever tells what a day cost lacks it only if it was told before the
 * invoice's month began.
 */
export const lacksLateCharge = (x: string, format: string, report: string) =>
  `(${format} = any('{${PERIOD_FORMATS.join(',')}}') or coalesce(${x}.confirmed_at, ${x}.source_fetched_at) < to_date(substr(${report}, 9), 'YYYYMM')::timestamp at time zone 'UTC')`;

const PERIOD_FORMATS = BILLING_FORMATS.filter((format) => factsOfFormat(format).isOfOnePeriod);

/** A late charge adds to its day where the copy that counts of the day itself lacks it: else it would count twice. */
const LATE_ADDS = `(d.report not like '${LATE_REPORTS}' or coalesce((select ${lacksLateCharge('own', 's.format', 'd.report')}
      from billing_days own join billing_sources s on s.org_id = own.org_id and s.id = own.source_id
      where own.org_id = d.org_id and own.provider = d.provider and own.day = d.day and own.provider_account_id = d.provider_account_id
        and own.feed = d.feed and own.report = '' and own.charge_category = d.charge_category and own.superseded_at is null
      order by own.source_rank desc, coalesce(own.confirmed_at, own.source_fetched_at) desc, own.source_id desc limit 1), true))`;

/** The columns by which a row of a bill belongs to an entry of `counted`. */
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
 * SQL: whether the row `row` of a bill is one of the days that `counted` lists (`countedSourcesSql`). Inside an expression IN is
 * a hash table with and without statistics; as a join it would compare every row with every entry (docs/decisions/0042).
 */
export const isCountedRow = (row: string) =>
  `coalesce((${COUNTED_KEY.map((name) => `${row}.${name}`).join(', ')}) in (select ${COUNTED_KEY.join(', ')} from counted), false)`;

/**
 * SQL of the rows of the days that `counted` lists, each with the format of its source; organization $1. `where` narrows
 * billing_rows. OFFSET 0 makes each source's day one lookup in an index, with and without statistics.
 */
export const countedRowsSql = (where = 'true') => `(
  select r.*, c.format
  from (select d.*, s.format from (select distinct provider, day, source_id, feed from counted) d
    cross join lateral (select format from billing_sources where org_id = $1 and id = d.source_id offset 0) s) c
  cross join lateral (select * from billing_rows
    where org_id = $1 and provider = c.provider and day = c.day and source_id = c.source_id and feed = c.feed and ${where} offset 0) r
  where ${isCountedRow('r')})`;

/**
 * SQL of the sources that count: for each (account, day, feed, report, category) the copy of the highest rank, then the
 * one that was last told (docs/decisions/0011). Where that is a copy of a part of the account, every part counts by its own
 * best copy, and copies of the whole account are cross-checks. Copies that a newer fetch replaced count nowhere.
 * `where` narrows billing_days, which is named d.
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
