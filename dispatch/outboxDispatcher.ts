import type { Logger } from 'pino';
import type { Orchestrator } from '../adapters/orchestrator.js';
import type { Database } from '../db/client.js';
import { OrgDb } from '../db/orgDb.js';
import {
  claimOutboxMessages,
  killOutboxMessage,
  markOutboxDispatched,
  type OutboxKind,
  type OutboxMessage,
  retryOutboxMessage,
} from '../db/runs/outbox.js';
import { noteRunWaitingForEngine } from '../db/runs/runStates.js';
import { DomainError } from '../domain/errors.js';
import { readRunMessage } from '../domain/runs/runKinds.js';
import { endRun } from '../usecases/runs/endRun.js';
import type { SyncSchedules } from './syncSchedules.js';

export interface OutboxDispatcherOptions {
  database: Database;
  orchestrator: Orchestrator;
  logger: Logger;
  /** Makes the schedules of connections what their rows say. */
  schedules: SyncSchedules;
  /** Told how many messages a look took up; for metrics. */
  onTick?(taken: number): void;
  /** Refusals after which a message is given up. */
  attemptsMax?: number;
}

/** The poll that guarantees delivery; a kick only shortens it. */
const POLL_MS = 1_000;
const BATCH = 50;
/** Deliveries of one batch at once. */
const PARALLEL = 8;
/** A claimed message that its dispatcher never answered for comes back after this time. */
const LEASE_SECONDS = 30;
/** Wait after a failed delivery: 1 s more for each attempt, so that little waits long once the engine is back. */
const RETRY_SECONDS_MAX = 5;
/** Deliveries that fail for good, not for the engine being away, before a message is given up. */
const ATTEMPTS_MAX = 10;

/**
 * Delivers the outbox: starts and cancels workflows for rows that were committed before. At least once, with ids that
 * make a second delivery the same one. Several dispatchers may run.
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

  /** Looks now instead of at the next poll. */
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

  /** Finishes what is under way; what is left waits for the next process. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#working;
  }

  async #tick(): Promise<void> {
    const { database, logger, onTick } = this.#options;
    try {
      const messages = await claimOutboxMessages(database, BATCH, LEASE_SECONDS);
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
      await markOutboxDispatched(this.#options.database, group);
    } catch (error) {
      for (const message of group) await this.#putBack(message, error);
    }
  }

  /** For a later attempt, or given up. */
  async #putBack(message: OutboxMessage, error: unknown): Promise<void> {
    const { database, logger } = this.#options;
    const reason = error instanceof Error ? error.message : String(error);
    const isAway =
      error instanceof DomainError &&
      (error.code === 'workflow_engine_unavailable' || error.code === 'service_unavailable');
    if (isAway || message.attempts < (this.#options.attemptsMax ?? ATTEMPTS_MAX)) {
      logger.warn(
        { err: error, kind: message.kind, attempts: message.attempts },
        'outbox message not delivered; trying again',
      );
      await retryOutboxMessage(database, message, reason, Math.min(RETRY_SECONDS_MAX, message.attempts));
      const about = readRunMessage(message.kind);
      if (about?.verb === 'start')
        await noteRunWaitingForEngine(this.#orgDb(message), about.kind, message.subjectId);
      return;
    }
    logger.error({ err: error, kind: message.kind, attempts: message.attempts }, 'outbox message given up');
    await killOutboxMessage(database, message, reason);
    await this.#fail(message, reason);
  }

  #orgDb(message: OutboxMessage): OrgDb {
    return new OrgDb(this.#options.database, message.orgId);
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
    return schedules.tend(orgId, subjectId);
  }

  /** What can never be started must not wait for ever. */
  async #fail(message: OutboxMessage, reason: string): Promise<void> {
    const about = readRunMessage(message.kind);
    if (about?.verb !== 'start') return;
    const error = {
      code: 'dispatch_failed',
      message: `the workflow engine refused to start the work: ${reason}`,
    };
    await endRun(this.#orgDb(message), about.kind, message.subjectId, { status: 'failed', error });
  }
}

/** Messages that one call to the engine delivers. */
type MessageGroup = readonly [OutboxMessage, ...OutboxMessage[]];

/** Messages that wake a workflow: several at a time are one word to it. */
const WAKINGS: ReadonlySet<OutboxKind> = new Set(['webhook.deliver', 'claim.wake', 'weights.recompute']);

/**
 * Messages that wake the same workflow are one group: each transaction that told of something has left one, and a burst
 * of them is one word to it. Every other message is delivered by itself.
 */
function groupWakings(messages: readonly OutboxMessage[]): MessageGroup[] {
  const groups = new Map<string, [OutboxMessage, ...OutboxMessage[]]>();
  for (const message of messages) {
    const { kind, orgId, subjectId, id } = message;
    const about = kind === 'weights.recompute' ? '' : subjectId;
    const name = WAKINGS.has(kind) ? `${kind} ${orgId} ${about}` : `${orgId} ${id}`;
    const group = groups.get(name);
    if (group) group.push(message);
    else groups.set(name, [message]);
  }
  return [...groups.values()];
}
