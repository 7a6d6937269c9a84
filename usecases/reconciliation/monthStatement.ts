import {
  listAskedBack,
  listBilledAccountNames,
  listCountedCopies,
  listSourceDifferences,
  type SourceDifference,
} from '../../db/billing/billCoverage.js';
import { listBilledProviderDays, listBilledTotals } from '../../db/billing/billingRows.js';
import {
  type BilledAdjustment,
  findPeriodClosing,
  listBilledAdjustments,
  listFrozenBills,
} from '../../db/billing/periods.js';
import { sumExplainedDays, sumFindingDays } from '../../db/claims/financialSums.js';
import { type ComparedInvoice, listComparedInvoices } from '../../db/invoices/comparedInvoices.js';
import type { OrgDb } from '../../db/orgDb.js';
import { listComparedBuckets } from '../../db/reconciliation/gapExplorer.js';
import { nextMonth } from '../../domain/billing/periods.js';
import { accountMonthsOf } from '../../domain/claims/financialSummary.js';
import { shiftDay } from '../../domain/period.js';
import type { ChargePrices } from '../../domain/reconciliation/matching/charges.js';
import {
  buildStatement,
  type FoundOfAccount,
  type Statement,
} from '../../domain/reconciliation/statement/statement.js';
import { readBilledDay } from './billAudit.js';

/** Most differing copies of a bill that are listed. */
export const DIFFERENCES_MAX = 200;
/** An account with a bill within this many days before or after the month is expected to have one for it. */
const NEIGHBOUR_DAYS = 31;

export interface MonthStatement extends Statement {
  /** null: the month is open. */
  closing: MonthClosing | null;
  /** Restatements of the bills of earlier, closed months that are booked in this month. */
  bookedAdjustments: BilledAdjustment[];
  /** Uploaded invoices that charge for a day of the month. */
  invoices: ComparedInvoice[];
  /** Copies that do not count and state another amount, latest day first; at most DIFFERENCES_MAX. */
  sourceDifferences: SourceDifference[];
}

interface MonthClosing {
  closedAtMicros: bigint;
  closedBy: string | null;
  /** Differences between the month's present bills and its closed ones. */
  adjustments: BilledAdjustment[];
}

/** The statement of the month that begins on `firstDay`, from one snapshot, so that its sections sum exactly. */
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
      found: await readFound(inside, window),
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
      invoices: await listComparedInvoices(inside, window),
      sourceDifferences: await listSourceDifferences(inside, { ...window, limit: DIFFERENCES_MAX }),
    };
  }, 'repeatable read');
}

/**
 * By account: the unexplained dollars, as the financial summary of the same days shows them, and the dollars of
 * findings.
 */
async function readFound(
  orgDb: OrgDb,
  { fromDay, toDay }: { fromDay: string; toDay: string },
): Promise<FoundOfAccount[]> {
  const days = { fromDay, toDay: shiftDay(toDay, -1) };
  const months = accountMonthsOf(await sumFindingDays(orgDb, days));
  const explained = await sumExplainedDays(orgDb, days);
  return [
    ...months.map(({ provider, accountId, unexplainedCriticalPico, unexplainedReviewPico }) => ({
      ...{ provider, accountId, inFindingsPico: 0n },
      unexplainedPico: unexplainedCriticalPico + unexplainedReviewPico,
    })),
    ...explained.map(({ provider, accountId, impactPico }) => ({
      ...{ provider, accountId, unexplainedPico: 0n },
      inFindingsPico: impactPico,
    })),
  ].filter((one) => one.unexplainedPico !== 0n || one.inFindingsPico !== 0n);
}
