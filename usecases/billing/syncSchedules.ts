import type { Logger } from 'pino';
import type { Orchestrator } from '../../adapters/orchestrator.js';
import {
  findBillingConnection,
  listScheduledConnections,
  recordNextSync,
  type ScheduledConnection,
} from '../../db/billing/billingConnections.js';
import { DomainError } from '../../domain/errors.js';
import { syncScheduleId } from '../../workflows/contract.js';
import { orgDbOf, type UseCaseDeps } from '../useCaseDeps.js';

export interface SyncScheduleDeps extends UseCaseDeps {
  orchestrator: Orchestrator;
  logger: Logger;
  /** Seconds between two syncs of a connection of this provider; undefined when none can be connected. */
  pollSeconds(provider: string): number | undefined;
  nowMicros(): bigint;
}

/**
 * Makes the engine's schedules of syncs what the connections in Postgres say: makes those that are missing, corrects those
 * that differ and removes the others. Each step is one that a second process finds done.
 */
export async function reconcileSyncSchedules(deps: SyncScheduleDeps): Promise<void> {
  const { database, orchestrator, logger } = deps;
  // The schedules first: a connection that is made meanwhile is then not taken for one that has ended.
  const found = await orchestrator.listSyncSchedules();
  for (const connection of await listScheduledConnections(database)) {
    const id = syncScheduleId(connection);
    const schedule = found.get(id);
    found.delete(id);
    if (schedule?.paused === connection.paused) continue;
    await putSchedule(deps, connection).catch((error: unknown) => {
      if (error instanceof DomainError && error.code === 'workflow_engine_unavailable') throw error;
      // One that cannot be made does not hold back the others.
      logger.error({ err: error, schedule: id }, 'a schedule could not be made');
    });
  }
  for (const scheduleId of found.keys()) await orchestrator.deleteSchedule(scheduleId);
}

/** Makes one connection's schedule what its row says. Error workflow_engine_unavailable. */
export async function tendSyncSchedule(
  deps: SyncScheduleDeps,
  orgId: string,
  connectionId: string,
): Promise<void> {
  const connection = await findBillingConnection(orgDbOf(deps, orgId), connectionId);
  if (!connection) return deps.orchestrator.deleteSchedule(syncScheduleId({ orgId, connectionId }));
  const { provider, status } = connection;
  await putSchedule(deps, { orgId, connectionId, provider, paused: status === 'paused' });
}

async function putSchedule(deps: SyncScheduleDeps, connection: ScheduledConnection): Promise<void> {
  const { orgId, connectionId, provider, paused } = connection;
  const everySeconds = deps.pollSeconds(provider);
  if (everySeconds === undefined)
    throw new DomainError('internal_error', `no connector fetches the bills of ${provider}`);
  await deps.orchestrator.putSyncSchedule({ orgId, connectionId, everySeconds, paused });
  const next = paused ? null : deps.nowMicros() + BigInt(everySeconds) * 1_000_000n;
  await recordNextSync(orgDbOf(deps, orgId), connectionId, next);
}
