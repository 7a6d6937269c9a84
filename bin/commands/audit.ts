import { type Command, Option } from 'commander';
import { writeAuditCsv } from '../../api/reconciliation/audit/csv.js';
import { presentAudit } from '../../api/reconciliation/audit/wire.js';
import { auditBills } from '../../usecases/reconciliation/billAudit.js';
import { auditTable } from '../bills/auditTable.js';
import { billReportCommand, type MakeReport } from '../bills/billReport.js';
import type { Terminal } from '../terminal/terminal.js';

/** Which rates a provider charged, against list and contract, from its bills alone. */
const makeAudit: MakeReport = async (orgDb, range, agreed) => {
  const report = await auditBills(orgDb, range, { agreed, list: agreed.list });
  return {
    table: () => auditTable(report),
    json: () => presentAudit(report, agreed.versionAt(range.nowMicros)),
    csv: () => writeAuditCsv(report),
    asksForAction: report.differences.length + report.omitted.lines > 0,
  };
};

export function command(terminal: Terminal): Command {
  const failOption = new Option(
    '--fail-on-difference',
    'exit code 1 where a charge is not at the agreed rate',
  );
  return billReportCommand('audit', failOption, makeAudit, terminal);
}
