import type { Logger } from 'pino';
import { pruneIdempotencyKeys } from '../../db/access/idempotencyKeys.js';
import { pruneRateBuckets } from '../../db/access/requestLimits.js';
import {
  endRetentionStep,
  listRetentionState,
  noteRemoved,
  pruneRetentionRuns,
  type RetentionWork,
  startRetentionStep,
} from '../../db/installation/retentionRuns.js';
import { CHECKPOINT_PURPOSE } from '../../domain/access/auditLog/anchors.js';
import type { RetentionLimits, RetentionStep } from '../../domain/installation/retention.js';
import type { SecretKeys } from '../../platform/secretKeys.js';
import { checkpointAuditLog } from '../access/auditRetention.js';
import type { UseCaseDeps } from '../useCaseDeps.js';
import { removeOldEvents } from './eventRetention.js';
import {
  removeOldAlerts,
  removeOldGapRuns,
  removeOldPayloads,
  removeOldSavings,
  removeOldWebhookMessages,
} from './removeOldRows.js';

/** A bucket that nobody asked for so long is full again whatever it counts. */
const RATE_BUCKET_IDLE_SECONDS = 86_400;
/** Runs that failed one after the other before an operator should look. */
const FAILURES_WORTH_A_LOOK = 2;

export interface RetentionDeps extends UseCaseDeps {
  /** A connection of the tables' owner, without a pooler between: partitions are dropped over it. */
  directUrl: string;
  retention: RetentionLimits;
  secretKeys: Pick<SecretKeys, 'sign'>;
  nowMicros(): bigint;
  logger: Logger;
}

export interface RetentionStepRef {
  runId: string;
  step: RetentionStep;
}

/** Removes the records of old runs of the retention itself. */
export function forgetRetentionRuns({ database }: UseCaseDeps): Promise<number> {
  return pruneRetentionRuns(database);
}

/** Does a step of a run; ends after a piece of work when the signal is aborted, with the signal's reason. */
export async function runRetentionStep(
  deps: RetentionDeps,
  ref: RetentionStepRef,
  signal: AbortSignal,
): Promise<void> {
  const { database, directUrl, nowMicros } = deps;
  await startRetentionStep(database, ref);
  await removeOld(deps, ref.step, {
    database,
    directUrl,
    nowMicros: nowMicros(),
    async report(removed) {
      await noteRemoved(database, ref, removed);
      signal.throwIfAborted();
    },
  });
  await endRetentionStep(database, ref, null);
}

/** Notes that a step failed, and warns when it fails again and again. */
export async function failRetentionStep(
  { database, logger }: RetentionDeps,
  { runId, step, message }: RetentionStepRef & { message: string },
): Promise<void> {
  await endRetentionStep(database, { runId, step }, message);
  const state = (await listRetentionState(database)).find((found) => found.step === step);
  const failures = state?.failures ?? 1;
  const line = { runId, step, message, failures };
  if (failures < FAILURES_WORTH_A_LOOK)
    logger.info(line, 'a step of the retention failed; the next run repeats it');
  else logger.warn(line, 'a step of the retention fails again and again: what is too old is not removed');
}

/** A step without a limit has nothing to do. */
async function removeOld(deps: RetentionDeps, step: RetentionStep, work: RetentionWork): Promise<void> {
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
