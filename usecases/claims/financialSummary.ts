import { sumFindingDays } from '../../db/claims/financialSums.js';
import type { OrgDb } from '../../db/orgDb.js';
import { sumPreventedSpend } from '../../db/policies/enforcementRules.js';
import { findSavingsResult, type SavingsRun } from '../../db/policies/savingsRuns.js';
import { type FinancialSummary, summarize } from '../../domain/claims/financialSummary.js';
import { dayOf, LATEST_MICROS } from '../../domain/period.js';
import { standardPeriod } from '../policies/savings.js';

/** Half-open; undefined: that side is unbounded. */
interface SummaryWindow {
  fromMicros: bigint | undefined;
  toMicros: bigint | undefined;
}

/** The recoverable dollars and the savings, in one snapshot, with the savings run behind the modelled number. */
export async function readFinancialSummary(
  orgDb: OrgDb,
  window: SummaryWindow,
  nowMicros: bigint,
): Promise<{ summary: FinancialSummary; modeled: SavingsRun | undefined }> {
  const { fromMicros, toMicros } = window;
  const days = {
    fromDay: fromMicros === undefined ? null : dayOf(fromMicros),
    toDay: toMicros === undefined ? null : dayOf(toMicros - 1n),
  };
  return orgDb.transaction(async (inside) => {
    const sums = await sumFindingDays(inside, days);
    const prevented = await sumPreventedSpend(inside, {
      fromMicros: fromMicros ?? 0n,
      toMicros: toMicros ?? LATEST_MICROS,
    });
    const modeled = await findModeled(inside, window, nowMicros);
    const summary = summarize(sums, {
      preventedPico: prevented.totals.preventedPico,
      preventableModeledPico: modeled?.savedPico ?? 0n,
    });
    return { summary, modeled };
  }, 'repeatable read');
}

/**
 * The newest savings result of exactly the requested period when both bounds are set, or of the last 30 days when
 * neither is. A period with one bound has no savings run.
 */
async function findModeled(
  orgDb: OrgDb,
  { fromMicros, toMicros }: SummaryWindow,
  nowMicros: bigint,
): Promise<SavingsRun | undefined> {
  if (fromMicros === undefined && toMicros === undefined)
    return findSavingsResult(orgDb, standardPeriod(nowMicros));
  if (fromMicros === undefined || toMicros === undefined) return undefined;
  return findSavingsResult(orgDb, {
    isStandard: false,
    windowStartMicros: fromMicros,
    windowEndMicros: toMicros,
  });
}
