import type { OrgDb } from '../../db/orgDb.js';
import { insertOutboxMessage } from '../../db/runs/outbox.js';
import { recordCancelRequest } from '../../db/runs/runStates.js';
import { findRun, type Run, type RunTable } from '../../db/runs/runTable.js';
import { DomainError } from '../../domain/errors.js';
import { runMessage } from '../../domain/runs/outboxMessage.js';
import { describeRun } from '../../domain/runs/runKinds.js';
import { RUN_TERMINAL_STATUSES } from '../../domain/runs/runs.js';
import { RUN_ENDINGS } from './endRun.js';

/**
 * Asks a run to stop; `record` is the last of the transaction. Returns the run as it is then. Error
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
