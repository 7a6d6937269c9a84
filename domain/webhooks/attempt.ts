/**
 * What an attempt to deliver came to. `delivered`: an answer of 2xx. `gone`: 410, by which a receiver says that it wants
 * no more (Standard Webhooks, "Deliverability and reliability"). Every other answer is a failure, a redirect too.
 */
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

/**
 * Seconds that a 429 or 503 asks to wait (RFC 9110, 10.2.3): a number, or a date, which is measured on the receiver's own
 * clock where it shows it. Null for other answers and for what cannot be read.
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
