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

/** Seconds by which a notice is late before its claim's workflow is woken. */
const OVERDUE_SECONDS = 60;
/** Number of looks, one a minute, between two comparisons of all open claims. */
const LOOKS_A_DAY = 1_440;
const PAGE = 1_000;

/**
 * Finds claims whose workflow is lost or inactive and sends a message that wakes or starts the workflow. Each look
 * finds the claims whose notice is overdue. The first look, and one a day, also finds every open claim without a
 * running workflow, even when none of its notices is due soon. Several processes may run it: a surplus message changes
 * nothing.
 */
export class ClaimWatch {
  readonly #options: ClaimWatchOptions;
  /** Looks until the next comparison of all open claims. */
  #left = 0;

  constructor(options: ClaimWatchOptions) {
    this.#options = options;
  }

  /** Returns the number of claims whose workflows got a message. */
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
      // While Temporal is unreachable its workflows are unknown; the next look compares again.
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
