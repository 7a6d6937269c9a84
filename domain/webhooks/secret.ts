import { DomainError } from '../errors.js';
import type { SealBinding, Sealer } from '../sealer.js';

/** A secret is `whsec_` and base64 of its bytes (Standard Webhooks, "Signature scheme"). */
const PREFIX = 'whsec_';
const FORM = /^whsec_[A-Za-z0-9+/]{43}=$/;
/** Bytes, as many as an HMAC-SHA256 digest. Standard Webhooks requires 24 to 64. */
export const SECRET_BYTES = 32;

/** Seconds for which the previous secret also signs, unless the rotation sets another time. */
export const GRACE_SECONDS_DEFAULT = 86_400;
export const GRACE_SECONDS_MAX = 604_800;

/** The secrets that sign an endpoint's messages. */
export interface EndpointSecrets {
  current: string;
  /** The previous secret, which also signs until `untilMicros`, exclusive. */
  previous: { secret: string; untilMicros: bigint } | null;
}

const bindingOf = (orgId: string, endpointId: string): SealBinding => ({
  orgId,
  subjectId: endpointId,
  purpose: 'webhook-secrets',
});

/** Formats a secret of `SECRET_BYTES`. Error RangeError for another length. */
export function formatSecret(bytes: Uint8Array): string {
  if (bytes.length !== SECRET_BYTES) throw new RangeError(`a webhook secret has ${SECRET_BYTES} bytes`);
  return PREFIX + Buffer.from(bytes).toString('base64');
}

/** The signing bytes: the decoded base64 after the prefix. Error TypeError if the text is no secret. */
export function secretBytes(secret: string): Buffer {
  if (!FORM.test(secret)) throw new TypeError('this is no webhook secret');
  return Buffer.from(secret.slice(PREFIX.length), 'base64');
}

/** The secrets that sign at a time, the current one first. A receiver accepts a message that any of them signed. */
export function signingSecrets({ current, previous }: EndpointSecrets, nowMicros: bigint): string[] {
  return previous !== null && nowMicros < previous.untilMicros ? [current, previous.secret] : [current];
}

/** Makes a new secret current. The former one also signs for `graceSeconds`; any older one stops. */
export function rotateSecrets(
  { current }: EndpointSecrets,
  next: string,
  nowMicros: bigint,
  graceSeconds: number,
): EndpointSecrets {
  const untilMicros = nowMicros + BigInt(graceSeconds) * 1_000_000n;
  return { current: next, previous: graceSeconds === 0 ? null : { secret: current, untilMicros } };
}

export function sealSecrets(
  sealer: Sealer,
  orgId: string,
  endpointId: string,
  { current, previous }: EndpointSecrets,
): { ciphertext: Buffer; keyId: string } {
  const text = JSON.stringify({
    current,
    previous: previous && { secret: previous.secret, until_micros: String(previous.untilMicros) },
  });
  return sealSecretsText(sealer, orgId, endpointId, text);
}

/** Like sealing the secrets, but from the text that `findSecretsText` returns. */
export function sealSecretsText(
  sealer: Sealer,
  orgId: string,
  endpointId: string,
  text: string,
): { ciphertext: Buffer; keyId: string } {
  return sealer.seal(text, bindingOf(orgId, endpointId));
}

/** The secrets as text, to be sealed under another key; undefined if no available key opens them. */
export function findSecretsText(
  sealer: Sealer,
  orgId: string,
  endpointId: string,
  sealed: Buffer,
): string | undefined {
  return sealer.open(sealed, bindingOf(orgId, endpointId));
}

/** The secrets of an endpoint; undefined if it has none or no available key opens them. */
export function findSecrets(
  sealer: Sealer,
  orgId: string,
  { id, ciphertext }: { id: string; ciphertext: Buffer | null },
): EndpointSecrets | undefined {
  const text = ciphertext === null ? undefined : findSecretsText(sealer, orgId, id, ciphertext);
  if (text === undefined) return undefined;
  const { current, previous } = JSON.parse(text) as {
    current: string;
    previous: { secret: string; until_micros: string } | null;
  };
  return {
    current,
    previous: previous && { secret: previous.secret, untilMicros: BigInt(previous.until_micros) },
  };
}

/** Errors: credentials_missing if the secrets were deleted, secret_key_missing if no available key opens them. */
export function openSecrets(
  sealer: Sealer,
  orgId: string,
  endpoint: { id: string; ciphertext: Buffer | null },
): EndpointSecrets {
  if (endpoint.ciphertext === null)
    throw new DomainError(
      'credentials_missing',
      'the endpoint has no secret any more; POST …/rotate-secret gives it a new one',
    );
  const secrets = findSecrets(sealer, orgId, endpoint);
  if (!secrets)
    throw new DomainError(
      'secret_key_missing',
      'the endpoint’s secret cannot be opened: wrong or missing secret key; whoever runs the service gives back the key that sealed it (DATA_DIR/secret-key, or TRUEUP_SECRET_KEY), or POST …/rotate-secret gives the endpoint a new one',
    );
  return secrets;
}
