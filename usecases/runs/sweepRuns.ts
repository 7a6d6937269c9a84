import type { Logger } from 'pino';
import type { Orchestrator, WorkflowState } from '../../adapters/orchestrator.js';
import { listUnlearnedOrganizations } from '../../db/reconciliation/weightSets.js';
import {
  deleteOrphanedPages,
  insertOutboxMessage,
  listStalledRuns,
  pruneOutbox,
  type StalledRun,
} from '../../db/runs/outbox.js';
import { requeueRun } from '../../db/runs/runTable.js';
import { listOverdueEndpoints } from '../../db/webhooks/webhookDeliveries.js';
import { DomainError } from '../../domain/errors.js';
import { runMessage, runWorkflowId } from '../../domain/runs/runKinds.js';
import { orgDbOf, type UseCaseDeps } from '../useCaseDeps.js';
import { endRun } from './endRun.js';

export interface SweepDeps extends UseCaseDeps {
  orchestrator: Orchestrator;
  logger: Logger;
}

/** Longest time that a run may be queued without a message, and run without a heartbeat. */
export interface StallLimits {
  queuedSeconds: number;
  silentSeconds: number;
}

/** Days for which delivered messages are kept, for investigations. */
const DELIVERED_DAYS = 7;
/** Longer than any upload, hours: older chunks without an import are orphaned. */
const UPLOAD_HOURS_MAX = 2;

/** Starts, restarts or fails stalled runs; returns their number. */
export async function sweepRuns(deps: SweepDeps, limits: StallLimits): Promise<number> {
  const stalled = await listStalledRuns(deps.database, limits);
  for (const run of stalled) await tend(deps, run);
  return stalled.length;
}

async function tend(deps: SweepDeps, run: StalledRun): Promise<void> {
  const { logger, orchestrator } = deps;
  const state = await ask(orchestrator, run);
  // While Temporal is unreachable the state of a run is unknown, so nothing is decided about it.
  if (state === undefined || state === 'running') return;
  const orgDb = orgDbOf(deps, run.orgId);
  if (state === 'unknown') {
    logger.warn({ run }, 'a run that Temporal does not know is started again');
    await orgDb.transaction(async (inside) => {
      if (await requeueRun(inside, run.kind, run.id))
        await insertOutboxMessage(inside, runMessage(run.kind, 'start'), run.id);
    });
    return;
  }
  logger.error({ run }, 'a run whose workflow is over had not ended');
  const error = { code: 'run_lost', message: 'the workflow ended without a result; start the work again' };
  await endRun(orgDb, run.kind, run.id, { status: 'failed', error });
}

async function ask(orchestrator: Orchestrator, run: StalledRun): Promise<WorkflowState | undefined> {
  try {
    return await orchestrator.describe(runWorkflowId(run.kind, run));
  } catch (error) {
    if (error instanceof DomainError && error.code === 'workflow_engine_unavailable') return undefined;
    throw error;
  }
}

/** Wakes overdue workflows of webhook endpoints and of the computing of weights; returns their number. */
export async function wakeOverdue(deps: UseCaseDeps, seconds: number): Promise<number> {
  const overdue = await listOverdueEndpoints(deps.database, seconds);
  for (const { orgId, endpointId } of overdue)
    await insertOutboxMessage(orgDbOf(deps, orgId), 'webhook.deliver', endpointId);
  const unlearned = await listUnlearnedOrganizations(deps.database, seconds);
  for (const orgId of unlearned) await insertOutboxMessage(orgDbOf(deps, orgId), 'weights.recompute', orgId);
  return overdue.length + unlearned.length;
}

/** Removes messages that were delivered long ago, and chunks of uploads whose process died. */
export async function removeOldMessages({ database }: UseCaseDeps): Promise<void> {
  await pruneOutbox(database, DELIVERED_DAYS);
  await deleteOrphanedPages(database, UPLOAD_HOURS_MAX);
}
