import { ClaimWatch } from '../usecases/claims/claimWatch.js';
import {
  removeOldMessages,
  type StallLimits,
  type SweepDeps,
  sweepRuns,
  wakeOverdue,
} from '../usecases/runs/sweepRuns.js';

export interface SweeperOptions extends SweepDeps {
  /** Wakes the dispatcher when a message was put back. */
  kick(): void;
  limits?: StallLimits;
}

const SWEEP_MS = 60_000;
const LIMITS = { queuedSeconds: 120, silentSeconds: 180 };

/**
 * Ensures that every accepted run ends. It starts runs that were queued and never started. For running runs without a
 * heartbeat it asks Temporal: lost ones are started again, and runs whose workflow has ended fail. Overdue webhooks
 * wake their endpoint's workflow, overdue notices their claim's (ClaimWatch), and outcomes without weights the
 * computation of weights; workflows that Temporal has lost start again.
 */
export class Sweeper {
  readonly #options: SweeperOptions;
  readonly #claims: ClaimWatch;
  #timer: NodeJS.Timeout | undefined;
  #working: Promise<void> | undefined;

  constructor(options: SweeperOptions) {
    this.#options = options;
    this.#claims = new ClaimWatch(options);
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#working ??= this.sweep()
        .catch((error: unknown) => this.#options.logger.warn({ err: error }, 'sweep failed; trying again'))
        .finally(() => {
          this.#working = undefined;
        });
    }, SWEEP_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#working;
  }

  /** Checks everything that is open, once. */
  async sweep(): Promise<void> {
    const { limits = LIMITS, kick } = this.#options;
    const stalled = await sweepRuns(this.#options, limits);
    const overdue = await wakeOverdue(this.#options, limits.queuedSeconds);
    const unwatched = await this.#claims.look(limits.queuedSeconds);
    if (stalled + overdue + unwatched > 0) kick();
    await removeOldMessages(this.#options);
  }
}
