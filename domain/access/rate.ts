import { DomainError } from '../errors.js';

/** How much of something may be done: `quota` in each `windowSeconds` on the average, `burst` of it at once. */
export interface Rate {
  quota: number;
  windowSeconds: number;
  burst: number;
}

/** Every limit of a running service. All of them hold over all of its instances, but for those by address. */
export interface LimitRules {
  /** Requests that read, of a key; exports count here too. */
  reads: Rate;
  /** Requests that change something, of a key. */
  writes: Rate;
  /** Requests that send calls, of a key. */
  ingest: Rate;
  /** Items that they carry. */
  ingestItems: Rate;
  /** Runs that are started, of an organization, of each kind. */
  runs: Rate;
  /** Bills that are uploaded, of an organization. */
  imports: Rate;
  /** Invoices that are uploaded or read again, of an organization. */
  invoices: Rate;
  /** Answers 401, of an address. */
  failedAuthentication: Rate;
  /** Requests without a key, of an address. */
  publicRequests: Rate;
  openRunsMax: number;
  openImportsMax: number;
  openInvoicesMax: number;
  openExportsMax: number;
}

export function perSecond(rate: Rate): number {
  return rate.quota / rate.windowSeconds;
}

/** What must be there for `cost` to be taken: more than fits into a bucket is taken from a full one, which then owes. */
export function neededFor(rate: Rate, cost: number): number {
  return Math.min(cost, rate.burst);
}

const MS_PER_SECOND = 1_000;

/** Gives at most burst + t · quota/window tokens in t seconds; a full bucket may owe for one larger taking. */
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

/** Too much of something: says which limit policies were exceeded, and from when on a repeat can succeed. */
export class LimitError extends DomainError {
  /** Names of the limit policies, as the RateLimit fields name them. */
  readonly violatedPolicies: readonly string[];

  constructor(violatedPolicies: readonly string[], sentence: string, retryAfterSeconds: number) {
    super('rate_limited', sentence, { retryAfterSeconds });
    this.violatedPolicies = violatedPolicies;
  }
}
