import { findBilledSpan } from '../../db/billing/billCoverage.js';
import { listBilledProviderDays } from '../../db/billing/billingRows.js';
import { listObservedSince } from '../../db/events/observedCalls.js';
import type { OrgDb } from '../../db/orgDb.js';
import { knownOffsetHours } from '../../domain/billing/billingDay.js';
import { shiftDay } from '../../domain/period.js';
import type { Provider } from '../../domain/providers.js';
import type { DayResult } from '../../domain/reconciliation/matching/cells.js';
import type { ChargePrices } from '../../domain/reconciliation/matching/charges.js';
import { matchDay } from '../../domain/reconciliation/matching/matchDay.js';
import { type Reconciled, reconcileMatched } from '../../domain/reconciliation/reconcileDays.js';
import type { WeightSet } from '../../domain/reconciliation/weights/weightSet.js';
import { listSuspectKeys } from '../../usecases/billing/providerKeys.js';
import { billedRangeOf } from './billAudit.js';
import { clockOf, estimateDayOffset } from './planRun.js';
import { readProviderDay } from './providerDay.js';

/** Most suspect keys in the search for explanations, by dollars. */
const SUSPECTS_MAX = 10_000;

interface ReconcileRequest {
  provider: Provider;
  /** First and last UTC day, `YYYY-MM-DD`, both included; null: the range of the bills, at most 366 days. */
  fromDay: string | null;
  toDay: string | null;
  nowMicros: bigint;
}

export interface ReconcileReport extends Reconciled {
  provider: Provider;
  /** First and last compared day; null: there is no bill. */
  fromDay: string | null;
  toDay: string | null;
  /** Days of the range with a bill. */
  days: number;
  /** First and last day with any bill of this provider; null: there is none. */
  billed: { firstDay: string; lastDay: string } | null;
  weightSet: string;
}

/**
 * Reconciles a provider's bills with the calls of the same days as a gap run would, and stores nothing. Each day is
 * read in one short transaction. Error: invalid_range for a reversed range or one longer than 366 days.
 */
export async function reconcileBills(
  orgDb: OrgDb,
  request: ReconcileRequest,
  prices: ChargePrices,
  weights: WeightSet,
): Promise<ReconcileReport> {
  const { provider, nowMicros } = request;
  const span = await findBilledSpan(orgDb, provider);
  const range = billedRangeOf(request, span, 'a reconciliation');
  const report = {
    provider,
    fromDay: range?.fromDay ?? null,
    toDay: range?.toDay ?? null,
    billed: span ?? null,
    weightSet: weights.version,
  };
  if (!range) return { ...report, days: 0, buckets: [], findings: [], explanations: [] };
  const window = { provider, fromDay: range.fromDay, toDay: shiftDay(range.toDay, 1) };
  const observedSince = await listObservedSince(orgDb, provider);
  const offsetHours =
    knownOffsetHours(provider) ??
    (await estimateDayOffset(window.toDay, clockOf(orgDb, provider, prices.agreed)));
  const days: DayResult[] = [];
  // Compared while reading: of a day's rows and calls, memory keeps only the inputs of the search for explanations.
  for (const { day } of await listBilledProviderDays(orgDb, window)) {
    const scope = { provider, day, offsetHours };
    const input = await readProviderDay(orgDb, scope, { nowMicros, observedSince, withHours: false });
    days.push(matchDay(prices.agreed, provider, input, weights.link));
  }
  const suspects = await listSuspectKeys(orgDb, { ...window, limit: SUSPECTS_MAX });
  return {
    ...report,
    days: days.length,
    ...reconcileMatched(provider, days, prices, weights, suspects.keys),
  };
}
