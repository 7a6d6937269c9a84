import {
  reconcileSyncSchedules,
  type SyncScheduleDeps,
  tendSyncSchedule,
} from '../usecases/billing/syncSchedules.js';

export type SyncSchedulesOptions = SyncScheduleDeps;

/** A schedule that was lost with the engine's store is back after this time at the latest. */
const RECONCILE_MS = 600_000;

/**
 * Schedules are derived: that of the retention is always there, those of syncs follow the connections, and the engine is
 * made to agree after each change of a connection, when a worker starts and every ten minutes. Several processes may do it.
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
    const { orchestrator } = this.#options;
    if (!this.#hasPutRetention || !(await orchestrator.hasRetentionSchedule())) {
      await orchestrator.putRetentionSchedule();
      this.#hasPutRetention = true;
    }
    await reconcileSyncSchedules(this.#options);
  }

  /** Makes one connection's schedule what its row says. Error workflow_engine_unavailable. */
  tend(orgId: string, connectionId: string): Promise<void> {
    return tendSyncSchedule(this.#options, orgId, connectionId);
  }
}
