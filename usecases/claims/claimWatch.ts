import type { Logger } from 'pino';
import type { Orchestrator } from '../../adapters/orchestrator.js';
import { listOpenClaims, listOverdueClaims, type WatchedClaim } from '../../db/claims/claims.js';
import type { Database } from '../../db/client.js';
import { OrgDb } from '../../db/orgDb.js';
import { insertOutboxMessage } from '../../db/runs/outbox.js';
import { DomainError } from '../../domain/errors.js';
import { claimWorkflowId } from '../../workflows/contract.js';

interface ClaimWatchOptions {
  database: Database;
  orchestrator: Pick<Orchestrator, 'listClaimWorkflows'>;
  logger: Logger;
}

/** A notice that is late by that is looked after. */
const OVERDUE_SECONDS = 60;
/** Looks, one a minute, from one comparison of all open claims to the next. */
const LOOKS_A_DAY = 1_440;
const PAGE = 1_000;

/**
 * Finds claims whose workflow is lost, or does not do what it should, and has word given to it, which starts it where there
 * is none: at each look those whose notice is overdue, and at the first one and once a day those of which none runs, also
 * where nothing of them is due for long. Several processes may do it: a word too many changes nothing.
 */
export class ClaimWatch {
  readonly #options: ClaimWatchOptions;
  /** Looks that are left until everything is compared. */
  #left = 0;

  constructor(options: ClaimWatchOptions) {
    this.#options = options;
  }

  /** How many claims word was left for. */
  async look(overdueSeconds: number): Promise<number> {
    const overdue = await listOverdueClaims(
      this.#options.database,
      Math.min(overdueSeconds, OVERDUE_SECONDS),
    );
    await this.#leaveWord(overdue);
    if (this.#left > 0) {
      this.#left -= 1;
      return overdue.length;
    }
    return overdue.length + (await this.#compare());
  }

  async #compare(): Promise<number> {
    const { database, orchestrator, logger } = this.#options;
    try {
      const running = await orchestrator.listClaimWorkflows();
      let count = 0;
      for (let after: WatchedClaim | undefined; ; ) {
        const open = await listOpenClaims(database, after, PAGE);
        const lost = open.filter((claim) => !running.has(claimWorkflowId(claim)));
        await this.#leaveWord(lost);
        count += lost.length;
        after = open.at(-1);
        if (open.length < PAGE) break;
      }
      this.#left = LOOKS_A_DAY;
      if (count > 0) logger.info({ claims: count }, 'open claims without a workflow get one');
      return count;
    } catch (error) {
      // While the engine is away nothing is known of its workflows; the next look compares.
      if (!(error instanceof DomainError) || error.code !== 'workflow_engine_unavailable')
        logger.warn({ err: error }, 'open claims not compared with their workflows; trying again');
      return 0;
    }
  }

  async #leaveWord(claims: readonly WatchedClaim[]): Promise<void> {
    for (const { orgId, claimId } of claims)
      await insertOutboxMessage(new OrgDb(this.#options.database, orgId), 'claim.wake', claimId);
  }
}
