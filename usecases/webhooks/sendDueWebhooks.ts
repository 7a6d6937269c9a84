import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { recordAudit } from '../../db/access/auditLog.js';
import type { OrgDb } from '../../db/orgDb.js';
import { recordNotice } from '../../db/policies/alerts.js';
import {
  type ClaimedDelivery,
  claimDueDeliveries,
  type EndedAttempt,
  findNextAttemptMs,
  type GivenUp,
  giveUpSpentDeliveries,
  postponeDeliveries,
  recordAttempts,
} from '../../db/webhooks/webhookDeliveries.js';
import {
  cancelPendingDeliveries,
  disableGoneEndpoint,
  findWebhookEndpoint,
  type WebhookEndpoint,
} from '../../db/webhooks/webhookEndpoints.js';
import { DomainError } from '../../domain/errors.js';
import { publicId } from '../../domain/ids.js';
import { dayOf } from '../../domain/period.js';
import type { Places } from '../../domain/places.js';
import {
  type AttemptOutcome,
  attemptsMax,
  nextDelaySeconds,
  pauseSeconds,
  RETRY_DELAYS_SECONDS,
} from '../../domain/webhooks/retrySchedule.js';
import { placeOf } from './endpoints.js';
import { gatherDigest } from './gatherDigest.js';
import { type AttemptDeps, secretsForSending, sendAttempt } from './sendAttempt.js';

/** Timing of deliveries. Shorter in tests. */
export interface WebhookPace {
  /** Seconds between one attempt and the next. */
  delaysSeconds: readonly number[];
  /** Concurrent attempts for one endpoint. */
  lanes: number;
  /** Duration of one pass, milliseconds: few history entries, and every endpoint gets its turn. */
  passMs: number;
  /**
   * Seconds after which an attempt whose process died is repeated. Longer than an attempt can take, which is the 15
   * seconds of adapters/outbound/safeFetch.ts and the 45 of adapters/mail/smtpMailer.ts.
   */
  leaseSeconds: number;
  /**
   * Seconds before messages are retried that cannot be sent, because the endpoint's secret cannot be decrypted or no
   * mail server is set.
   */
  unsignedWaitSeconds: number;
}

export const WEBHOOK_PACE: WebhookPace = {
  delaysSeconds: RETRY_DELAYS_SECONDS,
  lanes: 16,
  passMs: 10_000,
  leaseSeconds: 60,
  unsignedWaitSeconds: 300,
};

/** While the database is unreachable, results are held in memory for about half a lease. */
const ROUND_TRIES = 10;
const ROUND_PAUSE_MS = 1_000;

interface SendingDeps extends AttemptDeps {
  /** Limits the concurrent webhook transactions of a process. */
  places: Places;
  webhookPace?: WebhookPace;
  logger: Logger;
}

/**
 * Sends an endpoint's due messages, several at once, for one pass. Returns the milliseconds until the next attempt is
 * due; null: nothing is pending. An attempt is counted before it is sent, and no other pass takes a delivery until its
 * lease expires.
 */
export async function sendDueWebhooks(
  orgDb: OrgDb,
  endpointId: string,
  deps: SendingDeps,
  cancelled: AbortSignal,
): Promise<{ nextInMs: number | null }> {
  return new SendingPass(deps, orgDb, endpointId, cancelled).run();
}

/** The receivers of a round's messages. */
interface Addressee {
  endpoint: WebhookEndpoint;
  secrets: readonly string[];
}

/** The deliveries that are started next, with the endpoint's data. */
interface Round {
  claimed: ClaimedDelivery[];
  addressee: Addressee | undefined;
}

const NOTHING: Round = { claimed: [], addressee: undefined };

/**
 * One pass over an endpoint's due messages. Each round is one transaction that records finished attempts and takes as
 * many deliveries as lanes are free, so that a slow answer blocks only its lane. Each round reads the endpoint again:
 * changes of its state, address or secret apply to the next message.
 */
class SendingPass {
  readonly #deps: SendingDeps;
  readonly #orgDb: OrgDb;
  readonly #endpointId: string;
  readonly #pace: WebhookPace;
  /** Aborts attempts: the process is stopping, or this pass has failed. */
  readonly #stop = new AbortController();
  readonly #signal: AbortSignal;
  readonly #underWay = new Set<Promise<void>>();
  #ended: EndedAttempt[] = [];

  constructor(deps: SendingDeps, orgDb: OrgDb, endpointId: string, cancelled: AbortSignal) {
    this.#deps = deps;
    this.#signal = AbortSignal.any([cancelled, this.#stop.signal]);
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
        for (const claimed of round.claimed) if (round.addressee) this.#begin(claimed, round.addressee);
        // Attempts that ended during the last round are recorded in another round.
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

  #begin(claimed: ClaimedDelivery, addressee: Addressee): void {
    const attempt = this.#attempt(claimed, addressee).finally(() => this.#underWay.delete(attempt));
    // An error ends the pass through the race below, or is part of its end.
    attempt.catch(() => undefined);
    this.#underWay.add(attempt);
  }

  async #attempt(claimed: ClaimedDelivery, addressee: Addressee): Promise<void> {
    const outcome = await sendAttempt(this.#orgDb, addressee, claimed, this.#signal, this.#deps);
    this.#ended.push({ claimed, outcome, next: this.#nextOf(claimed, outcome) });
  }

  #nextOf({ attempts }: ClaimedDelivery, outcome: AttemptOutcome): EndedAttempt['next'] {
    // The receiver may or may not have got the message. It is due again immediately, in another process.
    if (this.#signal.aborted && outcome.httpStatus === null) return { delaySeconds: 0, counted: false };
    if (outcome.result === 'gone' || outcome.isFinal) return { delaySeconds: null, counted: true };
    const { retryAfterSeconds } = outcome;
    const { delaysSeconds } = this.#pace;
    return {
      delaySeconds: nextDelaySeconds(attempts, { retryAfterSeconds, random: Math.random() }, delaysSeconds),
      counted: true,
    };
  }

  /**
   * Retries a round while the database is unreachable: a delivered message must not be sent again for that reason. The
   * round is one transaction, and recording an outcome twice has the effect of once.
   */
  async #turnPatiently(free: number): Promise<Round> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#deps.places.use(undefined, () => this.#turn(free));
      } catch (error) {
        const isAway = error instanceof DomainError && error.code === 'service_unavailable';
        if (!isAway || tries === ROUND_TRIES || this.#signal.aborted) throw error;
        await sleep(ROUND_PAUSE_MS);
      }
    }
  }

  /** Records finished attempts, and takes up to `free` deliveries. */
  async #turn(free: number): Promise<Round> {
    // A copy, because more attempts end during the transaction.
    const ended = [...this.#ended];
    if (ended.length === 0 && free === 0) return NOTHING;
    const round = await this.#orgDb.transaction(async (inside) => {
      // First, because it locks the organization's row.
      if (ended.some(({ outcome }) => outcome.result === 'gone'))
        await reportEndpointGone(inside, this.#endpointId);
      // Sent together, because a lane waits for this transaction between two messages.
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
    if (givenUp) await reportEndpointFailing(inside, this.#endpointId, givenUp);
    const pause = Math.max(...ended.map(({ outcome }) => pauseSeconds(outcome.retryAfterSeconds)));
    if (pause > 0) await postponeDeliveries(inside, this.#endpointId, pause);
  }

  async #takeUp(inside: OrgDb, endpoint: WebhookEndpoint | undefined, limit: number): Promise<Round> {
    if (endpoint?.status !== 'active') {
      // The endpoint was disabled or removed meanwhile.
      await cancelPendingDeliveries(inside, this.#endpointId);
      return NOTHING;
    }
    const secrets = await this.#secretsOf(inside, endpoint);
    if (!secrets) return NOTHING;
    const gathers = endpoint.digest === 'daily' && (await gatherDigest(inside, endpoint.id, this.#deps));
    const { leaseSeconds, delaysSeconds } = this.#pace;
    const max = attemptsMax(delaysSeconds);
    const [claimed, [spent]] = await Promise.all([
      claimDueDeliveries(inside, endpoint.id, { limit, leaseSeconds, attemptsMax: max, gathers }),
      giveUpSpentDeliveries(inside, endpoint.id, max),
    ]);
    if (spent) await reportEndpointFailing(inside, endpoint.id, spent);
    return { claimed, addressee: { endpoint, secrets } };
  }

  /** The decrypted secrets; undefined: the messages cannot be sent at present, and wait with that reason. */
  async #secretsOf(inside: OrgDb, endpoint: WebhookEndpoint): Promise<string[] | undefined> {
    try {
      return secretsForSending(inside.orgId, endpoint, this.#deps);
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      const { unsignedWaitSeconds } = this.#pace;
      const waiting = await postponeDeliveries(inside, endpoint.id, unsignedWaitSeconds, error.message);
      if (waiting > 0)
        this.#deps.logger.warn(
          { err: error, orgId: inside.orgId, endpointId: endpoint.id },
          'webhooks cannot be sent; they wait',
        );
      return undefined;
    }
  }
}

const subjectOf = (endpointId: string) => ({ type: 'webhook_endpoint', id: publicId('whk', endpointId) });

/** Disables an endpoint whose receiver answered that it is gone, and reports it once. In the caller's transaction. */
async function reportEndpointGone(inside: OrgDb, endpointId: string): Promise<void> {
  if (!(await disableGoneEndpoint(inside, endpointId))) return;
  const endpoint = await findWebhookEndpoint(inside, endpointId);
  if (!endpoint) return;
  const subject = subjectOf(endpointId);
  await recordNotice(inside, {
    code: 'webhook_disabled',
    key: `webhook_disabled:${subject.id}:${endpoint.disabledAtMicros}`,
    subject,
    severity: 'high',
    message: `The webhook endpoint at ${placeOf(endpoint)} answered 410 Gone, so it was switched off: it receives nothing until it is switched on again.`,
    details: { reason: 'gone' },
    provider: null,
  });
  await recordAudit(inside, {
    action: 'webhook.disabled',
    actor: { kind: 'system', id: 'webhook_delivery' },
    subject,
    details: { reason: 'gone' },
    requestId: null,
  });
}

/**
 * Reports that messages to an endpoint were given up: once while it accepts none, and once a day while it accepts some.
 * In the caller's transaction.
 */
async function reportEndpointFailing(
  inside: OrgDb,
  endpointId: string,
  { deliveryId, attempts, lastError }: GivenUp,
): Promise<void> {
  const endpoint = await findWebhookEndpoint(inside, endpointId);
  if (endpoint?.status !== 'active') return;
  const subject = subjectOf(endpointId);
  const since = endpoint.lastDeliveredAtMicros === null ? 'never' : dayOf(endpoint.lastDeliveredAtMicros);
  await recordNotice(inside, {
    code: 'webhook_failing',
    key: `webhook_failing:${subject.id}:${since}`,
    subject,
    severity: 'medium',
    message: `A message to the webhook endpoint at ${placeOf(endpoint)} was given up after ${attempts} attempts: ${lastError ?? 'no answer'}. Others may follow; what was given up can be sent again.`,
    details: { delivery_id: publicId('dlv', deliveryId), attempts },
    provider: null,
  });
}
