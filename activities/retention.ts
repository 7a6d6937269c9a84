import { CancelledFailure, Context } from '@temporalio/activity';
import { pruneIdempotencyKeys } from '../db/access/idempotencyKeys.js';
import { pruneRateBuckets } from '../db/access/rateBuckets.js';
import {
  endRetentionStep,
  listRetentionState,
  noteRemoved,
  pruneRetentionRuns,
  startRetentionStep,
} from '../db/installation/retentionRuns.js';
import type { RetentionWork } from '../db/installation/retentionWork.js';
import { CHECKPOINT_PURPOSE } from '../domain/access/auditLog/checkpoint.js';
import { RETENTION_STEPS, type RetentionStep } from '../domain/installation/retention.js';
import { checkpointAuditLog } from '../usecases/access/auditRetention.js';
import { removeOldAlerts } from '../usecases/installation/alertRetention.js';
import { removeOldEvents } from '../usecases/installation/eventRetention.js';
import { removeOldGapRuns } from '../usecases/installation/gapRunRetention.js';
import { removeOldPayloads } from '../usecases/installation/payloadRetention.js';
import { removeOldSavings } from '../usecases/installation/savingsRetention.js';
import { removeOldWebhookMessages } from '../usecases/installation/webhookRetention.js';
import type { ActivityDeps } from './deps.js';
import { withFailures } from './failures.js';
import { withHeartbeat } from './heartbeat.js';

interface StepRef {
  runId: string;
  step: RetentionStep;
}

/** A bucket that nobody asked for so long is full again whatever it counts. */
const RATE_BUCKET_IDLE_SECONDS = 86_400;
/** Runs that failed one after the other before it is worth a look. */
const FAILURES_WORTH_A_LOOK = 2;

/** The effects of a run of the retention. */
export function createRetentionActivities(deps: ActivityDeps) {
  const { database, logger } = deps;
  return {
    /** The steps of a run. In the history, so that a run under way does not change when there are more. */
    planRetention: (): Promise<{ steps: readonly RetentionStep[] }> =>
      // Forgetting twice forgets the same.
      withFailures(async () => {
        await pruneRetentionRuns(database);
        return { steps: RETENTION_STEPS };
      }),

    runRetentionStep: ({ runId, step }: StepRef): Promise<void> =>
      // What was removed is committed piece by piece; a repeat goes on with what is left.
      withFailures(() =>
        withHeartbeat(async () => {
          await startRetentionStep(database, { runId, step });
          await runStep(deps, step, workOf(deps, { runId, step }));
          await endRetentionStep(database, { runId, step }, null);
        }),
      ),

    failRetentionStep: ({ runId, step, message }: StepRef & { message: string }): Promise<void> =>
      // The row of a step is one row.
      withFailures(async () => {
        await endRetentionStep(database, { runId, step }, message);
        const state = (await listRetentionState(database)).find((found) => found.step === step);
        const failures = state?.failures ?? 1;
        const line = { runId, step, message, failures };
        if (failures < FAILURES_WORTH_A_LOOK)
          logger.info(line, 'a step of the retention failed; the next run repeats it');
        else
          logger.warn(line, 'a step of the retention fails again and again: what is too old is not removed');
      }),
  };
}

function workOf({ database, directUrl, nowMicros }: ActivityDeps, ref: StepRef): RetentionWork {
  const { cancellationSignal } = Context.current();
  return {
    database,
    directUrl,
    nowMicros: nowMicros(),
    async report(removed) {
      await noteRemoved(database, ref, removed);
      if (cancellationSignal.aborted) throw new CancelledFailure('the run was cancelled');
    },
  };
}

/** Does a step, whatever the limits are; one that has none has nothing to do. */
async function runStep(deps: ActivityDeps, step: RetentionStep, work: RetentionWork): Promise<void> {
  const { database, retention, secretKeys, logger } = deps;
  const note = async (rows: Promise<number>) => {
    const removed = await rows;
    if (removed > 0) await work.report({ rows: removed, partitions: [] });
  };
  switch (step) {
    case 'payloads':
      return removeOldPayloads(work, retention.payloadDays);
    case 'events':
      return retention.eventDays === undefined ? undefined : removeOldEvents(work, retention.eventDays);
    case 'idempotency_keys':
      return note(pruneIdempotencyKeys(database));
    case 'audit_log':
      return note(
        checkpointAuditLog(
          database,
          retention.auditDays,
          (text) => secretKeys.sign(CHECKPOINT_PURPOSE, text),
          (orgId, fault) =>
            logger.error(
              { orgId, fault },
              'a piece of an audit log is broken and is not removed: look at it with ./trueup audit-log verify',
            ),
        ),
      );
    case 'rate_limits':
      return note(pruneRateBuckets(database, RATE_BUCKET_IDLE_SECONDS));
    case 'alerts':
      return removeOldAlerts(work, retention.eventDays);
    case 'webhook_messages':
      return removeOldWebhookMessages(work);
    case 'savings_runs':
      return removeOldSavings(work);
    case 'gap_runs':
      return removeOldGapRuns(work);
  }
}
