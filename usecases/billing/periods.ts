import { type BilledTotal, listBilledTotals } from '../../db/billing/billedDays.js';
import {
  type BilledAdjustment,
  type FrozenBill,
  type FrozenTotals,
  findFirstMonth,
  findFrozenTotals,
  findPeriodClosing,
  listBilledAdjustments,
  listFrozenBills,
  listFrozenSums,
  listPeriodClosings,
  type PeriodClosing,
} from '../../db/billing/periods.js';
import type { OrgDb } from '../../db/orgDb.js';
import { readBooks, readUsage, type UsageResult } from '../../db/usage/usage.js';
import type { UsageQuery } from '../../db/usage/usageSql.js';
import {
  endOfMonth,
  firstDayOf,
  followingMonth,
  type Month,
  monthsBetween,
  startOfMonth,
} from '../../domain/billing/periods/month.js';
import { foldWhenBehind } from '../usage/usage.js';

/** What is known of a month. */
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
    /** The closing of a month; of one before the first closing, that one. */
    closingOf: (month: Month): PeriodClosing | undefined =>
      closed.get(month) ?? (oldest && month < oldest.month ? { ...oldest, month } : undefined),
  };
}

/** First and next day of a month's bills. */
const billedDaysOf = (month: Month) => ({
  fromDay: firstDayOf(month),
  toDay: firstDayOf(followingMonth(month)),
});

/** A month as it was closed, what came later, and as it is known now, in one snapshot. */
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
