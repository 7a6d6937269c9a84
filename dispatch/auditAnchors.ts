import type { Logger } from 'pino';
import { listAuditHeads } from '../db/access/auditHeads.js';
import type { Database } from '../db/client.js';
import {
  type AuditAnchor,
  anchorLine,
  anchorText,
  type Signature,
} from '../domain/access/auditLog/anchors.js';
import { microsFromDate } from '../domain/period.js';
import type { MonthlyLines } from '../platform/monthlyLines.js';

/** An edit of the log that is older than this is found out. */
const ANCHOR_PAUSE_MS = 3_600_000;

export interface AuditAnchorsOptions {
  database: Database;
  /** Where the anchors are written: outside the database. */
  files: MonthlyLines;
  /** Signs with a key that is not in the database. */
  sign(text: string): Signature;
  logger: Logger;
  /** Anchors older than this are removed, days: the rows that they were made of are gone by then. */
  keepDays: number;
}

/**
 * Writes where each organization's audit log has come to outside the database, when it starts, every hour and when it
 * stops: into a file and as a line of the service's log. Whoever can change every row in the database can change
 * neither unseen. Several processes may do it; what both write twice does no harm.
 */
export class AuditAnchors {
  readonly #options: AuditAnchorsOptions;
  readonly #anchored = new Map<string, string>();
  #timer: NodeJS.Timeout | undefined;
  #working: Promise<void> = Promise.resolve();

  constructor(options: AuditAnchorsOptions) {
    this.#options = options;
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
          this.#options.logger.error(
            { err: error },
            'the audit log was not anchored; trying again in an hour',
          ),
      ),
    );
  }

  /** One round: anchors what has changed since the last one, at first everything; returns how many organizations that were. */
  async anchorHeads(): Promise<number> {
    const { database, files, sign, logger, keepDays } = this.#options;
    const now = new Date();
    const changed = (await listAuditHeads(database)).filter(
      ({ orgId, seq, hash }) => this.#anchored.get(orgId) !== `${seq} ${hash}`,
    );
    const lines = changed.map(({ orgId, seq, hash }) => {
      const anchor: AuditAnchor = { kind: 'head', orgId, seq, hash, atMicros: microsFromDate(now) };
      return anchorLine(anchor, sign(anchorText(anchor)));
    });
    // The log first: where the folder cannot be written, its lines are the anchors.
    for (const line of lines) logger.info(line, 'audit log anchored');
    files.append(
      lines.map((line) => JSON.stringify(line)),
      now,
    );
    for (const { orgId, seq, hash } of changed) this.#anchored.set(orgId, `${seq} ${hash}`);
    files.prune(keepDays, now);
    return changed.length;
  }
}
