import type pg from 'pg';
import type { Logger } from 'pino';
import type { BlobStore } from '../../adapters/blobs/blobStore.js';
import { recordAudit } from '../../db/access/auditLog.js';
import { pruneIdempotencyKeys } from '../../db/access/idempotencyKeys.js';
import { pruneRateBuckets } from '../../db/access/requestLimits.js';
import {
  deleteAcknowledgedNotices,
  deleteAlertsOfCalls,
  deleteEventCopies,
  deleteEvents,
  deleteOldGapRuns,
  deletePayloads,
  deletePriceChanges,
  deleteUnpublishedUnits,
  deleteWebhookMessages,
  dropMonth,
  isFolded,
} from '../../db/installation/oldRows.js';
import { hasOrganization } from '../../db/installation/organizations.js';
import {
  endRetentionStep,
  listOrganizationIds,
  listRetentionState,
  noteRemoved,
  pruneRetentionRuns,
  type RetentionWork,
  startRetentionStep,
} from '../../db/installation/retentionRuns.js';
import { OrgDb, unscoped } from '../../db/orgDb.js';
import {
  dropEventMonth,
  emptyPages,
  listPastPartitions,
  listTakenOut,
  takeOutMonth,
  withOwner,
} from '../../db/partitions.js';
import {
  deleteEmptiedSavings,
  emptySavingsRun,
  listReplacedSavings,
  removeModeledCalls,
} from '../../db/policies/modeledSavings.js';
import { clearEndedExplanations } from '../../db/reconciliation/explanations.js';
import { CHECKPOINT_PURPOSE } from '../../domain/access/auditLog.js';
import {
  type RetentionLimits,
  type RetentionStep,
  retentionLimit,
} from '../../domain/installation/retention.js';
import { dayOf, MICROS_PER_DAY } from '../../domain/period.js';
import type { SecretKeys } from '../../platform/secretKeys.js';
import { checkpointAuditLog } from '../access/auditChain.js';
import { removeOrphanedFiles } from '../invoices/removeOrphanedFiles.js';
import { foldAll } from '../usage/usage.js';
import type { UseCaseDeps } from '../useCaseDeps.js';

/** A bucket that nobody asked for so long is full again whatever it counts. */
const RATE_BUCKET_IDLE_SECONDS = 86_400;
/** Runs that failed one after the other before an operator should look. */
const FAILURES_WORTH_A_LOOK = 2;

export interface RetentionDeps extends UseCaseDeps {
  /** A connection of the tables' owner, without a pooler between: partitions are dropped over it. */
  directUrl: string;
  retention: RetentionLimits;
  secretKeys: Pick<SecretKeys, 'sign'>;
  blobs: BlobStore;
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
  const { database, retention, secretKeys, blobs, logger } = deps;
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
    case 'blobs':
      return removeOrphanedFiles(work, blobs);
  }
}

/** Folds of one organization at most before its events are looked at: what is left waits for the next run. */
const FOLDS_MAX = 1_000;

async function forEachOrganization(
  { database }: Pick<RetentionWork, 'database'>,
  work: (orgId: string) => Promise<unknown>,
): Promise<void> {
  for (const orgId of await listOrganizationIds(database)) await work(orgId);
}

/**
 * Removes the calls that are older than so many days, with the copies that were kept when they changed and the history
 * of their prices. Months that lie before the limit as a whole are dropped, what is left is deleted row by row. Nothing
 * goes that is in no total yet, so all totals do not change; what goes is added up in removed_usage, so that totals
 * can still be compared with events. A repeat finds nothing left.
 */
export async function removeOldEvents(work: RetentionWork, days: number): Promise<void> {
  const limit = retentionLimit(work.nowMicros, days);
  const gone = new Map<string, number>();
  await foldAll(work, FOLDS_MAX);
  try {
    await removeMonths(work, limit, gone);
    await removeEvents(work, limit, gone);
    await forEachOrganization(work, (orgId) => deleteEventCopies(work, orgId, limit));
    await forEachOrganization(work, (orgId) => deletePriceChanges(work, orgId, limit));
  } finally {
    // Also where the rest could not go.
    await recordRemoved(work, dayOf(limit), gone);
  }
}

/** Drops the months that lie before the limit as a whole. `gone` counts the events of each organization. */
async function removeMonths(work: RetentionWork, limit: bigint, gone: Map<string, number>): Promise<void> {
  await withOwner(work.directUrl, async (client) => {
    await dropTakenOut(client, work, gone);
    // A day later than it could be: a call that was taken in just before the limit may still be on its way.
    const { olderEndMicros, months } = await listPastPartitions(client, 'events', limit - MICROS_PER_DAY);
    if (olderEndMicros === undefined) return;
    // Emptied first: to let it reach further, Postgres looks through it under the lock.
    await removeEvents(work, olderEndMicros < limit ? olderEndMicros : limit, gone);
    if (months.length > 0) await emptyPages(client, 'events');
    for (const month of months)
      if (!(await takeOutMonth(client, 'events', month, (owner) => isFolded(owner, month)))) break;
    await dropTakenOut(client, work, gone);
  });
}

/** Drops months that were taken out of the table, by this run or by one that was killed. */
async function dropTakenOut(
  client: pg.ClientBase,
  { report }: RetentionWork,
  gone: Map<string, number>,
): Promise<void> {
  for (const name of await listTakenOut(client, 'events')) {
    const dropped = await dropEventMonth(client, name);
    if (!dropped) continue;
    for (const { orgId, rows } of dropped) addTo(gone, orgId, rows);
    await report({ rows: dropped.reduce((sum, { rows }) => sum + rows, 0), partitions: [name] });
  }
}

async function removeEvents(work: RetentionWork, limit: bigint, gone: Map<string, number>): Promise<void> {
  await forEachOrganization(work, async (orgId) => {
    const removed = await deleteEvents(work, orgId, limit);
    if (removed > 0) addTo(gone, orgId, removed);
  });
}

function addTo(gone: Map<string, number>, orgId: string, rows: number): void {
  gone.set(orgId, (gone.get(orgId) ?? 0) + rows);
}

/** Adds to the log of each organization how many of its calls went, once a run. */
async function recordRemoved(
  { database }: RetentionWork,
  before: string,
  gone: ReadonlyMap<string, number>,
): Promise<void> {
  for (const [orgId, calls] of gone)
    await new OrgDb(database, orgId).transaction(async (inside) => {
      // A demo may have been removed meanwhile, and its log with it.
      if (!(await hasOrganization(inside))) return;
      await recordAudit(inside, {
        action: 'retention.ran',
        actor: { kind: 'system', id: 'retention' },
        subject: null,
        details: { calls_removed: calls, before },
        requestId: null,
      });
    });
}

/**
 * Removes the payloads of calls that are older than so many days: months that lie before the limit as a whole are
 * dropped, what is left is deleted row by row. A repeat finds nothing left.
 */
export async function removeOldPayloads(work: RetentionWork, days: number): Promise<void> {
  const { directUrl, nowMicros, report } = work;
  const limit = retentionLimit(nowMicros, days);
  const removeBefore = (micros: bigint) =>
    forEachOrganization(work, (orgId) => deletePayloads(work, orgId, micros));
  await withOwner(directUrl, async (client) => {
    const { olderEndMicros, months } = await listPastPartitions(client, 'event_payloads', limit);
    if (olderEndMicros !== undefined) {
      // Emptied first: to let it reach further, Postgres looks through it under the lock.
      await removeBefore(olderEndMicros < limit ? olderEndMicros : limit);
      if (months.length > 0) await emptyPages(client, 'event_payloads');
      for (const month of months)
        if (!(await takeOutMonth(client, 'event_payloads', month, async () => true))) break;
    }
    for (const name of await listTakenOut(client, 'event_payloads')) {
      await dropMonth(client, name);
      await report({ rows: 0, partitions: [name] });
    }
  });
  await removeBefore(limit);
}

/** A notice that was acknowledged is kept for so long after that: a year, and a month to look back on it. */
export const NOTICE_DAYS = 400n;

/**
 * Removes alerts that calls have raised once they are as old as calls are kept, acknowledged or not: they carry the
 * calls' labels. With `eventDays` undefined calls are kept for good, and so are their alerts. Notices that were
 * acknowledged long ago go too; an open one stays however old it is. A repeat finds nothing left.
 */
export async function removeOldAlerts(work: RetentionWork, eventDays: number | undefined): Promise<void> {
  if (eventDays !== undefined) {
    const limit = retentionLimit(work.nowMicros, eventDays);
    await forEachOrganization(work, (orgId) => deleteAlertsOfCalls(work, orgId, limit));
  }
  const notices = await deleteAcknowledgedNotices(
    work.database,
    work.nowMicros - NOTICE_DAYS * MICROS_PER_DAY,
  );
  if (notices > 0) await work.report({ rows: notices, partitions: [] });
}

/** What a run compared stays so long where it is not published, for people who look into a failed run. */
const GAP_RUNS_KEPT = { unpublishedDays: 7, runDays: 400, sliceDays: 200 };

/**
 * Removes what is left over of every organization's gap runs, and runs that ended long ago. A repeat continues with
 * what is left.
 */
export async function removeOldGapRuns(work: Pick<RetentionWork, 'database' | 'report'>): Promise<void> {
  const { database, report } = work;
  const { sliceDays } = GAP_RUNS_KEPT;
  await forEachOrganization(work, async (orgId) => {
    const orgDb = new OrgDb(database, orgId);
    await orgDb.transaction((inside) => clearEndedExplanations(inside));
    for (let removed = sliceDays; removed === sliceDays; ) {
      removed = await deleteUnpublishedUnits(orgDb, GAP_RUNS_KEPT);
      if (removed > 0) await report({ rows: removed, partitions: [] });
    }
  });
  const runs = await deleteOldGapRuns(database, GAP_RUNS_KEPT);
  if (runs > 0) await report({ rows: runs, partitions: [] });
}

/**
 * Of the standard period the result that holds stays, and the one before it, which somebody may be reading page by page.
 * Of other periods the results of the newest runs stay for some days.
 */
const SAVINGS_KEPT = { standardRuns: 2, otherRuns: 10, otherDays: 7 };
/** Days that runs are kept after their results are gone. */
const SAVINGS_RUN_DAYS = 90;
/** Rows of one transaction. */
const SLICE_MODELED = 5_000;

/**
 * Removes results that newer ones have replaced, slice by slice; `report` is called after each and may throw to end the
 * work there. A repeat continues with what is left.
 */
export async function emptyReplacedSavings(
  orgDb: OrgDb,
  report: (rows: number) => Promise<void>,
): Promise<void> {
  for (const id of await listReplacedSavings(orgDb, SAVINGS_KEPT)) {
    for (let removed = SLICE_MODELED; removed > 0; ) {
      removed = await orgDb.transaction((inside) => removeModeledCalls(inside, id, SLICE_MODELED));
      if (removed > 0) await report(removed);
    }
    await orgDb.transaction((inside) => emptySavingsRun(inside, id));
  }
}

/** Removes what is left over of every organization's results, and runs that ended long ago. */
export async function removeOldSavings(work: Pick<RetentionWork, 'database' | 'report'>): Promise<void> {
  const { database, report } = work;
  await forEachOrganization(work, async (orgId) => {
    const orgDb = new OrgDb(database, orgId);
    await emptyReplacedSavings(orgDb, (rows) => report({ rows, partitions: [] }));
    const runs = await deleteEmptiedSavings(orgDb, SAVINGS_RUN_DAYS);
    if (runs > 0) await report({ rows: runs, partitions: [] });
  });
}

/** Messages are kept for so long, with every attempt to deliver them. */
export const WEBHOOK_MESSAGE_DAYS = 30n;
/** Messages of one transaction. */
const SLICE_MESSAGES = 500;

/**
 * Removes messages that are older than 30 days, with their deliveries and attempts, slice by slice; one that is still to
 * be delivered to somebody stays. A repeat finds nothing left.
 */
export async function removeOldWebhookMessages(
  work: Pick<RetentionWork, 'database' | 'nowMicros' | 'report'>,
): Promise<void> {
  const beforeMicros = work.nowMicros - WEBHOOK_MESSAGE_DAYS * MICROS_PER_DAY;
  await forEachOrganization(work, async (orgId) => {
    for (let found = SLICE_MESSAGES; found === SLICE_MESSAGES; ) {
      const slice = await unscoped(work.database, 'old messages go, whosever they are', (system) =>
        deleteWebhookMessages(system, orgId, { beforeMicros, limit: SLICE_MESSAGES }),
      );
      found = slice.found;
      if (slice.removed > 0) await work.report({ rows: slice.removed, partitions: [] });
    }
  });
}
