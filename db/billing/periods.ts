import type { ChargeCategory } from '../../domain/billing/billedRow.js';
import {
  type ClosedMonth,
  firstDayOf,
  followingMonth,
  type Month,
  monthOf,
} from '../../domain/billing/periods.js';
import type { Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import { column, defineEntity, selectEntities } from '../entity.js';
import type { OrgDb, SqlValue, SystemDb } from '../orgDb.js';
import { type Books, readBooks, type UsageMeasures, type UsageQuery, usageSql } from '../usage/usage.js';
import { MEASURE_COLUMNS, MEASURE_NAMES, MEASURES_AS_PROPERTIES, sumsOfMeasures } from '../usage/usageLog.js';
import { countedSourcesSql } from './billingRows.js';

export interface PeriodClosing extends ClosedMonth {
  /** The key that closed it; null: unknown. */
  closedBy: string | null;
  /** The requested month: the first closing also closes all earlier months. */
  closedWith: Month;
}

export interface FrozenTotals {
  own: Map<string, UsageMeasures>;
  booked: Map<string, UsageMeasures>;
}

const CLOSING = defineEntity<PeriodClosing>('period_closings', {
  month: column("to_char(month, 'YYYY-MM')"),
  endsAtMicros: column(),
  closedAtMicros: column(),
  closedBy: column(),
  closedWith: column("to_char(closed_with, 'YYYY-MM')"),
});

/** Every closed month, oldest first. Months before the first of them are closed with it. */
export function listPeriodClosings(orgDb: OrgDb): Promise<PeriodClosing[]> {
  return selectEntities(orgDb, CLOSING, {}, 'order by period_closings.month');
}

/** The closing of a month; for months before the first closing, that one. undefined: the month is open. */
export async function findPeriodClosing(orgDb: OrgDb, month: Month): Promise<PeriodClosing | undefined> {
  // Closed months are consecutive, so a month with only later closings lies before the first one.
  const [closing] = await orgDb.rows<PeriodClosing>(
    `select ${CLOSING.columns} from period_closings c where org_id = $1 and month >= $2::date order by c.month limit 1`,
    [orgDb.orgId, firstDayOf(month)],
  );
  return closing && { ...closing, month };
}

/** The totals that a month was closed with; empty for an open month, or one without data. */
export async function findFrozenTotals(orgDb: OrgDb, month: Month): Promise<FrozenTotals> {
  const rows = await orgDb.rows<UsageMeasures & { part: 'own' | 'booked'; provider: string }>(
    `select part, provider, ${MEASURES_AS_PROPERTIES} from period_totals where org_id = $1 and month = $2::date order by provider`,
    [orgDb.orgId, firstDayOf(month)],
  );
  const totals: FrozenTotals = { own: new Map(), booked: new Map() };
  for (const { part, provider, ...measures } of rows) totals[part].set(provider, measures);
  return totals;
}

/** Closed sums by month: the month's own calls and the changes that were booked in it. */
export async function listFrozenSums(
  orgDb: OrgDb,
): Promise<Map<Month, { own: UsageMeasures; booked: UsageMeasures }>> {
  const rows = await orgDb.rows<UsageMeasures & { month: string; part: 'own' | 'booked' }>(
    `select to_char(c.month, 'YYYY-MM') as month, p.part, ${sumsOfMeasures((name) => `t.${name}`)} from period_closings c cross join (values ('own'), ('booked')) p (part)
     left join period_totals t on t.org_id = c.org_id and t.month = c.month and t.part = p.part
     where c.org_id = $1 group by c.month, p.part`,
    [orgDb.orgId],
  );
  const found = new Map<Month, { own: UsageMeasures; booked: UsageMeasures }>();
  for (const { month, part, ...sum } of rows)
    found.set(month, { ...(found.get(month) ?? { own: sum, booked: sum }), [part]: sum });
  return found;
}

/** The month of the organization's first call or billed day; undefined: it has neither. */
export function findFirstMonth(orgDb: OrgDb): Promise<Month | undefined> {
  return findFirstMonthOf(orgDb, orgDb.orgId);
}

/** `findFirstMonth` on the handle of maintenance. */
export async function findFirstMonthOf(
  handle: Pick<SystemDb, 'rows'>,
  orgId: string,
): Promise<Month | undefined> {
  const [row] = await handle.rows<{ first: bigint | null }>(FIRST_TIME, [orgId]);
  return row?.first == null ? undefined : monthOf(row.first);
}

/**
 * The organization's first time with a call or a bill. The totals also include calls that were removed for their age.
 */
const FIRST_TIME = `
select least(
  (select min(timestamp) from events where org_id = $1),
  (select min(bucket) from usage_rollups where org_id = $1 and dimension = 'provider'),
  (select min(day)::timestamp at time zone 'UTC' from billing_days where org_id = $1)) as first`;

/** Locks the organization's totals: folds and closings exclude each other. */
export async function lockBooks(system: SystemDb, orgId: string): Promise<Books> {
  await system.run('insert into rollup_state (org_id, folded_xid) values ($1, 0) on conflict do nothing', [
    orgId,
  ]);
  const [books] = await system.rows<Books>(
    `select folded_xid as "foldedXid", projects_xid as "projectsXid", closed_until as "closedUntilMicros"
     from rollup_state where org_id = $1 for update`,
    [orgId],
  );
  if (!books) throw new Error('the state row was just made');
  return books;
}

export async function noteClosedUntil(system: SystemDb, orgId: string, untilMicros: bigint): Promise<void> {
  await system.run('update rollup_state set closed_until = $2::timestamptz where org_id = $1', [
    orgId,
    isoFromMicros(untilMicros),
  ]);
}

/** Stores the transaction's snapshot as the state in which these months were closed. */
export async function insertClosings(
  system: SystemDb,
  orgId: string,
  months: readonly Month[],
  { month, closedBy }: { month: Month; closedBy: string | null },
): Promise<void> {
  await system.run(
    `insert into period_closings (org_id, month, ends_at, snapshot, closed_with, closed_by)
     select $1, month, (month + interval '1 month') at time zone 'UTC', pg_current_snapshot(), $3::date, $4
     from unnest($2::date[]) as months (month)`,
    [orgId, months.map(firstDayOf), firstDayOf(month), closedBy],
  );
}

/** Stores the sums of a query as part of a month's totals. */
export async function insertPeriodTotals(
  system: SystemDb,
  orgId: string,
  { month, part, query, books }: { month: Month; part: 'own' | 'booked'; query: UsageQuery; books: Books },
): Promise<void> {
  const { sql, values } = usageSql(orgId, query, books);
  const measures = MEASURE_NAMES.join(', ');
  await system.run(
    `insert into period_totals (org_id, month, part, provider, ${measures})
     select $1, $${values.length + 1}::date, $${values.length + 2}, key, ${MEASURE_COLUMNS} from (${sql}) sums where not "isTotal"`,
    [...values, firstDayOf(month), part],
  );
}

/** Bills of closed months: the counted copies at the closing, and their later restatements. */

/** A day's bill in the copies that counted when its month was closed. */
export interface FrozenBill {
  provider: string;
  accountId: string;
  chargeCategory: ChargeCategory;
  /** `YYYY-MM-DD` */
  day: string;
  amountPico: Pico;
}

/** A difference between a closed month's present bill and its closed one. */
export interface BilledAdjustment extends FrozenBill {
  month: Month;
  /** UTC day on which the newer copy arrived, never in a month that was closed without it. */
  bookedOn: string;
  /** false: the month in which it is booked is open, and a still newer copy would replace it. */
  isSettled: boolean;
}

const KEYS = 'provider, provider_account_id, charge_category, day';

const BILLED = (where: string) => `
  select ${KEYS}, sum(amount_usd) as amount_usd, max(source_fetched_at) as came_at
  from (${countedSourcesSql(`d.org_id = $1 and d.feed = 'cost' and ${where}`)}) counted group by ${KEYS}`;

/**
 * Differences of closed days' bills beyond the closed and settled ones. `days` narrows both sides, because Postgres
 * does not infer it.
 */
const openDifferences = (days: string) => `
  select ${KEYS}, coalesce(b.amount_usd, 0) - coalesce(k.amount_usd, 0) as amount_usd,
    greatest(coalesce((b.came_at at time zone 'UTC')::date, (now() at time zone 'UTC')::date), $2::date) as booked_on
  from (${BILLED(`d.day < $2::date and ${days}`)}) b full join (
    select ${KEYS}, sum(amount_usd) as amount_usd from (
      select ${KEYS}, amount_usd from period_billed where org_id = $1 and ${days}
      union all select ${KEYS}, amount_usd from billed_adjustments where org_id = $1 and ${days}) settled group by ${KEYS}) k using (${KEYS})
  where coalesce(b.amount_usd, 0) <> coalesce(k.amount_usd, 0)`;

/** Freezes the bills of the months being closed and settles earlier differences booked before their end. */
export async function freezeBills(
  system: SystemDb,
  orgId: string,
  months: { first: Month; last: Month },
  closedUntil: bigint | null,
): Promise<void> {
  const fromDay = firstDayOf(months.first);
  const toDay = firstDayOf(followingMonth(months.last));
  await system.run(
    `insert into period_billed (org_id, month, ${KEYS}, amount_usd)
     select $1, date_trunc('month', day)::date, ${KEYS}, amount_usd
     from (${BILLED('d.day >= $2::date and d.day < $3::date')}) billed`,
    [orgId, fromDay, toDay],
  );
  if (closedUntil === null) return;
  await system.run(
    `insert into billed_adjustments (org_id, settled_with, ${KEYS}, booked_on, amount_usd)
     select $1, $3::date, ${KEYS}, booked_on, amount_usd from (${openDifferences('true')}) open where booked_on < $4::date`,
    [orgId, isoFromMicros(closedUntil).slice(0, 10), firstDayOf(months.last), toDay],
  );
}

const FROZEN_BILL = `provider, provider_account_id as "accountId", charge_category as "chargeCategory", day, amount_usd as "amountPico"`;

export async function listFrozenBills(orgDb: OrgDb, month: Month): Promise<FrozenBill[]> {
  return orgDb.rows<FrozenBill>(
    `select ${FROZEN_BILL} from period_billed where org_id = $1 and month = $2::date order by ${KEYS}`,
    [orgDb.orgId, firstDayOf(month)],
  );
}

interface BilledAdjustmentFilter {
  month?: Month;
  bookedIn?: Month;
}

/** Restatements of closed months' bills by billed day, settled or open; in a transaction with one snapshot. */
export async function listBilledAdjustments(
  inside: OrgDb,
  filter: BilledAdjustmentFilter = {},
): Promise<BilledAdjustment[]> {
  const { closedUntilMicros } = await readBooks(inside);
  if (closedUntilMicros === null) return [];
  const values: SqlValue[] = [inside.orgId, isoFromMicros(closedUntilMicros).slice(0, 10)];
  const within = (column: string, month: Month | undefined) =>
    month === undefined
      ? 'true'
      : `${column} >= $${values.push(firstDayOf(month))}::date and ${column} < $${values.push(firstDayOf(followingMonth(month)))}::date`;
  const days = within('day', filter.month);
  return inside.rows<BilledAdjustment>(
    `select ${FROZEN_BILL}, to_char(day, 'YYYY-MM') as month, booked_on as "bookedOn", is_settled as "isSettled" from (
         select ${KEYS}, amount_usd, booked_on, true as is_settled from billed_adjustments where org_id = $1 and ${days}
         union all
         select ${KEYS}, amount_usd, booked_on, false from (${openDifferences(days)}) open
       ) found where ${within('booked_on', filter.bookedIn)}
       order by day, provider, provider_account_id, charge_category, booked_on`,
    values,
  );
}
