import { neededFor, perSecond, type Rate } from './rate.js';

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
