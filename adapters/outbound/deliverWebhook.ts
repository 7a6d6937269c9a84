import { createHmac } from 'node:crypto';
import {
  ANSWER_CHARS_MAX,
  type AttemptOutcome,
  resultOfStatus,
  retryAfterSeconds,
} from '../../domain/webhooks/retrySchedule.js';
import { secretBytes } from '../../domain/webhooks/secret.js';
import { type SafeAnswer, type SafeFetch, SafeFetchError } from './safeFetch.js';

export interface WebhookToDeliver {
  url: string;
  /** As receivers see it: `msg_…`. */
  messageId: string;
  body: string;
  /** The present signing secrets (`signingSecrets`); empty: the message is not signed. */
  secrets: readonly string[];
  signal?: AbortSignal;
}

/**
 * Makes one attempt. Any behaviour of the receiver is an outcome; it throws only for internal errors. An attempt that
 * its signal interrupts has failed: whether the receiver got the message is unknown.
 */
export type DeliverWebhook = (message: WebhookToDeliver) => Promise<AttemptOutcome>;

export interface DeliveryClock {
  /** The present time, microseconds since 1970. */
  nowMicros(): bigint;
  /** Monotonic clock, milliseconds. */
  nowMs(): number;
}

/**
 * Sends attempts through the only client for addresses that users set: public ones, 15 seconds, 64 KB of the answer, no
 * redirects.
 */
export function deliverWebhookBy(outbound: SafeFetch, clock: DeliveryClock): DeliverWebhook {
  return async ({ url, messageId, body, secrets, signal }) => {
    const nowMicros = clock.nowMicros();
    const startedMs = clock.nowMs();
    const timestampSeconds = Number(nowMicros / 1_000_000n);
    const headers = {
      'content-type': 'application/json',
      ...(secrets.length > 0 ? signMessage({ id: messageId, timestampSeconds, body, secrets }) : {}),
    };
    const outcomeOf = (rest: Omit<AttemptOutcome, 'durationMs'>): AttemptOutcome => ({
      ...rest,
      durationMs: Math.round(clock.nowMs() - startedMs),
    });
    try {
      const answer = await outbound.send({
        method: 'POST',
        url,
        headers,
        body,
        ...(signal ? { signal } : {}),
      });
      return outcomeOf(judgeAnswer(answer, nowMicros));
    } catch (error) {
      if (!(error instanceof SafeFetchError)) throw error;
      return outcomeOf({
        result: 'failed',
        httpStatus: null,
        error: error.message,
        answer: null,
        retryAfterSeconds: null,
      });
    }
  };
}

function judgeAnswer(
  { status, headers, body }: SafeAnswer,
  nowMicros: bigint,
): Omit<AttemptOutcome, 'durationMs'> {
  const result = resultOfStatus(status);
  return {
    result,
    httpStatus: status,
    error: result === 'delivered' ? null : failureOf(status),
    answer: beginningOf(body),
    retryAfterSeconds: retryAfterSeconds(
      { status, retryAfter: headers['retry-after'], date: headers.date },
      nowMicros,
    ),
  };
}

function failureOf(status: number): string {
  if (status === 410) return 'the receiver answered 410: it wants no more messages';
  if (status >= 300 && status < 400)
    return `the receiver answered ${status}: redirects are not followed, so the endpoint needs its final address`;
  return `the receiver answered ${status}`;
}

/** The stored beginning of the answer as readable text; bytes that are not text stay visible. */
function beginningOf(body: Buffer): string | null {
  // A character has at most four bytes.
  const text = body.subarray(0, ANSWER_CHARS_MAX * 4).toString('utf8');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: Postgres takes no NUL in a text, and the rest is not for reading
  const readable = text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g, '');
  return readable === '' ? null : readable.slice(0, ANSWER_CHARS_MAX).toWellFormed();
}

export interface SignedMessage {
  /** As receivers see it: `msg_…`. */
  id: string;
  /** Time of this attempt, seconds since 1970: receivers refuse old messages. */
  timestampSeconds: number;
  body: string;
  /** `whsec_…`, the current one first. */
  secrets: readonly string[];
}

/**
 * The headers of a signed message (Standard Webhooks, "Signature scheme"): HMAC-SHA256 over id, timestamp and body
 * joined by dots, in base64 after `v1,`. One signature for each secret, so that a receiver that has only the old or the
 * new one accepts it.
 */
export function signMessage({ id, timestampSeconds, body, secrets }: SignedMessage): Record<string, string> {
  const signed = `${id}.${timestampSeconds}.${body}`;
  const signatures = secrets.map(
    (secret) => `v1,${createHmac('sha256', secretBytes(secret)).update(signed).digest('base64')}`,
  );
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': signatures.join(' '),
  };
}
