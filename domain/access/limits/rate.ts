import { DomainError } from '../../errors.js';

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
  /** Runs of a kind that an organization has open at once. */
  openRunsMax: number;
  /** Imports that an organization has open at once. */
  openImportsMax: number;
  /** Runs of invoices that an organization has open at once. */
  openInvoicesMax: number;
  /** Exports that an organization has open at once. */
  openExportsMax: number;
}

/** Tokens that come back in a second. */
export function perSecond(rate: Rate): number {
  return rate.quota / rate.windowSeconds;
}

/** What must be there for `cost` to be taken: more than fits into a bucket is taken from a full one, which then owes. */
export function neededFor(rate: Rate, cost: number): number {
  return Math.min(cost, rate.burst);
}

const MS_PER_SECOND = 1_000;

/**
 * A bucket that holds `burst` tokens and is refilled evenly: within any time of t seconds it gives at most
 * burst + t · quota/window tokens, and never more than `burst` at once, but for one taking that is larger than the
 * bucket: a full bucket gives it and owes the rest. The clock is the caller's and may stand still, not run back.
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

  /** What is in it now; negative while it owes. */
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

  /** Takes `cost` where it is there; false changes nothing. */
  take(cost: number, nowMs: number): boolean {
    if (!this.canTake(cost, nowMs)) return false;
    this.#tokens -= cost;
    return true;
  }

  /** Puts back what was taken and not used. */
  giveBack(cost: number): void {
    this.#tokens = Math.min(this.#rate.burst, this.#tokens + cost);
  }

  /** Seconds until `cost` can be taken; 0 when it can be now. */
  waitSeconds(cost: number, nowMs: number): number {
    return secondsUntil(this.#rate, cost, this.tokensAt(nowMs));
  }
}

/** Seconds until a bucket that holds `tokens` has what `cost` needs. */
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
