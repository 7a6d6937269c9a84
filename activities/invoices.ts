import { Context } from '@temporalio/activity';
import { extractInvoiceFile } from '../usecases/invoices/extractInvoiceFile.js';
import { readInvoiceFile } from '../usecases/invoices/readInvoiceFile.js';
import { beginInvoiceRun, finishInvoiceRun, matchInvoice } from '../usecases/invoices/runInvoice.js';
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

/** The effects of a run of an invoice. */
export function createInvoiceActivities(deps: ActivityDeps) {
  return {
    /** Takes a run up; null where there is nothing to do. */
    beginInvoiceRun: ({ orgId, runId }: RunRef): Promise<{ mustExtract: boolean } | null> =>
      // A run that is taken up is taken up again.
      withFailures(async () => {
        const begun = await beginInvoiceRun(orgDbOf(deps, orgId), runId);
        if (begun?.mustExtract) deps.prepareExtraction?.();
        return begun ?? null;
      }),

    /** Reads the pages of the file into words; not while the organization has others read. */
    extractInvoice: ({ orgId, runId }: RunRef): Promise<{ isExtracted: boolean }> =>
      // The extraction has the run's key: a repeat finds it, or stores the same in its place.
      withFailures(() => {
        const signal = Context.current().cancellationSignal;
        return withHeartbeat(async () => ({
          isExtracted: await extractInvoiceFile(deps, orgDbOf(deps, orgId), runId, { signal }),
        }));
      }),

    /** Understands what was extracted: all lines are stored, or none. */
    readInvoice: ({ orgId, runId }: RunRef): Promise<void> =>
      // In one transaction, in place of what was there: a repeat stores the same.
      withFailures(() => withHeartbeat(() => readInvoiceFile(deps, orgDbOf(deps, orgId), runId))),

    /** Compares the invoice with the bill. */
    matchInvoice: ({ orgId, runId }: RunRef): Promise<{ revision: number }> =>
      // In one transaction, in place of an earlier comparison.
      withFailures(() => withHeartbeat(() => matchInvoice(deps, orgDbOf(deps, orgId), runId))),

    /** Ends the run with what was compared, unless the invoice has changed meanwhile. */
    finishInvoiceRun: ({
      orgId,
      runId,
      revision,
    }: RunRef & { revision: number }): Promise<{ hasEnded: boolean }> =>
      // Only an open run is ended, with its messages, once.
      withFailures(async () => ({
        hasEnded: await finishInvoiceRun(orgDbOf(deps, orgId), runId, revision),
      })),

    endInvoiceRunCancelled: runEndings(deps, 'invoice_run').cancelled,

    endInvoiceRunFailed: ({
      orgId,
      runId,
      code,
      message,
    }: RunRef & { code: string; message: string }): Promise<void> =>
      // Only an open run is ended.
      withFailures(async () => {
        await endRun(orgDbOf(deps, orgId), 'invoice_run', runId, {
          status: 'failed',
          error: { code, message },
        });
      }),
  };
}
