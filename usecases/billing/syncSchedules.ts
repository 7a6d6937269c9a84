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
  /** Seconds between two syncs of a connection of this provider; undefined: the provider cannot be connected. */
  pollSeconds(provider: string): number | undefined;
  nowMicros(): bigint;
}

/**
 * Makes Temporal's sync schedules match the connections in Postgres: creates missing ones, corrects different ones and
 * removes the others. Every step is idempotent, so a second process may run it too.
 */
export async function reconcileSyncSchedules(deps: SyncScheduleDeps): Promise<void> {
  const { database, orchestrator, logger } = deps;
  // Schedules are listed before connections, so that a connection created meanwhile is not taken for an ended one.
  const found = await orchestrator.listSyncSchedules();
  for (const connection of await listScheduledConnections(database)) {
    const id = syncScheduleId(connection);
    const schedule = found.get(id);
    found.delete(id);
    if (schedule?.paused === connection.paused) continue;
    await putSchedule(deps, connection).catch((error: unknown) => {
      if (error instanceof DomainError && error.code === 'workflow_engine_unavailable') throw error;
      // A schedule that cannot be created does not hold back the others.
      logger.error({ err: error, schedule: id }, 'a schedule could not be made');
    });
  }
  for (const scheduleId of found.keys()) await orchestrator.deleteSchedule(scheduleId);
}

/** Makes one connection's schedule match its row. Error: workflow_engine_unavailable. */
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
