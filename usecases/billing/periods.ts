import { type BilledTotal, listBilledTotals } from '../../db/billing/billingRows.js';
import {
  type BilledAdjustment,
  type FrozenBill,
  type FrozenTotals,
  findFirstMonth,
  findFirstMonthOf,
  findFrozenTotals,
  findPeriodClosing,
  freezeBills,
  insertClosings,
  insertPeriodTotals,
  listBilledAdjustments,
  listFrozenBills,
  listFrozenSums,
  listPeriodClosings,
  lockBooks,
  noteClosedUntil,
  type PeriodClosing,
} from '../../db/billing/periods.js';
import type { Database } from '../../db/client.js';
import { OrgDb, type SystemDb } from '../../db/orgDb.js';
import { repeatOnConflict } from '../../db/pgErrors.js';
import { type Books, readBooks, readUsage, type UsageQuery, type UsageResult } from '../../db/usage/usage.js';
import {
  assertBegun,
  decideClosing,
  endOfMonth,
  firstDayOf,
  followingMonth,
  type Month,
  monthOf,
  monthsBetween,
  startOfMonth,
} from '../../domain/billing/periods.js';
import { foldWhenBehind } from '../usage/usage.js';

export interface PeriodFacts {
  period: Month;
  closing: PeriodClosing | undefined;
  frozen: FrozenTotals;
  booked: UsageResult;
  adjustments: UsageResult;
  current: UsageResult;
  billed: readonly BilledTotal[];
  frozenBills: readonly FrozenBill[];
  restated: readonly BilledAdjustment[];
}

/** The months from the first call or bill to the current one, newest first, with their closings and closed sums. */
export async function listMonths(orgDb: OrgDb, current: Month) {
  const { first, closings, frozen } = await orgDb.transaction(
    async (inside) => ({
      first: await findFirstMonth(inside),
      closings: await listPeriodClosings(inside),
      frozen: await listFrozenSums(inside),
    }),
    'repeatable read',
  );
  const closed = new Map(closings.map((closing) => [closing.month, closing]));
  const [oldest] = closings;
  const begins = [first, oldest?.month, current].filter((month) => month !== undefined).sort()[0];
  return {
    months: monthsBetween(begins ?? current, current).reverse(),
    frozen,
    /** The closing of a month; months before the first closing belong to that one. */
    closingOf: (month: Month): PeriodClosing | undefined =>
      closed.get(month) ?? (oldest && month < oldest.month ? { ...oldest, month } : undefined),
  };
}

/** First day of a month's bills, and the first day after them. */
const billedDaysOf = (month: Month) => ({
  fromDay: firstDayOf(month),
  toDay: firstDayOf(followingMonth(month)),
});

/** A month as it was closed, what came later, and its present state, in one snapshot. */
export async function readPeriod(orgDb: OrgDb, period: Month): Promise<PeriodFacts> {
  await foldWhenBehind(orgDb);
  return orgDb.transaction(async (inside) => {
    const books = await readBooks(inside);
    const window: UsageQuery = {
      dimension: 'provider',
      filter: {},
      fromMicros: startOfMonth(period),
      toMicros: endOfMonth(period),
      limit: 1,
      offset: 0,
    };
    const sum = (asked: Pick<UsageQuery, 'view' | 'only'>) =>
      readUsage(inside, { ...window, ...asked }, books);
    return {
      period,
      closing: await findPeriodClosing(inside, period),
      frozen: await findFrozenTotals(inside, period),
      booked: await sum({ view: { kind: 'books' }, only: 'adjustments' }),
      adjustments: await sum({ view: { kind: 'now' }, only: 'adjustments' }),
      current: await sum({ view: { kind: 'now' } }),
      billed: await listBilledTotals(inside, { provider: null, ...billedDaysOf(period) }),
      frozenBills: await listFrozenBills(inside, period),
      restated: await listBilledAdjustments(inside, { month: period }),
    };
  }, 'repeatable read');
}

export interface ClosingRequest {
  month: Month;
  /** Who closes it, e.g. a key's id. */
  closedBy: string | null;
  nowMicros: bigint;
  /** Further statements of the closing, such as its row in the audit log: the last of the transaction. */
  record?(inside: OrgDb): Promise<void>;
}

/** Attempts at one closing: a simultaneous fold makes it start again. */
const REPEATS_MAX = 7;

/**
 * Closes a month: stores its totals and bills as of the transaction's snapshot. Folds and closings of an organization
 * exclude each other through its row in rollup_state. Returns false when the month was already closed. Errors:
 * period_not_over, period_out_of_order, service_unavailable.
 */
export async function closePeriod(
  database: Database,
  orgId: string,
  request: ClosingRequest,
): Promise<boolean> {
  const orgDb = new OrgDb(database, orgId);
  // A month's totals otherwise include unfolded rows.
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
  const books = await lockBooks(system, orgId);
  const closedUntil = books.closedUntilMicros;
  const lastClosed = closedUntil === null ? undefined : monthOf(closedUntil - 1n);
  if (decideClosing(request.month, lastClosed, request.nowMicros) === 'closed_already') return false;
  const months = await monthsToClose(system, orgId, request.month, lastClosed);
  await insertClosings(system, orgId, months, request);
  for (const month of months) await freezeTotals(system, orgId, month, books);
  const first = months[0] ?? request.month;
  await freezeBills(system, orgId, { first, last: request.month }, closedUntil);
  await noteClosedUntil(system, orgId, endOfMonth(request.month));
  return true;
}

/** The months of the closing; the first closing includes all months since the first call or bill. */
async function monthsToClose(
  system: SystemDb,
  orgId: string,
  month: Month,
  lastClosed: Month | undefined,
): Promise<Month[]> {
  if (lastClosed !== undefined) return [month];
  const first = await findFirstMonthOf(system, orgId);
  assertBegun(month, first);
  return monthsBetween(first ?? month, month);
}

/** Stores a month's totals by provider: of its own calls, and of changes of earlier months that are booked in it. */
async function freezeTotals(system: SystemDb, orgId: string, month: Month, books: Books): Promise<void> {
  const window: UsageQuery = {
    dimension: 'provider',
    filter: {},
    fromMicros: startOfMonth(month),
    toMicros: endOfMonth(month),
    limit: PROVIDERS_MAX,
    offset: 0,
  };
  // The month is still open, so the present totals of its calls are its booked totals.
  const own: UsageQuery = { ...window, view: { kind: 'now' } };
  await insertPeriodTotals(system, orgId, { month, part: 'own', query: own, books });
  if (books.closedUntilMicros === null) return;
  const booked: UsageQuery = { ...window, view: { kind: 'books' }, only: 'adjustments' };
  await insertPeriodTotals(system, orgId, { month, part: 'booked', query: booked, books });
}

/** More than the number of providers. */
const PROVIDERS_MAX = 1_000;
