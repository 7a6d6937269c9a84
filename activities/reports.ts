import { MICROS_PER_HOUR } from '../domain/period.js';
import { makeReport } from '../usecases/reports/makeReport.js';
import { openDueReports } from '../usecases/reports/reportSchedules.js';
import { orgDbOf } from '../usecases/useCaseDeps.js';
import type { ScheduledReportInput } from '../workflows/contract.js';
import type { ActivityDeps } from './deps.js';
import { withFailures } from './failures.js';
import { withHeartbeat } from './heartbeat.js';
import { runEndings } from './runEndings.js';

/** A zone's rules may change between the making of a schedule and its time. */
const DUE_TOLERANCE_MICROS = MICROS_PER_HOUR;

interface RunRef {
  orgId: string;
  runId: string;
}

/** The effects of a management report. */
export function createReportActivities(deps: ActivityDeps) {
  const endings = runEndings(deps, 'report');
  return {
    /** Gathers the figures, sets the document, stores it and ends the run. */
    generateReport: ({ orgId, runId }: RunRef): Promise<void> =>
      // Each attempt stores a file of its own; one of them ends the run, and the others remove theirs.
      withFailures(() => withHeartbeat(() => makeReport(deps, orgDbOf(deps, orgId), runId))),

    /** Opens the report of the period that was over at the schedule's time. */
    requestScheduledReport: ({
      orgId,
      cadence,
      nominalMs,
    }: ScheduledReportInput & { nominalMs: number }): Promise<void> =>
      // A period that was opened is not due any more.
      withFailures(async () => {
        const byMicros = BigInt(nominalMs) * 1_000n + DUE_TOLERANCE_MICROS;
        await openDueReports(orgDbOf(deps, orgId), cadence, byMicros, deps.nowMicros());
      }),

    endReportCancelled: endings.cancelled,
    endReportFailed: endings.failed,
  };
}
