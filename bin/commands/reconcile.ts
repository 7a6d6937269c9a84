import { type Command, Option } from 'commander';
import { currentWeights } from '../../db/reconciliation/weightSets.js';
import { asksForAction, byWeight } from '../../domain/reconciliation/findings/findingSums.js';
import { reconcileBills } from '../../usecases/reconciliation/reconcileBills.js';
import { billReportCommand, type MakeReport } from '../bills/billReport.js';
import { presentReconciliation, reconcileTable, writeReconciliationCsv } from '../bills/reconcileReport.js';
import type { Terminal } from '../terminal/terminal.js';

/** What is wrong between a provider's bills and the calls of the same days; stores nothing. */
export const makeReconciliation: MakeReport = async (orgDb, range, agreed) => {
  const prices = { agreed, list: agreed.list };
  const report = await reconcileBills(orgDb, range, prices, await currentWeights(orgDb));
  report.findings.sort(byWeight);
  return {
    table: () => reconcileTable(report),
    json: () => presentReconciliation(report, agreed.versionAt(range.nowMicros)),
    csv: () => writeReconciliationCsv(report),
    asksForAction: report.findings.some(asksForAction),
  };
};

export function command(terminal: Terminal): Command {
  const failOption = new Option(
    '--fail-on-finding',
    'exit code 1 where a finding asks somebody to do something',
  );
  return billReportCommand('reconcile', failOption, makeReconciliation, terminal);
}
