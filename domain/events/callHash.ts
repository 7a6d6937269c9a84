/**
 * The two hashes of a call: `api_key_hash`, which is part of an event's uniqueness,
 * and the event's id, made from what makes it unique, so that a repeat has the same id wherever it arrives.
 */
import { hash } from 'node:crypto';
import { uuidFromMicros } from '../ids.js';
import type { CallRecord } from './event.js';

const HASH_CHARS = 16;

type Hashed = Pick<CallRecord, 'requestId' | 'sessionId' | 'model' | 'hashTimestamp' | 'status'>;

/**
 * The first 16 hex digits of sha256(key id ':' request id), or of sha256(key id ':' session ':' model ':' time)
 * when the call has no request id. The time is the text as it came: nanoseconds as sent, else ISO with microseconds.
 * A blocked call's begins with a word of its own: the same request, let through after all, is another event, and its cost
 * is not taken for a repeat of the block (docs/decisions/0027).
 */
export function apiKeyHash(keyId: string, call: Hashed): string {
  const identity =
    call.requestId !== null
      ? `${keyId}:${call.requestId}`
      : `${keyId}:${call.sessionId}:${call.model}:${call.hashTimestamp}`;
  const text = call.status === 'blocked' ? `blocked\u001f${identity}` : identity;
  return hash('sha256', text, 'hex').slice(0, HASH_CHARS);
}

/**
 * The uuid of an event: its time to the microsecond, then 62 bits of the sha256 of provider, model, api_key_hash and
 * time. The hash already holds the key, and with it the organization. No field can hold the separator: strings are
 * stripped of it before.
 */
export function eventId(
  call: Pick<CallRecord, 'provider' | 'model' | 'startMicros'>,
  callHash: string,
): string {
  const tuple = `${call.provider}\u001f${call.model}\u001f${callHash}\u001f${call.startMicros}`;
  const digest = hash('sha256', tuple, 'hex');
  return uuidFromMicros(call.startMicros, BigInt(`0x${digest.slice(0, 16)}`));
}
