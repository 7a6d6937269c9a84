import { type AuditAnchorDeps, anchorAuditLogs } from '../usecases/access/auditChain.js';

/** Milliseconds between anchors: an edit of log rows older than this is detected. */
const ANCHOR_PAUSE_MS = 3_600_000;

/**
 * Anchors the audit logs at its start, every hour and at its stop. Several processes may run it; duplicate anchors are
 * harmless.
 */
export class AuditAnchors {
  readonly #deps: AuditAnchorDeps;
  readonly #anchored = new Map<string, string>();
  #timer: NodeJS.Timeout | undefined;
  #working: Promise<void> = Promise.resolve();

  constructor(deps: AuditAnchorDeps) {
    this.#deps = deps;
  }

  start(): void {
    this.#queueRound();
    this.#timer = setInterval(() => this.#queueRound(), ANCHOR_PAUSE_MS);
  }

  /** Stops after a last round. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    this.#queueRound();
    await this.#working;
  }

  #queueRound(): void {
    this.#working = this.#working.then(() =>
      this.anchorHeads().then(
        () => undefined,
        (error: unknown) =>
          // Without anchors the log cannot be verified, so an operator must act.
          this.#deps.logger.error({ err: error }, 'the audit log was not anchored; trying again in an hour'),
      ),
    );
  }

  /**
   * One round: returns the number of organizations whose log has changed since the last one; the first round counts
   * all.
   */
  anchorHeads(): Promise<number> {
    return anchorAuditLogs(this.#deps, this.#anchored);
  }
}
