const MINUTE = 60;
const HOUR = 3_600;

/**
 * Seconds between an attempt and the next one, as the Standard Webhooks specification gives them for its example
 * schedule: with the first attempt, which is made at once, ten of them in three days and a few hours.
 */
export const RETRY_DELAYS_SECONDS: readonly number[] = [
  5,
  5 * MINUTE,
  30 * MINUTE,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  14 * HOUR,
  20 * HOUR,
  24 * HOUR,
];

/** A wait becomes longer by up to this part of itself, so that what failed together does not come back together. */
const JITTER = 0.1;

/**
 * Seconds until the next attempt after `attempts` of them, or null when there is none any more. A receiver that asks for
 * a longer pause gets it up to the next wait of the schedule, so that no answer can put a message off for good.
 * `random` is in [0, 1).
 */
export function nextDelaySeconds(
  attempts: number,
  { retryAfterSeconds = null, random }: { retryAfterSeconds?: number | null; random: number },
  delays: readonly number[] = RETRY_DELAYS_SECONDS,
): number | null {
  const delay = delays[attempts - 1];
  if (delay === undefined) return null;
  const longest = delays[attempts] ?? delay;
  const asked = Math.min(retryAfterSeconds ?? 0, longest);
  return Math.max(delay, asked) * (1 + JITTER * random);
}

/** Attempts of a series at most, with this schedule. */
export function attemptsMax(delays: readonly number[] = RETRY_DELAYS_SECONDS): number {
  return delays.length + 1;
}

/** Where a receiver says that it is asked too often, all its messages wait so long at most. */
const PAUSE_SECONDS_MAX = HOUR;

/** Seconds for which a receiver is left alone that answered 429 or 503 and said how long; 0 where it said nothing. */
export function pauseSeconds(retryAfterSeconds: number | null): number {
  return Math.min(retryAfterSeconds ?? 0, PAUSE_SECONDS_MAX);
}
