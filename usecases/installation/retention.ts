import type pg from 'pg';
import type { Logger } from 'pino';
import type { BlobStore } from '../../adapters/blobs/blobStore.js';
import { recordAudit } from '../../db/access/auditLog.js';
import { pruneIdempotencyKeys } from '../../db/access/idempotencyKeys.js';
import { pruneRateBuckets } from '../../db/access/requestLimits.js';
import { pruneSessions } from '../../db/access/sessions.js';
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
import { removeExpiredReports } from '../reports/removeExpiredReports.js';
import { removeReplacedLogos } from '../reports/removeReplacedLogos.js';
import { foldAll } from '../usage/usage.js';
import type { UseCaseDeps } from '../useCaseDeps.js';

/** An unused rate bucket is full again after this time, whatever it counts. */
const RATE_BUCKET_IDLE_SECONDS = 86_400;
/** Consecutive failed runs before an operator is warned. */
const FAILURES_WORTH_A_LOOK = 2;

export interface RetentionDeps extends UseCaseDeps {
  /** A connection string of the tables' owner without a pooler, for dropping partitions. */
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

/** Deletes records of old retention runs. */
export function forgetRetentionRuns({ database }: UseCaseDeps): Promise<number> {
  return pruneRetentionRuns(database);
}

/** Runs a retention step; when the signal is aborted, it throws the signal's reason after the current part. */
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

/** Records that a step failed, and warns after repeated failures. */
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

/** Removes old data of one kind; a step without a limit does nothing. */
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
    case 'sessions':
      return note(pruneSessions(database));
    case 'alerts':
      return removeOldAlerts(work, retention.eventDays);
    case 'webhook_messages':
      return removeOldWebhookMessages(work);
    case 'savings_runs':
      return removeOldSavings(work);
    case 'gap_runs':
      return removeOldGapRuns(work);
    case 'reports':
      return removeExpiredReports(work, blobs);
    case 'blobs':
      await removeOrphanedFiles(work, blobs);
      return removeReplacedLogos(work, blobs);
  }
}

/** Most folds of one organization before its events are removed; unfolded events wait for the next run. */
const FOLDS_MAX = 4_000;

async function forEachOrganization(
  { database }: Pick<RetentionWork, 'database'>,
  work: (orgId: string) => Promise<unknown>,
): Promise<void> {
  for (const orgId of await listOrganizationIds(database)) await work(orgId);
}

/**
 * Removes calls older than `days`, with the copies that their changes left and their price history. Complete months
 * before the limit are dropped as partitions; other rows are deleted one by one. Only folded rows are removed, so
 * totals do not change. The removed calls are summed in removed_usage, so that totals can still be compared with
 * events. A repeat finds nothing left.
 */
export async function removeOldEvents(work: RetentionWork, days: number): Promise<void> {
  const limit = retentionLimit(work.nowMicros, days);
  const gone = new Map<string, number>();
  await foldAll(work, { foldsMax: FOLDS_MAX });
  try {
    await removeMonths(work, limit, gone);
    await removeEvents(work, limit, gone);
    await forEachOrganization(work, (orgId) => deleteEventCopies(work, orgId, limit));
    await forEachOrganization(work, (orgId) => deletePriceChanges(work, orgId, limit));
  } finally {
    // The removed calls are recorded even if the rest could not be removed.
    await recordRemoved(work, dayOf(limit), gone);
  }
}

/** Drops the months that lie completely before the limit. `gone` counts the removed events of each organization. */
async function removeMonths(work: RetentionWork, limit: bigint, gone: Map<string, number>): Promise<void> {
  await withOwner(work.directUrl, async (client) => {
    await dropTakenOut(client, work, gone);
    // One day later than necessary: a call that was accepted just before the limit may still be in transit.
    const { olderEndMicros, months } = await listPastPartitions(client, 'events', limit - MICROS_PER_DAY);
    if (olderEndMicros === undefined) return;
    // The rows are deleted first: to change its bound, Postgres scans the partition under the lock.
    await removeEvents(work, olderEndMicros < limit ? olderEndMicros : limit, gone);
    if (months.length > 0) await emptyPages(client, 'events');
    for (const month of months)
      if (!(await takeOutMonth(client, 'events', month, (owner) => isFolded(owner, month)))) break;
    await dropTakenOut(client, work, gone);
  });
}

/** Drops partitions that this run, or a killed one, detached from the table. */
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

/** Adds the number of removed calls to each organization's log, once a run. */
async function recordRemoved(
  { database }: RetentionWork,
  before: string,
  gone: ReadonlyMap<string, number>,
): Promise<void> {
  for (const [orgId, calls] of gone)
    await new OrgDb(database, orgId).transaction(async (inside) => {
      // A demo and its log may have been removed meanwhile.
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
 * Removes payloads of calls older than `days`: complete months before the limit are dropped as partitions, other rows
 * are deleted one by one. A repeat finds nothing left.
 */
export async function removeOldPayloads(work: RetentionWork, days: number): Promise<void> {
  const { directUrl, nowMicros, report } = work;
  const limit = retentionLimit(nowMicros, days);
  const removeBefore = (micros: bigint) =>
    forEachOrganization(work, (orgId) => deletePayloads(work, orgId, micros));
  await withOwner(directUrl, async (client) => {
    const { olderEndMicros, months } = await listPastPartitions(client, 'event_payloads', limit);
    if (olderEndMicros !== undefined) {
      // The rows are deleted first: to change its bound, Postgres scans the partition under the lock.
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

/** Acknowledged notices are kept for a year and a month of hindsight. */
export const NOTICE_DAYS = 400n;

/**
 * Removes alerts of calls once they are as old as calls are kept, acknowledged or not, because they contain the calls'
 * labels. With `eventDays` undefined calls and their alerts are kept forever. Notices that were acknowledged long ago
 * are removed too; open ones stay at any age. A repeat finds nothing left.
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

/** Retention of unpublished results of gap runs, for investigations of failed runs. */
const GAP_RUNS_KEPT = { unpublishedDays: 7, runDays: 400, sliceDays: 200 };

/** Removes remains of all organizations' gap runs, and runs that ended long ago. A repeat continues with the rest. */
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
 * The standard period keeps its current result and the previous one, which a client may still be paging through. Other
 * periods keep the results of the newest runs for some days.
 */
const SAVINGS_KEPT = { standardRuns: 2, otherRuns: 10, otherDays: 7 };
/** Days for which runs are kept after their results are removed. */
const SAVINGS_RUN_DAYS = 90;
/** Rows of one transaction. */
const SLICE_MODELED = 5_000;

/**
 * Removes results that newer ones have replaced, in slices; `report` is called after each and may throw to stop. A
 * repeat continues with the rest.
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

/** Removes remains of all organizations' savings results, and runs that ended long ago. */
export async function removeOldSavings(work: Pick<RetentionWork, 'database' | 'report'>): Promise<void> {
  const { database, report } = work;
  await forEachOrganization(work, async (orgId) => {
    const orgDb = new OrgDb(database, orgId);
    await emptyReplacedSavings(orgDb, (rows) => report({ rows, partitions: [] }));
    const runs = await deleteEmptiedSavings(orgDb, SAVINGS_RUN_DAYS);
    if (runs > 0) await report({ rows: runs, partitions: [] });
  });
}

/** Days for which messages are kept, with every delivery attempt. */
export const WEBHOOK_MESSAGE_DAYS = 30n;
/** Messages of one transaction. */
const SLICE_MESSAGES = 500;

/**
 * Removes messages older than 30 days, with their deliveries and attempts, in slices; messages with a pending delivery
 * stay. A repeat finds nothing left.
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
