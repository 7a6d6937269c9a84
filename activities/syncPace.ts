/** How long a sync waits for its provider, milliseconds. Shorter in tests. */
export interface SyncPace {
  /** Before the first repeat; doubled for each that follows. */
  firstWaitMs: number;
  /** Between two looks whether an outage is over. */
  longestWaitMs: number;
  /** A provider that fails for longer is left to the next sync. */
  giveUpAfterMs: number;
}

/** A provider that fails for an hour is outlasted three times over. */
export const SYNC_PACE: SyncPace = {
  firstWaitMs: 2_000,
  longestWaitMs: 600_000,
  giveUpAfterMs: 3 * 3_600_000,
};

/**
 * The wait before the next attempt. A limit of requests is waited for as long as the provider says. An outage is asked
 * after again sooner or later: twice as long as the last time, at least what the provider named, at most the longest.
 */
export function waitBeforeMs(
  pace: SyncPace,
  attempt: number,
  failure: { isLimit: boolean; retryAfterSeconds: number | undefined },
): number {
  const stated = (failure.retryAfterSeconds ?? 0) * 1_000;
  if (failure.isLimit && stated > 0) return Math.max(stated, pace.firstWaitMs);
  const doubled = pace.firstWaitMs * 2 ** Math.min(attempt - 1, 20);
  return Math.min(pace.longestWaitMs, Math.max(stated, doubled));
}
