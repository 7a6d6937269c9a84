import { FIRST_TIME, freezeBills } from '../../db/billing/periods.js';
import type { Database } from '../../db/client.js';
import { OrgDb, type SystemDb } from '../../db/orgDb.js';
import { repeatOnConflict } from '../../db/repeatOnConflict.js';
import { MEASURE_NAMES } from '../../db/usage/usageLog.js';
import { type Books, type UsageQuery, usageSql } from '../../db/usage/usageSql.js';
import { assertBegun, decideClosing } from '../../domain/billing/periods/closing.js';
import {
  endOfMonth,
  firstDayOf,
  type Month,
  monthOf,
  monthsBetween,
  startOfMonth,
} from '../../domain/billing/periods/month.js';
import { isoFromMicros } from '../../domain/period.js';
import { foldWhenBehind } from '../usage/usage.js';

export interface ClosingRequest {
  month: Month;
  /** Who closes it, e.g. a key's id. */
  closedBy: string | null;
  nowMicros: bigint;
  /** What else belongs to the closing, such as its row in the audit log: the last of the transaction. */
  record?(inside: OrgDb): Promise<void>;
}

/** Repeats of one closing: a fold at the same moment makes it begin anew. */
const REPEATS_MAX = 7;

/**
 * Closes a month: keeps what is known of it in this moment, which is the transaction's snapshot, and its totals and
 * bills. Folds and closings of an organization exclude each other through its row in rollup_state. Returns false when
 * the month was closed before. Errors period_not_over, period_out_of_order, service_unavailable.
 */
export async function closePeriod(
  database: Database,
  orgId: string,
  request: ClosingRequest,
): Promise<boolean> {
  const orgDb = new OrgDb(database, orgId);
  // Each month's totals add up what is not folded.
  await foldWhenBehind(orgDb);
  return repeatOnConflict(
    () =>
      orgDb.transaction(async (inside) => {
        const isNew = await inside.unscoped('close a month of one organization beside the fold', (system) =>
          close(system, orgId, request),
        );
        if (isNew) await request.record?.(inside);
        return isNew;
      }, 'repeatable read'),
    REPEATS_MAX,
  );
}

async function close(system: SystemDb, orgId: string, request: ClosingRequest): Promise<boolean> {
  await system.run('insert into rollup_state (org_id, folded_xid) values ($1, 0) on conflict do nothing', [
    orgId,
  ]);
  const [state] = await system.rows<{
    folded_xid: number;
    projects_xid: number;
    closed_until: bigint | null;
  }>('select folded_xid, projects_xid, closed_until from rollup_state where org_id = $1 for update', [orgId]);
  if (!state) throw new Error('the state row was just made');
  const closedUntil = state.closed_until;
  const lastClosed = closedUntil === null ? undefined : monthOf(closedUntil - 1n);
  if (decideClosing(request.month, lastClosed, request.nowMicros) === 'closed_already') return false;
  const months = await monthsToClose(system, orgId, request.month, lastClosed);
  await insertClosings(system, orgId, months, request);
  const books = {
    foldedXid: state.folded_xid,
    projectsXid: state.projects_xid,
    closedUntilMicros: closedUntil,
  };
  for (const month of months) await freezeTotals(system, orgId, month, books);
  const first = months[0] ?? request.month;
  await freezeBills(system, orgId, { first, last: request.month }, closedUntil);
  await system.run('update rollup_state set closed_until = $2::timestamptz where org_id = $1', [
    orgId,
    isoFromMicros(endOfMonth(request.month)),
  ]);
  return true;
}

/** The month itself; the first closing takes along all months since the first call or bill. */
async function monthsToClose(
  system: SystemDb,
  orgId: string,
  month: Month,
  lastClosed: Month | undefined,
): Promise<Month[]> {
  if (lastClosed !== undefined) return [month];
  const [row] = await system.rows<{ first: bigint | null }>(FIRST_TIME, [orgId]);
  const first = row?.first == null ? undefined : monthOf(row.first);
  assertBegun(month, first);
  return monthsBetween(first ?? month, month);
}

async function insertClosings(
  system: SystemDb,
  orgId: string,
  months: readonly Month[],
  request: ClosingRequest,
): Promise<void> {
  await system.run(
    `insert into period_closings (org_id, month, ends_at, snapshot, closed_with, closed_by)
     select $1, month, (month + interval '1 month') at time zone 'UTC', pg_current_snapshot(), $3::date, $4
     from unnest($2::date[]) as months (month)`,
    [orgId, months.map(firstDayOf), firstDayOf(request.month), request.closedBy],
  );
}

/** Keeps a month's totals by provider: of its own calls, and of changes of earlier months that are booked in it. */
async function freezeTotals(system: SystemDb, orgId: string, month: Month, books: Books): Promise<void> {
  const window: UsageQuery = {
    dimension: 'provider',
    filter: {},
    fromMicros: startOfMonth(month),
    toMicros: endOfMonth(month),
    limit: PROVIDERS_MAX,
    offset: 0,
  };
  // The month is still open here, so what is known of its calls now is what its books say.
  await keep(system, orgId, month, 'own', { ...window, view: { kind: 'now' } }, books);
  if (books.closedUntilMicros === null) return;
  await keep(
    system,
    orgId,
    month,
    'booked',
    { ...window, view: { kind: 'books' }, only: 'adjustments' },
    books,
  );
}

/** Far more than there are. */
const PROVIDERS_MAX = 1_000;

async function keep(
  system: SystemDb,
  orgId: string,
  month: Month,
  part: 'own' | 'booked',
  query: UsageQuery,
  books: Books,
): Promise<void> {
  const { sql, values } = usageSql(orgId, query, books);
  const measures = MEASURE_NAMES.join(', ');
  await system.run(
    `insert into period_totals (org_id, month, part, provider, ${measures})
     select $1, $${values.length + 1}::date, $${values.length + 2}, key, ${measures} from (${sql}) sums where not is_total`,
    [...values, firstDayOf(month), part],
  );
}
