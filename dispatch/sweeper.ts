import { ClaimWatch } from '../usecases/claims/claimWatch.js';
import {
  removeOldMessages,
  type StallLimits,
  type SweepDeps,
  sweepRuns,
  wakeOverdue,
} from '../usecases/runs/sweepRuns.js';

export interface SweeperOptions extends SweepDeps {
  /** Wakes the dispatcher when something was put back. */
  kick(): void;
  limits?: StallLimits;
}

const SWEEP_MS = 60_000;
const LIMITS = { queuedSeconds: 120, silentSeconds: 180 };

/**
 * Every accepted run reaches an end: what was queued and never started is started, what is running without a sign of
 * life is asked after, started again when the engine has lost it, and failed when its workflow is over. Webhooks
 * whose time is over wake their endpoint's workflow, and notices of claims their claim's (ClaimWatch): where the
 * engine has lost it, it begins again. So is the learning of outcomes that no set knows.
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

  /** One look over everything that is open. */
  async sweep(): Promise<void> {
    const { limits = LIMITS, kick } = this.#options;
    const stalled = await sweepRuns(this.#options, limits);
    const overdue = await wakeOverdue(this.#options, limits.queuedSeconds);
    const unwatched = await this.#claims.look(limits.queuedSeconds);
    if (stalled + overdue + unwatched > 0) kick();
    await removeOldMessages(this.#options);
  }
}
