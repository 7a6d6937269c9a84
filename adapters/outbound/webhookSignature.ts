import { createHmac } from 'node:crypto';
import { secretBytes } from '../../domain/webhooks/secret.js';

export interface SignedMessage {
  /** As receivers see it: `msg_…`. */
  id: string;
  /** When this attempt begins, seconds since 1970: receivers refuse what is old. */
  timestampSeconds: number;
  body: string;
  /** `whsec_…`, the current one first. */
  secrets: readonly string[];
}

/**
 * The headers of a signed message (Standard Webhooks, "Signature scheme"): HMAC-SHA256 over id, timestamp and body with
 * points between, in base64 behind `v1,`. One signature for each secret, so that a receiver that has only the old or only
 * the new one accepts it.
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
