import type { ClosedMonth } from '../../domain/billing/periods/asOf.js';
import { firstDayOf, type Month, monthOf } from '../../domain/billing/periods/month.js';
import type { OrgDb } from '../orgDb.js';
import { fromMeasures, type MeasureColumns, type UsageMeasures } from '../usage/usage.js';
import { sumsOfMeasures } from '../usage/usageLog.js';

/** A closed month. */
export interface PeriodClosing extends ClosedMonth {
  /** The key that closed it; null where nobody is named. */
  closedBy: string | null;
  /** The month that was asked for: the first closing takes all earlier months along. */
  closedWith: Month;
}

/** A month's totals by provider, as they were closed. */
export interface FrozenTotals {
  /** Of the month's own calls. */
  own: Map<string, UsageMeasures>;
  /** Of changes of earlier months that are booked in this one. */
  booked: Map<string, UsageMeasures>;
}

interface ClosingRow {
  month: string;
  ends_at: bigint;
  closed_at: bigint;
  closed_by: string | null;
  closed_with: string;
}

const COLUMNS = 'month, ends_at, closed_at, closed_by, closed_with';

function fromClosingRow(row: ClosingRow): PeriodClosing {
  return {
    month: row.month.slice(0, 7),
    endsAtMicros: row.ends_at,
    closedAtMicros: row.closed_at,
    closedBy: row.closed_by,
    closedWith: row.closed_with.slice(0, 7),
  };
}

/** Every month that was closed, oldest first. What lies before the first of them is closed with it. */
export async function listPeriodClosings(orgDb: OrgDb): Promise<PeriodClosing[]> {
  const rows = await orgDb.rows<ClosingRow>(
    `select ${COLUMNS} from period_closings where org_id = $1 order by month`,
    [orgDb.orgId],
  );
  return rows.map(fromClosingRow);
}

/** The closing of a month; of a month before everything that there was, the first closing. Undefined: it is open. */
export async function findPeriodClosing(orgDb: OrgDb, month: Month): Promise<PeriodClosing | undefined> {
  // Closed months follow one another without a gap, so a later one alone means that this lies before the first.
  const [row] = await orgDb.rows<ClosingRow>(
    `select ${COLUMNS} from period_closings where org_id = $1 and month >= $2::date order by month limit 1`,
    [orgDb.orgId, firstDayOf(month)],
  );
  return row && { ...fromClosingRow(row), month };
}

/** What a month was closed with; empty for one that is open, or that had nothing. */
export async function findFrozenTotals(orgDb: OrgDb, month: Month): Promise<FrozenTotals> {
  const rows = await orgDb.rows<MeasureColumns & { part: 'own' | 'booked'; provider: string }>(
    'select * from period_totals where org_id = $1 and month = $2::date order by provider',
    [orgDb.orgId, firstDayOf(month)],
  );
  const totals: FrozenTotals = { own: new Map(), booked: new Map() };
  for (const row of rows) totals[row.part].set(row.provider, fromMeasures(row));
  return totals;
}

/** Sums of what each closed month was closed with, by month: its own calls and what was booked in it. */
export async function listFrozenSums(
  orgDb: OrgDb,
): Promise<Map<Month, { own: UsageMeasures; booked: UsageMeasures }>> {
  const rows = await orgDb.rows<MeasureColumns & { month: string; part: 'own' | 'booked' }>(
    `select c.month, p.part, ${sumsOfMeasures((name) => `t.${name}`)} from period_closings c cross join (values ('own'), ('booked')) p (part)
     left join period_totals t on t.org_id = c.org_id and t.month = c.month and t.part = p.part
     where c.org_id = $1 group by c.month, p.part`,
    [orgDb.orgId],
  );
  const found = new Map<Month, { own: UsageMeasures; booked: UsageMeasures }>();
  for (const row of rows) {
    const month = row.month.slice(0, 7);
    const sum = fromMeasures(row);
    found.set(month, { ...(found.get(month) ?? { own: sum, booked: sum }), [row.part]: sum });
  }
  return found;
}

/** The month of the organization's first call or billed day; undefined when it has neither. */
export async function findFirstMonth(orgDb: OrgDb): Promise<Month | undefined> {
  const [row] = await orgDb.rows<{ first: bigint | null }>(FIRST_TIME, [orgDb.orgId]);
  return row?.first == null ? undefined : monthOf(row.first);
}

/** The organization's first time with a call or a bill. Of calls that were removed for their age the totals know. */
export const FIRST_TIME = `
select least(
  (select min(timestamp) from events where org_id = $1),
  (select min(bucket) from usage_rollups where org_id = $1 and dimension = 'provider'),
  (select min(day)::timestamp at time zone 'UTC' from billing_days where org_id = $1)) as first`;
