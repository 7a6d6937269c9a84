const MINUTE = 60;
const HOUR = 3_600;

/** Delays of the Standard Webhooks example schedule: ten attempts in three days and a few hours. */
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

/** Seconds until the next attempt, or null; a receiver's pause counts up to the next wait. `random` in [0, 1). */
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

/** `delivered`: 2xx. `gone`: 410 (Standard Webhooks). Every other answer fails, redirects too. */
const ATTEMPT_RESULTS = ['delivered', 'gone', 'failed'] as const;
type AttemptResult = (typeof ATTEMPT_RESULTS)[number];

/** What came of an attempt, for counts: by the receiver's answer, or that there was none. */
export const ATTEMPT_ANSWERS = [
  'delivered',
  'gone',
  'redirected',
  'rejected',
  'failed',
  'unanswered',
] as const;
export type AttemptAnswer = (typeof ATTEMPT_ANSWERS)[number];

export interface AttemptOutcome {
  result: AttemptResult;
  durationMs: number;
  /** Null where no whole answer came. */
  httpStatus: number | null;
  /** A sentence for whoever runs the receiver; null when delivered. Never an address that its name leads to. */
  error: string | null;
  /** The beginning of what the receiver said; null where it said nothing. */
  answer: string | null;
  /** What a receiver that answers 429 or 503 asks to wait; null where it does not. */
  retryAfterSeconds: number | null;
}

/** Latest attempts of a delivery that are shown. */
export const ATTEMPTS_SHOWN_MAX = 30;

/** Of an answer so many characters are kept. */
export const ANSWER_CHARS_MAX = 1_024;

export function resultOfStatus(httpStatus: number): AttemptResult {
  if (httpStatus >= 200 && httpStatus < 300) return 'delivered';
  return httpStatus === 410 ? 'gone' : 'failed';
}

const TOO_MANY = 429;
const UNAVAILABLE = 503;
const SECONDS = /^\d{1,9}$/;

/** The pause of a 429 or 503 (RFC 9110, 10.2.3), seconds or a date on the receiver's clock; else null. */
export function retryAfterSeconds(
  answer: { status: number; retryAfter: string | undefined; date: string | undefined },
  nowMicros: bigint,
): number | null {
  if (answer.status !== TOO_MANY && answer.status !== UNAVAILABLE) return null;
  const text = answer.retryAfter?.trim() ?? '';
  if (SECONDS.test(text)) return Number(text);
  const untilMs = Date.parse(text);
  if (Number.isNaN(untilMs)) return null;
  const shownMs = Date.parse(answer.date ?? '');
  const nowMs = Number.isNaN(shownMs) ? Number(nowMicros / 1_000n) : shownMs;
  return Math.max(0, Math.ceil((untilMs - nowMs) / 1_000));
}
