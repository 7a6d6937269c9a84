import type { Logger } from 'pino';
import type { Orchestrator, WorkflowState } from '../adapters/orchestrator.js';
import type { Database } from '../db/client.js';
import { OrgDb } from '../db/orgDb.js';
import { listUnlearnedOrganizations } from '../db/reconciliation/weightSets.js';
import {
  deleteOrphanedPages,
  insertOutboxMessage,
  listStalledRuns,
  pruneOutbox,
  type StalledRun,
} from '../db/runs/outbox.js';
import { requeueRun } from '../db/runs/runStates.js';
import { listOverdueEndpoints } from '../db/webhooks/webhookDeliveries.js';
import { DomainError } from '../domain/errors.js';
import { runMessage, runWorkflowId } from '../domain/runs/runKinds.js';
import { ClaimWatch } from '../usecases/claims/claimWatch.js';
import { endRun } from '../usecases/runs/endRun.js';

export interface SweeperOptions {
  database: Database;
  orchestrator: Orchestrator;
  logger: Logger;
  /** Wakes the dispatcher when something was put back. */
  kick(): void;
  limits?: { queuedSeconds: number; silentSeconds: number };
}

const SWEEP_MS = 60_000;
const LIMITS = { queuedSeconds: 120, silentSeconds: 180 };
/** Delivered messages are kept this long for whoever looks into a failure. */
const DELIVERED_DAYS = 7;
/** No upload takes this long: chunks of one that is older belong to nobody. */
const UPLOAD_HOURS_MAX = 2;

/**
 * Every accepted run reaches an end: what was queued and never started is started, what is running without a sign of
 * life is asked after, started again when the engine has lost it, and failed when its workflow is over. Webhooks whose
 * time is over wake their endpoint's workflow, and notices of claims their claim's (ClaimWatch): where the engine has lost it,
 * it begins anew. So is the learning of outcomes that no set knows.
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
    const { database, limits = LIMITS, kick } = this.#options;
    const stalled = await listStalledRuns(database, limits);
    for (const run of stalled) await this.#tend(run);
    const overdue = await listOverdueEndpoints(database, limits.queuedSeconds);
    for (const { orgId, endpointId } of overdue)
      await insertOutboxMessage(new OrgDb(database, orgId), 'webhook.deliver', endpointId);
    const unwatched = await this.#claims.look(limits.queuedSeconds);
    const unlearned = await listUnlearnedOrganizations(database, limits.queuedSeconds);
    for (const orgId of unlearned)
      await insertOutboxMessage(new OrgDb(database, orgId), 'weights.recompute', orgId);
    if (stalled.length + overdue.length + unwatched + unlearned.length > 0) kick();
    await pruneOutbox(database, DELIVERED_DAYS);
    await deleteOrphanedPages(database, UPLOAD_HOURS_MAX);
  }

  async #tend(run: StalledRun): Promise<void> {
    const { logger } = this.#options;
    const state = await this.#ask(run);
    // While the engine is away nothing is known of a run, and nothing is decided about it.
    if (state === undefined || state === 'running') return;
    const orgDb = new OrgDb(this.#options.database, run.orgId);
    if (state === 'unknown') {
      logger.warn({ run }, 'a run that the engine does not know is started again');
      await orgDb.transaction(async (inside) => {
        if (await requeueRun(inside, run.kind, run.id))
          await insertOutboxMessage(inside, runMessage(run.kind, 'start'), run.id);
      });
      return;
    }
    logger.error({ run }, 'a run whose workflow is over had not ended');
    const error = { code: 'run_lost', message: 'the workflow ended without a result; start the work again' };
    await endRun(orgDb, run.kind, run.id, { status: 'failed', error });
  }

  async #ask(run: StalledRun): Promise<WorkflowState | undefined> {
    try {
      return await this.#options.orchestrator.describe(runWorkflowId(run.kind, run));
    } catch (error) {
      if (error instanceof DomainError && error.code === 'workflow_engine_unavailable') return undefined;
      throw error;
    }
  }
}
