import {
  reconcileSyncSchedules,
  type SyncScheduleDeps,
  tendSyncSchedule,
} from '../usecases/billing/syncSchedules.js';
import {
  openMissedReports,
  reconcileReportSchedules,
  tendReportSchedules,
} from '../usecases/reports/reportSchedules.js';

export interface SyncSchedulesOptions extends SyncScheduleDeps {
  /** Whether PRICE_FEEDS names any. */
  readsPriceFeeds?: boolean;
}

/** Milliseconds between two comparisons; a schedule that Temporal lost is restored within this time. */
const RECONCILE_MS = 600_000;

/**
 * Keeps Temporal's schedules in line with Postgres: the retention always has one, price feeds have one where they are set, and each connection and
 * each schedule of reports has one. It compares after each change of these, when a worker starts and every ten minutes. Several processes may run it.
 */
export class SyncSchedules {
  readonly #options: SyncSchedulesOptions;
  #timer: NodeJS.Timeout | undefined;
  #working: Promise<void> | undefined;
  /** Whether this process has stored it: then it matches this version, unless it was lost. */
  #hasPutRetention = false;
  #hasPutReports = false;
  #hasPutPriceFeeds = false;

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

  /** Creates missing schedules, corrects different ones, and removes those without a connection. */
  async reconcile(): Promise<void> {
    const { orchestrator } = this.#options;
    // Opening missed reports does not need Temporal.
    await openMissedReports(this.#options);
    if (!this.#hasPutRetention || !(await orchestrator.hasRetentionSchedule())) {
      await orchestrator.putRetentionSchedule();
      this.#hasPutRetention = true;
    }
    await this.#reconcilePriceFeeds();
    await reconcileSyncSchedules(this.#options);
    await reconcileReportSchedules(this.#options, !this.#hasPutReports);
    this.#hasPutReports = true;
  }

  async #reconcilePriceFeeds(): Promise<void> {
    const { orchestrator, readsPriceFeeds = false } = this.#options;
    const exists = await orchestrator.hasPriceFeedSchedule();
    if (!readsPriceFeeds) return exists ? orchestrator.deletePriceFeedSchedule() : undefined;
    if (this.#hasPutPriceFeeds && exists) return;
    await orchestrator.putPriceFeedSchedule();
    this.#hasPutPriceFeeds = true;
  }

  /** Makes one organization's schedules of reports match their rows. Error: workflow_engine_unavailable. */
  tendReports(orgId: string): Promise<void> {
    return tendReportSchedules(this.#options, orgId);
  }

  /** Makes one connection's schedule match its row. Error: workflow_engine_unavailable. */
  tend(orgId: string, connectionId: string): Promise<void> {
    return tendSyncSchedule(this.#options, orgId, connectionId);
  }
}
