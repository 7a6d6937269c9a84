import { shiftDay } from '../domain/period.js';
import { nextMonth } from '../domain/periods/month.js';
import type { ChargePrices } from '../domain/reconciliation/charges.js';
import { buildStatement, type Statement } from '../domain/reconciliation/statement.js';
import { readBilledDay } from './billAudit.js';
import type { OrgDb } from './orgDb.js';
import { listAskedBack } from './queries/askedBack.js';
import { listBilledAccountNames, listCountedCopies } from './queries/billCoverage.js';
import { listBilledProviderDays, listBilledTotals } from './queries/billedDays.js';
import { listComparedBuckets } from './queries/gapExplorer.js';
import { type BilledAdjustment, listBilledAdjustments, listFrozenBills } from './queries/periodBills.js';
import { findPeriodClosing } from './queries/periods.js';
import { listSourceDifferences, type SourceDifference } from './queries/sourceDifferences.js';

/** Copies of a bill that do not say the same: so many are listed. */
export const DIFFERENCES_MAX = 200;
/** An account with a bill so many days before or after the month is expected to have one for it. */
const NEIGHBOUR_DAYS = 31;

export interface MonthStatement extends Statement {
  /** Null: the month is open. */
  closing: MonthClosing | null;
  /** How the bills of earlier, closed months were restated, as far as it is booked in this one. */
  bookedAdjustments: BilledAdjustment[];
  /** Where a copy that does not count says another amount, the latest day first; at most DIFFERENCES_MAX. */
  sourceDifferences: SourceDifference[];
}

export interface MonthClosing {
  closedAtMicros: bigint;
  closedBy: string | null;
  /** What the bills of the month say beyond what it was closed with. */
  adjustments: BilledAdjustment[];
}

/** The statement of the month that begins on `firstDay`, from one snapshot, so that its parts foot. */
export async function readMonthStatement(
  orgDb: OrgDb,
  firstDay: string,
  nowMicros: bigint,
  prices: ChargePrices,
): Promise<MonthStatement> {
  const window = { provider: null, fromDay: firstDay, toDay: nextMonth(firstDay) };
  return orgDb.transaction(async (inside) => {
    const charges = [];
    for (const { provider, day } of await listBilledProviderDays(inside, window)) {
      const read = await readBilledDay(inside, provider, day, prices);
      charges.push({ provider, charges: read.charges });
    }
    const month = firstDay.slice(0, 7);
    const closing = await findPeriodClosing(inside, month);
    const statement = buildStatement({
      firstDay,
      nowMicros,
      totals: await listBilledTotals(inside, window),
      frozen: closing ? await listFrozenBills(inside, month) : null,
      charges,
      compared: await listComparedBuckets(inside, window),
      copies: await listCountedCopies(inside, window),
      asked: await listAskedBack(inside, month),
      accounts: await listBilledAccountNames(inside, {
        fromDay: shiftDay(window.fromDay, -NEIGHBOUR_DAYS),
        toDay: shiftDay(window.toDay, NEIGHBOUR_DAYS),
      }),
    });
    return {
      ...statement,
      closing: closing
        ? {
            closedAtMicros: closing.closedAtMicros,
            closedBy: closing.closedBy,
            adjustments: await listBilledAdjustments(inside, { month }),
          }
        : null,
      bookedAdjustments: await listBilledAdjustments(inside, { bookedIn: month }),
      sourceDifferences: await listSourceDifferences(inside, { ...window, limit: DIFFERENCES_MAX }),
    };
  }, 'repeatable read');
}
