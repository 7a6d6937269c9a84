import { makeReport } from '../usecases/reports/makeReport.js';
import { endRun } from '../usecases/runs/endRun.js';
import { orgDbOf } from '../usecases/useCaseDeps.js';
import type { ActivityDeps } from './deps.js';
import { withFailures } from './failures.js';
import { withHeartbeat } from './heartbeat.js';
import { runEndings } from './runEndings.js';

interface RunRef {
  orgId: string;
  runId: string;
}

/** The effects of a management report. */
export function createReportActivities(deps: ActivityDeps) {
  return {
    /** Gathers the figures, sets the document, stores it and ends the run. */
    generateReport: ({ orgId, runId }: RunRef): Promise<void> =>
      // Each attempt stores a file of its own; one of them ends the run, and the others remove theirs.
      withFailures(() => withHeartbeat(() => makeReport(deps, orgDbOf(deps, orgId), runId))),

    endReportCancelled: runEndings(deps, 'report').cancelled,

    endReportFailed: ({
      orgId,
      runId,
      code,
      message,
    }: RunRef & { code: string; message: string }): Promise<void> =>
      // Only an open run is ended.
      withFailures(async () => {
        deps.logger.error({ orgId, runId, code, message }, 'a report failed');
        await endRun(orgDbOf(deps, orgId), 'report', runId, { status: 'failed', error: { code, message } });
      }),
  };
}
