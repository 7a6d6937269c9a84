import type { OrgDb } from '../../../db/orgDb.js';
import { currentWeights } from '../../../db/reconciliation/weightSets.js';
import { DomainError } from '../../../domain/errors.js';
import { asksForAction, byWeight } from '../../../domain/reconciliation/findings/findingSums.js';
import { StartError } from '../../../platform/startError.js';
import { PriceBookHolder } from '../../../usecases/pricing/priceBookHolder.js';
import { reconcileBills } from '../../../usecases/reconciliation/reconcileBills.js';
import type { ReconcileArguments } from './reconcileArguments.js';
import { reconcileTable } from './reconcileTable.js';
import { presentReconciliation, writeReconciliationCsv } from './reconcileText.js';

/**
 * The reconciliation that `npm run reconcile` was asked for: what it prints, and whether a finding asks for action.
 * @throws StartError for a range that cannot be reconciled.
 */
export async function runReconcile(
  orgDb: OrgDb,
  asked: Omit<ReconcileArguments, 'org'>,
  nowMicros: bigint,
): Promise<{ text: string; asksForAction: boolean }> {
  const holder = await PriceBookHolder.open(orgDb.database, {
    nowMs: () => performance.now(),
    onFailure: () => undefined,
  });
  const agreed = await holder.of(orgDb.orgId);
  const { provider, fromDay, toDay } = asked;
  const report = await reconcileBills(
    orgDb,
    { provider, fromDay, toDay, nowMicros },
    { agreed, list: agreed.list },
    await currentWeights(orgDb),
  ).catch((error: unknown) => {
    throw error instanceof DomainError && error.code === 'invalid_range'
      ? new StartError(`--${error.message}.`)
      : error;
  });
  await holder.settle();
  report.findings.sort(byWeight);
  const text =
    asked.format === 'json'
      ? `${JSON.stringify(presentReconciliation(report, agreed.versionAt(nowMicros)), null, 2)}\n`
      : asked.format === 'csv'
        ? writeReconciliationCsv(report)
        : reconcileTable(report);
  return { text, asksForAction: report.findings.some(asksForAction) };
}
