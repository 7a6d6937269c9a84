import { type AuditAnchorDeps, anchorAuditLogs } from '../usecases/access/auditChain.js';

/** An edit of the log that is older than this is found out. */
const ANCHOR_PAUSE_MS = 3_600_000;

/**
 * Anchors the audit logs when it starts, every hour and when it stops. Several processes may do it; what both write
 * twice does no harm.
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

  /** Ends after a last round. */
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
          // Without anchors the log cannot be vouched for: somebody must act.
          this.#deps.logger.error({ err: error }, 'the audit log was not anchored; trying again in an hour'),
      ),
    );
  }

  /** One round: the number of organizations whose log has changed since the last one; at first, of all. */
  anchorHeads(): Promise<number> {
    return anchorAuditLogs(this.#deps, this.#anchored);
  }
}
