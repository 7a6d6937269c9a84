import { LRUCache } from 'lru-cache';
import { neededFor, perSecond, type Rate, secondsUntil, TokenBucket } from '../../domain/access/rate.js';

/** Buckets in the cache, by latest use. The shared state of an evicted one is read again. */
const BUCKETS_MAX = 20_000;
/** An instance leases a twentieth of a bucket in advance. */
const LEASE_SHARE = 20;
/** Lease of unspent tokens, milliseconds: after it the shared bucket has refilled. */
const LEASE_MS = 10_000;
/** Longest wait for the shared bucket, milliseconds, before the instance decides alone. */
export const STORE_LIMIT_MS = 250;
/** Pause after a failure of the store, milliseconds: the instance decides alone meanwhile. */
const STORE_PAUSE_MS = 2_000;
/** Attempts to lease for one request: another request may have spent the tokens of a lease. */
const LEASE_ATTEMPTS = 5;

/** Identifies a bucket: organization, subject and policy. */
export interface BucketName {
  orgId: string;
  /** A key's id, or 'organization'. */
  subject: string;
  policy: string;
}

/** Storage of the shared buckets. */
export interface RateStore {
  lease(
    bucket: BucketName,
    ask: { rate: Rate; cost: number; wanted: number; returned: number },
  ): Promise<{ granted: number; tokens: number }>;
}

/** The result of a request for tokens. */
export interface Verdict {
  isGranted: boolean;
  /** Tokens that remain. */
  remaining: number;
  /** Seconds until the same cost is available again; 0: it is available now. */
  waitSeconds: number;
}

interface Bucket {
  name: BucketName;
  rate: Rate;
  /** The limit of this instance alone; it holds with and without the store. */
  own: TokenBucket;
  /** Leased tokens that are not spent. */
  held: number;
  heldUntilMs: number;
  /**
   * Tokens in the shared bucket at the last request to it. An upper bound: other instances may have taken some since.
   */
  shared: number;
  sharedAtMs: number;
  leasing: Promise<void> | undefined;
  /** Cost of the requests that wait for the shared bucket. */
  awaited: number;
}

export interface RateLimiterOptions {
  store: RateStore;
  /** Longest wait for the store, milliseconds of real time. */
  storeLimitMs: number;
  nowMs: () => number;
  /** Called once for each pause that a store failure causes. */
  onStoreFailure: (error: unknown) => void;
}

/**
 * Shared rate limits without a database query for each request: an instance leases a twentieth of a bucket in advance
 * and spends it locally. Within any t seconds all instances together grant at most burst + t · quota/window, plus the
 * leases of the n instances at the beginning: n · burst/20. When the store fails, each instance continues with a local
 * bucket of the full rate, which it maintains at all times.
 */
export class RateLimiter {
  readonly #options: RateLimiterOptions;
  readonly #buckets = new LRUCache<string, Bucket>({ max: BUCKETS_MAX });
  #storePausedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(options: RateLimiterOptions) {
    this.#options = options;
  }

  /** Takes `cost` from a bucket: synchronously while the instance holds tokens, else after one request to the store. */
  take(name: BucketName, rate: Rate, cost = 1): Verdict | Promise<Verdict> {
    const bucket = this.#bucketOf(name, rate);
    return this.#takeHere(bucket, cost) ?? this.#takeShared(bucket, cost);
  }

  /** Returns the tokens of an action that did not happen. */
  giveBack(name: BucketName, rate: Rate, cost: number): void {
    const bucket = this.#bucketOf(name, rate);
    bucket.own.giveBack(cost);
    bucket.held += cost;
    bucket.heldUntilMs = this.#options.nowMs() + LEASE_MS;
  }

  #bucketOf(name: BucketName, rate: Rate): Bucket {
    const id = `${name.subject} ${name.policy} ${name.orgId}`;
    const known = this.#buckets.get(id);
    if (known) return known;
    const nowMs = this.#options.nowMs();
    const bucket: Bucket = {
      name,
      rate,
      own: new TokenBucket(rate, nowMs),
      held: 0,
      heldUntilMs: nowMs,
      shared: rate.burst,
      sharedAtMs: nowMs,
      leasing: undefined,
      awaited: 0,
    };
    this.#buckets.set(id, bucket);
    return bucket;
  }

  /** Decides locally; undefined where only the store can decide. */
  #takeHere(bucket: Bucket, cost: number): Verdict | undefined {
    const nowMs = this.#options.nowMs();
    if (bucket.held > 0 && nowMs >= bucket.heldUntilMs) bucket.held = 0;
    if (!bucket.own.canTake(cost, nowMs)) return this.#refusal(bucket, cost, nowMs);
    if (bucket.held >= cost) {
      bucket.held -= cost;
      const verdict = this.#grant(bucket, cost, nowMs);
      // The lease is renewed early, so that no request waits for it.
      if (bucket.held < leaseSize(bucket.rate) / 2 && this.#mayAsk(bucket, 1, nowMs))
        this.#lease(bucket, 1, 0);
      return verdict;
    }
    if (nowMs < this.#storePausedUntilMs) return this.#grant(bucket, cost, nowMs);
    if (bucket.leasing === undefined && !this.#mayAsk(bucket, cost, nowMs))
      return this.#refusal(bucket, cost, nowMs);
    return undefined;
  }

  async #takeShared(bucket: Bucket, cost: number): Promise<Verdict> {
    bucket.awaited += cost;
    try {
      for (let attempt = 0; attempt < LEASE_ATTEMPTS; attempt += 1) {
        await (bucket.leasing ?? this.#lease(bucket, cost, bucket.held));
        const verdict = this.#takeHere(bucket, cost);
        if (verdict) return verdict;
      }
    } finally {
      bucket.awaited -= cost;
    }
    return this.#refusal(bucket, cost, this.#options.nowMs());
  }

  #grant(bucket: Bucket, cost: number, nowMs: number): Verdict {
    bucket.own.take(cost, nowMs);
    return this.#verdict(bucket, true, cost, nowMs);
  }

  #refusal(bucket: Bucket, cost: number, nowMs: number): Verdict {
    return this.#verdict(bucket, false, cost, nowMs);
  }

  #verdict(bucket: Bucket, isGranted: boolean, cost: number, nowMs: number): Verdict {
    const own = bucket.own.tokensAt(nowMs);
    const isPaused = nowMs < this.#storePausedUntilMs;
    const tokens = isPaused ? own : Math.min(own, bucket.held + sharedAt(bucket, nowMs));
    return {
      isGranted,
      remaining: Math.max(0, Math.floor(tokens)),
      waitSeconds: secondsUntil(bucket.rate, cost, tokens),
    };
  }

  /**
   * Whether the shared bucket may hold the tokens that `cost` needs: its last known level plus the refill since is its
   * maximum.
   */
  #mayAsk(bucket: Bucket, cost: number, nowMs: number): boolean {
    if (nowMs < this.#storePausedUntilMs || bucket.leasing) return false;
    return sharedAt(bucket, nowMs) + bucket.held >= neededFor(bucket.rate, cost);
  }

  /**
   * Leases tokens for `cost`, for waiting requests and for stock; returns `returned` of the held tokens to the shared
   * bucket.
   */
  #lease(bucket: Bucket, cost: number, returned: number): Promise<void> {
    const { rate } = bucket;
    const ask = { rate, cost, wanted: Math.max(cost, bucket.awaited, leaseSize(rate)), returned };
    bucket.held -= returned;
    bucket.leasing = within(this.#options.storeLimitMs, this.#options.store.lease(bucket.name, ask)).then(
      ({ granted, tokens }) => {
        const nowMs = this.#options.nowMs();
        bucket.held += granted;
        bucket.heldUntilMs = nowMs + LEASE_MS;
        bucket.shared = tokens;
        bucket.sharedAtMs = nowMs;
        bucket.leasing = undefined;
      },
      (error: unknown) => {
        bucket.leasing = undefined;
        const nowMs = this.#options.nowMs();
        if (nowMs >= this.#storePausedUntilMs) this.#options.onStoreFailure(error);
        this.#storePausedUntilMs = nowMs + STORE_PAUSE_MS;
      },
    );
    return bucket.leasing;
  }
}

function leaseSize(rate: Rate): number {
  return Math.max(1, Math.floor(rate.burst / LEASE_SHARE));
}

function sharedAt(bucket: Bucket, nowMs: number): number {
  const refilled = ((nowMs - bucket.sharedAtMs) / 1_000) * perSecond(bucket.rate);
  return Math.min(bucket.rate.burst, bucket.shared + refilled);
}

class StoreTooSlow extends Error {}

async function within<T>(limitMs: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new StoreTooSlow(`no answer within ${limitMs} ms`)), limitMs);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    clearTimeout(timer);
  }
}
