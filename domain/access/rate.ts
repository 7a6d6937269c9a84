import { DomainError } from '../errors.js';

/** A limit: `quota` in each `windowSeconds` on average, and `burst` at once. */
export interface Rate {
  quota: number;
  windowSeconds: number;
  burst: number;
}

/**
 * Every limit of a running service. Limits by address apply to each instance separately, all others to all
 * instances together.
 */
export interface LimitRules {
  /** Reading requests of a key, including exports. */
  reads: Rate;
  /** Changing requests of a key. */
  writes: Rate;
  /** Ingest requests of a key. */
  ingest: Rate;
  /** Items in the ingest requests of a key. */
  ingestItems: Rate;
  /** Run starts of an organization, for each kind of run. */
  runs: Rate;
  /** Bill uploads of an organization. */
  imports: Rate;
  /** Invoice uploads and repeated readings of an organization. */
  invoices: Rate;
  /** 401 answers to an address. */
  failedAuthentication: Rate;
  /** Requests without a key from an address. */
  publicRequests: Rate;
  openRunsMax: number;
  openImportsMax: number;
  openInvoicesMax: number;
  openExportsMax: number;
}

export function perSecond(rate: Rate): number {
  return rate.quota / rate.windowSeconds;
}

/**
 * Tokens that must be available to take `cost`. A cost above the capacity needs a full bucket, which then has a
 * debt.
 */
export function neededFor(rate: Rate, cost: number): number {
  return Math.min(cost, rate.burst);
}

const MS_PER_SECOND = 1_000;

/**
 * Grants at most burst + t · quota/window tokens in t seconds. A full bucket may go into debt for one larger
 * request.
 */
export class TokenBucket {
  readonly #rate: Rate;
  #tokens: number;
  #atMs: number;

  constructor(rate: Rate, nowMs: number) {
    this.#rate = rate;
    this.#tokens = rate.burst;
    this.#atMs = nowMs;
  }

  tokensAt(nowMs: number): number {
    if (nowMs > this.#atMs) {
      const refilled = ((nowMs - this.#atMs) / MS_PER_SECOND) * perSecond(this.#rate);
      this.#tokens = Math.min(this.#rate.burst, this.#tokens + refilled);
      this.#atMs = nowMs;
    }
    return this.#tokens;
  }

  canTake(cost: number, nowMs: number): boolean {
    return this.tokensAt(nowMs) >= neededFor(this.#rate, cost);
  }

  take(cost: number, nowMs: number): boolean {
    if (!this.canTake(cost, nowMs)) return false;
    this.#tokens -= cost;
    return true;
  }

  giveBack(cost: number): void {
    this.#tokens = Math.min(this.#rate.burst, this.#tokens + cost);
  }

  waitSeconds(cost: number, nowMs: number): number {
    return secondsUntil(this.#rate, cost, this.tokensAt(nowMs));
  }
}

export function secondsUntil(rate: Rate, cost: number, tokens: number): number {
  return Math.max(0, (neededFor(rate, cost) - tokens) / perSecond(rate));
}

/** A limit was exceeded: names the limit policies and the seconds after which a repeat can succeed. */
export class LimitError extends DomainError {
  /** Names of the limit policies as in the RateLimit headers. */
  readonly violatedPolicies: readonly string[];

  constructor(violatedPolicies: readonly string[], sentence: string, retryAfterSeconds: number) {
    super('rate_limited', sentence, { retryAfterSeconds });
    this.violatedPolicies = violatedPolicies;
  }
}
