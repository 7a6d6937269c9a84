import type { Logger } from 'pino';
import type { Orchestrator } from '../adapters/orchestrator.js';
import {
  findBillingConnection,
  listScheduledConnections,
  recordNextSync,
  type ScheduledConnection,
} from '../db/billing/billingConnections.js';
import type { Database } from '../db/client.js';
import { OrgDb } from '../db/orgDb.js';
import { DomainError } from '../domain/errors.js';
import { syncScheduleId } from '../workflows/contract.js';

export interface SyncSchedulesOptions {
  database: Database;
  orchestrator: Orchestrator;
  logger: Logger;
  /** Seconds between two syncs of a connection of this provider; undefined when none can be connected. */
  pollSeconds(provider: string): number | undefined;
  nowMicros(): bigint;
}

/** A schedule that was lost with the engine's store is back after this time at the latest. */
const RECONCILE_MS = 600_000;

/**
 * Schedules are derived: that of the retention is always there, Postgres says which connections there are, and the engine is made to agree, after each change
 * of a connection, when a worker starts and every ten minutes. Several processes may do it: each step is one that a
 * second process finds done.
 */
export class SyncSchedules {
  readonly #options: SyncSchedulesOptions;
  #timer: NodeJS.Timeout | undefined;
  #working: Promise<void> | undefined;
  /** Whether this process has put it: then it is as this version wants it, unless it was lost. */
  #hasPutRetention = false;

  constructor(options: SyncSchedulesOptions) {
    this.#options = options;
  }

  start(): void {
    const round = () => {
      this.#working ??= this.reconcile()
        .catch((error: unknown) =>
          this.#options.logger.warn({ err: error }, 'schedules not compared; trying again'),
        )
        .finally(() => {
          this.#working = undefined;
        });
    };
    round();
    this.#timer = setInterval(round, RECONCILE_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#working;
  }

  /** Makes what is missing, corrects what differs, and removes what Postgres does not know. */
  async reconcile(): Promise<void> {
    const { database, orchestrator } = this.#options;
    if (!this.#hasPutRetention || !(await orchestrator.hasRetentionSchedule())) {
      await orchestrator.putRetentionSchedule();
      this.#hasPutRetention = true;
    }
    // The schedules first: a connection that is made meanwhile is then not taken for one that has ended.
    const found = await orchestrator.listSyncSchedules();
    const wanted = await listScheduledConnections(database);
    for (const connection of wanted) {
      const id = syncScheduleId(connection);
      const schedule = found.get(id);
      found.delete(id);
      if (schedule?.paused === connection.paused) continue;
      await this.#put(connection).catch((error: unknown) => {
        if (error instanceof DomainError && error.code === 'workflow_engine_unavailable') throw error;
        // One that cannot be made does not hold back the others.
        this.#options.logger.error({ err: error, schedule: id }, 'a schedule could not be made');
      });
    }
    for (const scheduleId of found.keys()) await orchestrator.deleteSchedule(scheduleId);
  }

  /** Makes one connection's schedule what its row says. Error workflow_engine_unavailable. */
  async tend(orgId: string, connectionId: string): Promise<void> {
    const orgDb = new OrgDb(this.#options.database, orgId);
    const connection = await findBillingConnection(orgDb, connectionId);
    if (!connection)
      return this.#options.orchestrator.deleteSchedule(syncScheduleId({ orgId, connectionId }));
    await this.#put({
      orgId,
      connectionId,
      provider: connection.provider,
      paused: connection.status === 'paused',
    });
  }

  async #put({ orgId, connectionId, provider, paused }: ScheduledConnection): Promise<void> {
    const { orchestrator, database, pollSeconds, nowMicros } = this.#options;
    const everySeconds = pollSeconds(provider);
    if (everySeconds === undefined)
      throw new DomainError('internal_error', `no connector fetches the bills of ${provider}`);
    await orchestrator.putSyncSchedule({ orgId, connectionId, everySeconds, paused });
    await recordNextSync(
      new OrgDb(database, orgId),
      connectionId,
      paused ? null : nowMicros() + BigInt(everySeconds) * 1_000_000n,
    );
  }
}
