/** How long a sync waits for its provider, milliseconds. Shorter in tests. */
export interface SyncPace {
  /** Before the first repeat; doubled for each that follows. */
  firstWaitMs: number;
  longestWaitMs: number;
  /** A provider that fails for longer is left to the next sync. */
  giveUpAfterMs: number;
  /** One request. */
  requestMs: number;
}

/** A provider that fails for an hour is outlasted three times over. */
export const SYNC_PACE: SyncPace = {
  firstWaitMs: 2_000,
  longestWaitMs: 300_000,
  giveUpAfterMs: 3 * 3_600_000,
  requestMs: 60_000,
};

/** The wait before the next attempt: what the provider asked for, else twice as long as the last one. */
export function waitBeforeMs(pace: SyncPace, attempt: number, retryAfterSeconds: number | undefined): number {
  if (retryAfterSeconds !== undefined) return Math.max(retryAfterSeconds * 1_000, pace.firstWaitMs);
  return Math.min(pace.longestWaitMs, pace.firstWaitMs * 2 ** Math.min(attempt - 1, 20));
}
