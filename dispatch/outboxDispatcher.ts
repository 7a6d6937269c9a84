import type { Logger } from 'pino';
import type { Orchestrator } from '../adapters/orchestrator.js';
import { DomainError } from '../domain/errors.js';
import {
  groupWakings,
  type MessageGroup,
  type OutboxMessage,
  readRunMessage,
} from '../domain/runs/runKinds.js';
import {
  giveMessageUp,
  noteDelivered,
  putMessageBack,
  takeDueMessages,
} from '../usecases/runs/outboxDelivery.js';
import type { UseCaseDeps } from '../usecases/useCaseDeps.js';
import type { SyncSchedules } from './syncSchedules.js';

export interface OutboxDispatcherOptions extends UseCaseDeps {
  orchestrator: Orchestrator;
  logger: Logger;
  /** Makes the schedules of connections match their rows. */
  schedules: SyncSchedules;
  /** Called with the number of messages that a poll took; for metrics. */
  onTick?(taken: number): void;
  /** Failed attempts after which a message is given up. */
  attemptsMax?: number;
}

/** Milliseconds between polls, which guarantee delivery; a kick only shortens the wait. */
const POLL_MS = 1_000;
const BATCH = 50;
/** Deliveries of one batch at once. */
const PARALLEL = 8;
/**
 * Longest wait after a failed delivery, seconds: it grows by 1 s for each attempt, and stays short so that delivery
 * resumes soon after an outage of Temporal.
 */
const RETRY_SECONDS_MAX = 5;
/** Failed deliveries, not counting outages of Temporal, before a message is given up. */
const ATTEMPTS_MAX = 10;

/**
 * Delivers the outbox: starts and cancels workflows for committed rows. Delivery is at least once, and fixed ids make a
 * second delivery harmless. Several dispatchers may run.
 */
export class OutboxDispatcher {
  readonly #options: OutboxDispatcherOptions;
  #timer: NodeJS.Timeout | undefined;
  #working: Promise<void> | undefined;
  #again = false;
  #stopped = false;

  constructor(options: OutboxDispatcherOptions) {
    this.#options = options;
  }

  start(): void {
    this.kick();
  }

  /** Polls immediately. */
  kick(): void {
    if (this.#stopped) return;
    if (this.#working) {
      this.#again = true;
      return;
    }
    clearTimeout(this.#timer);
    this.#working = this.#tick().finally(() => {
      this.#working = undefined;
      if (this.#stopped) return;
      if (this.#again) {
        this.#again = false;
        this.kick();
      } else this.#timer = setTimeout(() => this.kick(), POLL_MS);
    });
  }

  /** Finishes deliveries in progress; the next process delivers the rest. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#working;
  }

  async #tick(): Promise<void> {
    const { logger, onTick } = this.#options;
    try {
      const messages = await takeDueMessages(this.#options, BATCH);
      if (messages.length === BATCH) this.#again = true;
      const queue = groupWakings(messages);
      const lane = async () => {
        for (let group = queue.shift(); group; group = queue.shift()) await this.#deliver(group);
      };
      await Promise.all(Array.from({ length: Math.min(PARALLEL, queue.length) }, lane));
      onTick?.(messages.length);
    } catch (error) {
      logger.warn({ err: error }, 'outbox not read; trying again');
    }
  }

  async #deliver(group: MessageGroup): Promise<void> {
    try {
      await this.#send(group[0]);
      await noteDelivered(this.#options, group);
    } catch (error) {
      for (const message of group) await this.#putBack(message, error);
    }
  }

  /** Schedules another attempt for a message, or gives it up. */
  async #putBack(message: OutboxMessage, error: unknown): Promise<void> {
    const { logger } = this.#options;
    const reason = error instanceof Error ? error.message : String(error);
    const isAway =
      error instanceof DomainError &&
      (error.code === 'workflow_engine_unavailable' || error.code === 'service_unavailable');
    if (isAway || message.attempts < (this.#options.attemptsMax ?? ATTEMPTS_MAX)) {
      logger.warn(
        { err: error, kind: message.kind, attempts: message.attempts },
        'outbox message not delivered; trying again',
      );
      await putMessageBack(this.#options, message, reason, Math.min(RETRY_SECONDS_MAX, message.attempts));
      return;
    }
    logger.error({ err: error, kind: message.kind, attempts: message.attempts }, 'outbox message given up');
    await giveMessageUp(this.#options, message, reason);
  }

  async #send({ kind, orgId, subjectId }: OutboxMessage): Promise<void> {
    const { orchestrator, schedules } = this.#options;
    const about = readRunMessage(kind);
    const run = { orgId, id: subjectId };
    if (about?.verb === 'start') return orchestrator.startRun(about.kind, run);
    if (about?.verb === 'cancel') return orchestrator.cancelRun(about.kind, run);
    if (kind === 'webhook.deliver') return orchestrator.wakeWebhookDelivery({ orgId, endpointId: subjectId });
    if (kind === 'claim.wake') return orchestrator.wakeClaim({ orgId, claimId: subjectId });
    if (kind === 'weights.recompute') return orchestrator.pokeWeightRecompute({ orgId });
    if (kind === 'report.schedule') return schedules.tendReports(orgId);
    return schedules.tend(orgId, subjectId);
  }
}
