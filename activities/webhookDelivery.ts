import { setTimeout as sleep } from 'node:timers/promises';
import { Context } from '@temporalio/activity';
import { OrgDb } from '../db/orgDb.js';
import {
  type ClaimedDelivery,
  claimDueDeliveries,
  type EndedAttempt,
  findNextAttemptMs,
  giveUpSpentDeliveries,
  postponeDeliveries,
  recordAttempts,
} from '../db/webhooks/webhookDeliveries.js';
import {
  cancelPendingDeliveries,
  findWebhookEndpoint,
  type WebhookEndpoint,
} from '../db/webhooks/webhookEndpoints.js';
import { DomainError } from '../domain/errors.js';
import { publicId } from '../domain/ids.js';
import type { AttemptOutcome } from '../domain/webhooks/attempt.js';
import { attemptsMax, nextDelaySeconds, pauseSeconds } from '../domain/webhooks/retrySchedule.js';
import { openSecrets, signingSecrets } from '../domain/webhooks/secret.js';
import type { ActivityDeps } from './deps.js';
import { withFailures } from './failures.js';
import { Gate } from './gate.js';
import { withHeartbeat } from './heartbeat.js';
import { tellEndpointFailing, tellEndpointGone } from './webhookNotices.js';
import { WEBHOOK_PACE, type WebhookPace } from './webhookPace.js';

interface EndpointRef {
  orgId: string;
  endpointId: string;
}

/** Transactions of webhooks in a process at once: however many endpoints are sent to, the other work has connections. */
const TRANSACTIONS_MAX = 4;
/** While the database does not answer, what was sent is kept in mind for about half of a lease. */
const ROUND_TRIES = 10;
const ROUND_PAUSE_MS = 1_000;

/** The effects of the delivery of webhooks. */
export function createWebhookActivities(deps: ActivityDeps) {
  const gate = new Gate(TRANSACTIONS_MAX);
  return {
    /**
     * Sends what is due at an endpoint, several at once, for a while; says in how many milliseconds the next attempt is
     * due, null when nothing is pending.
     */
    sendDueWebhooks: ({ orgId, endpointId }: EndpointRef): Promise<{ nextInMs: number | null }> =>
      // An attempt is counted before it is sent, and a delivery under way is nobody else's until its lease is over: a
      // repeat takes up what is left.
      withFailures(() =>
        withHeartbeat(() => new SendingPass(deps, gate, new OrgDb(deps.database, orgId), endpointId).run()),
      ),
  };
}

/** What is begun next, with what its attempts need. */
interface Round {
  claimed: ClaimedDelivery[];
  url: string;
  secrets: readonly string[];
}

const NOTHING: Round = { claimed: [], url: '', secrets: [] };

/**
 * One pass over an endpoint's due messages. Each round writes down in one transaction what has ended and takes up as much
 * as there is room for, so a slow answer holds up one lane and no other. The endpoint is read anew each round: one that
 * is switched off, moved or given another secret meanwhile is so for the next message.
 */
class SendingPass {
  readonly #deps: ActivityDeps;
  readonly #gate: Gate;
  readonly #orgDb: OrgDb;
  readonly #endpointId: string;
  readonly #pace: WebhookPace;
  /** Ends attempts: the process is stopping, or this pass has failed. */
  readonly #stop = new AbortController();
  readonly #signal = AbortSignal.any([Context.current().cancellationSignal, this.#stop.signal]);
  readonly #underWay = new Set<Promise<void>>();
  #ended: EndedAttempt[] = [];

  constructor(deps: ActivityDeps, gate: Gate, orgDb: OrgDb, endpointId: string) {
    this.#deps = deps;
    this.#gate = gate;
    this.#orgDb = orgDb;
    this.#endpointId = endpointId;
    this.#pace = deps.webhookPace ?? WEBHOOK_PACE;
  }

  async run(): Promise<{ nextInMs: number | null }> {
    const untilMs = performance.now() + this.#pace.passMs;
    try {
      for (;;) {
        const takesMore = !this.#signal.aborted && performance.now() < untilMs;
        const round = await this.#turnPatiently(takesMore ? this.#pace.lanes - this.#underWay.size : 0);
        for (const claimed of round.claimed) this.#begin(claimed, round);
        // What has ended while the others were written down is written down in a round of its own.
        if (this.#ended.length > 0) continue;
        if (this.#underWay.size === 0) break;
        await Promise.race(this.#underWay);
      }
    } finally {
      this.#stop.abort();
      await Promise.allSettled(this.#underWay);
    }
    return { nextInMs: await findNextAttemptMs(this.#orgDb, this.#endpointId) };
  }

  #begin(claimed: ClaimedDelivery, { url, secrets }: Round): void {
    const attempt = this.#attempt(claimed, url, secrets).finally(() => this.#underWay.delete(attempt));
    // What it throws ends the pass by the race, or is a part of its end.
    attempt.catch(() => undefined);
    this.#underWay.add(attempt);
  }

  async #attempt(claimed: ClaimedDelivery, url: string, secrets: readonly string[]): Promise<void> {
    const { body } = claimed;
    const messageId = publicId('msg', claimed.messageId);
    const outcome = await this.#deps.deliverWebhook({ url, messageId, body, secrets, signal: this.#signal });
    this.#ended.push({ claimed, outcome, next: this.#nextOf(claimed, outcome) });
  }

  #nextOf({ attempts }: ClaimedDelivery, outcome: AttemptOutcome): EndedAttempt['next'] {
    // Nobody knows what the receiver saw of it. It is due again at once, elsewhere.
    if (this.#signal.aborted && outcome.httpStatus === null) return { delaySeconds: 0, counted: false };
    if (outcome.result === 'gone') return { delaySeconds: null, counted: true };
    const { retryAfterSeconds } = outcome;
    const { delaysSeconds } = this.#pace;
    return {
      delaySeconds: nextDelaySeconds(attempts, { retryAfterSeconds, random: Math.random() }, delaysSeconds),
      counted: true,
    };
  }

  /**
   * A receiver that has taken a message has taken it: a database that is away for a moment is no reason to send it again.
   * The round is one transaction, and writing the same outcome down twice writes it down once.
   */
  async #turnPatiently(free: number): Promise<Round> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#gate.pass(() => this.#turn(free));
      } catch (error) {
        const isAway = error instanceof DomainError && error.code === 'service_unavailable';
        if (!isAway || tries === ROUND_TRIES || this.#signal.aborted) throw error;
        await sleep(ROUND_PAUSE_MS);
      }
    }
  }

  /** Writes down what has ended, and takes up to `free` deliveries. */
  async #turn(free: number): Promise<Round> {
    // A copy: more of them end while these are written down.
    const ended = [...this.#ended];
    if (ended.length === 0 && free === 0) return NOTHING;
    const round = await this.#orgDb.transaction(async (inside) => {
      // First of all, since it takes the organization's row.
      if (ended.some(({ outcome }) => outcome.result === 'gone'))
        await tellEndpointGone(inside, this.#endpointId);
      // Sent together: what a lane waits for between two messages is this transaction.
      const [endpoint] = await Promise.all([
        free === 0 ? undefined : findWebhookEndpoint(inside, this.#endpointId),
        this.#writeDown(inside, ended),
      ]);
      return free === 0 ? NOTHING : this.#takeUp(inside, endpoint, free);
    });
    this.#ended = this.#ended.slice(ended.length);
    return round;
  }

  async #writeDown(inside: OrgDb, ended: readonly EndedAttempt[]): Promise<void> {
    if (ended.length === 0) return;
    const [givenUp] = await recordAttempts(inside, this.#endpointId, ended);
    if (givenUp) await tellEndpointFailing(inside, this.#endpointId, givenUp);
    const pause = Math.max(...ended.map(({ outcome }) => pauseSeconds(outcome.retryAfterSeconds)));
    if (pause > 0) await postponeDeliveries(inside, this.#endpointId, pause);
  }

  async #takeUp(inside: OrgDb, endpoint: WebhookEndpoint | undefined, limit: number): Promise<Round> {
    if (endpoint?.status !== 'active') {
      // Told just when it was switched off or removed.
      await cancelPendingDeliveries(inside, this.#endpointId);
      return NOTHING;
    }
    const secrets = await this.#secretsOf(inside, endpoint);
    if (!secrets) return NOTHING;
    const { leaseSeconds, delaysSeconds } = this.#pace;
    const max = attemptsMax(delaysSeconds);
    const [claimed, [spent]] = await Promise.all([
      claimDueDeliveries(inside, endpoint.id, { limit, leaseSeconds, attemptsMax: max }),
      giveUpSpentDeliveries(inside, endpoint.id, max),
    ]);
    if (spent) await tellEndpointFailing(inside, endpoint.id, spent);
    return { claimed, url: endpoint.url, secrets };
  }

  /** Undefined where no key opens them: the messages wait, and say why. */
  async #secretsOf(inside: OrgDb, endpoint: WebhookEndpoint): Promise<string[] | undefined> {
    const { secretKeys, nowMicros, logger } = this.#deps;
    try {
      return signingSecrets(openSecrets(secretKeys, inside.orgId, endpoint), nowMicros());
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      const { unsignedWaitSeconds } = this.#pace;
      const waiting = await postponeDeliveries(inside, endpoint.id, unsignedWaitSeconds, error.message);
      if (waiting > 0)
        logger.warn(
          { err: error, orgId: inside.orgId, endpointId: endpoint.id },
          'webhooks cannot be signed; they wait',
        );
      return undefined;
    }
  }
}
