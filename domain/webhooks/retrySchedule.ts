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

/**
 * Each delay is extended by a random share of itself up to this one, so that failed deliveries do not retry all at
 * once.
 */
const JITTER = 0.1;

/**
 * Seconds until the next attempt; null: none is left. A receiver's pause extends the delay, up to the one after
 * it. `random` in [0, 1).
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

/** Maximum attempts of a delivery by this schedule. */
export function attemptsMax(delays: readonly number[] = RETRY_DELAYS_SECONDS): number {
  return delays.length + 1;
}

/** The longest pause of all messages to a receiver that answers 429 or 503. */
const PAUSE_SECONDS_MAX = HOUR;

/** Seconds without messages to a receiver that answered 429 or 503 with Retry-After; 0: it sent none. */
export function pauseSeconds(retryAfterSeconds: number | null): number {
  return Math.min(retryAfterSeconds ?? 0, PAUSE_SECONDS_MAX);
}

/** `delivered`: 2xx. `gone`: 410 (Standard Webhooks). Every other answer, also a redirect, is `failed`. */
const ATTEMPT_RESULTS = ['delivered', 'gone', 'failed'] as const;
type AttemptResult = (typeof ATTEMPT_RESULTS)[number];

/** Results of attempts as the metrics count them: the class of the receiver's answer, or the lack of one. */
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
  /** The status of the answer, of a mail server its reply code; null: no complete answer was received. */
  httpStatus: number | null;
  /** A sentence for the operator of the receiver, without the addresses that its name resolves to; null: delivered. */
  error: string | null;
  /** The beginning of the receiver's answer; null: it had none. */
  answer: string | null;
  /** The wait in seconds that a 429 or 503 answer requests; null: it requests none. */
  retryAfterSeconds: number | null;
  /** true: a repeat would be refused too, so the delivery is given up. */
  isFinal?: boolean;
}

/** A delivery shows at most this many of its latest attempts. */
export const ATTEMPTS_SHOWN_MAX = 30;

/** Stored characters of an answer. */
export const ANSWER_CHARS_MAX = 1_024;

export function resultOfStatus(httpStatus: number): AttemptResult {
  if (httpStatus >= 200 && httpStatus < 300) return 'delivered';
  return httpStatus === 410 ? 'gone' : 'failed';
}

const TOO_MANY = 429;
const UNAVAILABLE = 503;
const SECONDS = /^\d{1,9}$/;

/**
 * The pause of a 429 or 503 answer in seconds (RFC 9110, 10.2.3), from seconds or a date on the receiver's clock;
 * else null.
 */
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
