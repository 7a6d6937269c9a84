import type { OrgDb } from '../../db/orgDb.js';
import { publishGapRunEnd, settleGapRunEnd } from '../../db/reconciliation/gapRuns.js';
import { insertOutboxMessage } from '../../db/runs/outbox.js';
import {
  findRun,
  type Run,
  type RunEnd,
  type RunTable,
  recordCancelRequest,
  recordRunEnd,
} from '../../db/runs/runTable.js';
import { DomainError } from '../../domain/errors.js';
import { describeRun, RUN_TERMINAL_STATUSES, type RunKind, runMessage } from '../../domain/runs/runKinds.js';
import { lockInvoiceOfRun, settleInvoiceRunEnd } from '../invoices/endInvoiceRun.js';
import { announceReport } from '../reports/announceReport.js';

/** Further changes at the end of a run of a kind, in the transaction of its end. */
interface RunEnding {
  /** The run's actual end, where it differs from the requested one. */
  settle?(inside: OrgDb, id: string, end: RunEnd): Promise<RunEnd>;
  /** Called once the run has ended, also when it was cancelled before it began. */
  ended(inside: OrgDb, id: string): Promise<void>;
}

export const RUN_ENDINGS: Partial<Record<RunKind, RunEnding>> = {
  gap_run: { settle: settleGapRunEnd, ended: publishGapRunEnd },
  invoice_run: {
    async settle(inside, id, end) {
      await lockInvoiceOfRun(inside, id);
      return end;
    },
    ended: settleInvoiceRunEnd,
  },
  report: { ended: announceReport },
};

/** Ends a run once, with its result if it has one; its stored data stays. false: it had already ended. */
export async function endRun(
  orgDb: OrgDb,
  kind: RunKind,
  id: string,
  end: RunEnd & { result?: object },
): Promise<boolean> {
  const ending = RUN_ENDINGS[kind];
  return orgDb.transaction(async (inside) => {
    const settled = ending?.settle ? await ending.settle(inside, id, end) : end;
    const { result } = end;
    const hasEnded = await recordRunEnd(inside, kind, id, {
      status: settled.status,
      ...(settled.error ? { error: settled.error } : {}),
      ...(result ? { result } : {}),
    });
    if (hasEnded) await ending?.ended(inside, id);
    return hasEnded;
  });
}

/**
 * Asks a run to stop; `record` is called at the end of the transaction. Returns the run afterwards. Error:
 * run_not_cancellable.
 */
export async function cancelRun<R extends Run>(
  orgDb: OrgDb,
  runs: RunTable<R>,
  id: string,
  record: (inside: OrgDb) => Promise<void>,
): Promise<R> {
  const { kind } = runs;
  const asked = await orgDb.transaction(async (inside) => {
    if (!(await recordCancelRequest(inside, kind, id))) return undefined;
    await RUN_ENDINGS[kind]?.ended(inside, id);
    await insertOutboxMessage(inside, runMessage(kind, 'cancel'), id);
    const run = await findRun(inside, runs, id);
    await record(inside);
    return run;
  });
  if (asked) return asked;
  const { status } = (await findRun(orgDb, runs, id)) ?? { status: 'failed' };
  const until = describeRun(kind).cancel?.until;
  const why =
    until === undefined || RUN_TERMINAL_STATUSES.has(status)
      ? `the run has ended (${status}); there is nothing to stop`
      : until.reason;
  throw new DomainError('run_not_cancellable', why);
}
