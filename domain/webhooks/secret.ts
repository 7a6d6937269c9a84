import { DomainError } from '../errors.js';
import type { SealBinding, Sealer } from '../sealer.js';

/** A secret is `whsec_` and base64 of its bytes (Standard Webhooks, "Signature scheme"). */
const PREFIX = 'whsec_';
const FORM = /^whsec_[A-Za-z0-9+/]{43}=$/;
/** Standard Webhooks asks for 24 to 64; as many as the digest of HMAC-SHA256 has. */
export const SECRET_BYTES = 32;

/** How long the secret before signs too, where a rotation does not say. */
export const GRACE_SECONDS_DEFAULT = 86_400;
export const GRACE_SECONDS_MAX = 604_800;

/** What an endpoint's messages are signed with. */
export interface EndpointSecrets {
  current: string;
  /** The one before, while it signs too: until that microsecond, exclusive. */
  previous: { secret: string; untilMicros: bigint } | null;
}

const bindingOf = (orgId: string, endpointId: string): SealBinding => ({
  orgId,
  subjectId: endpointId,
  purpose: 'webhook-secrets',
});

/** The text of a secret with these bytes. Error RangeError for another number of them. */
export function formatSecret(bytes: Uint8Array): string {
  if (bytes.length !== SECRET_BYTES) throw new RangeError(`a webhook secret has ${SECRET_BYTES} bytes`);
  return PREFIX + Buffer.from(bytes).toString('base64');
}

/** The bytes that sign: those of the base64 behind the prefix. Error TypeError for a text that is no secret. */
export function secretBytes(secret: string): Buffer {
  if (!FORM.test(secret)) throw new TypeError('this is no webhook secret');
  return Buffer.from(secret.slice(PREFIX.length), 'base64');
}

/** The secrets that sign at a moment, the current one first. A receiver accepts a message that any of them signed. */
export function signingSecrets({ current, previous }: EndpointSecrets, nowMicros: bigint): string[] {
  return previous !== null && nowMicros < previous.untilMicros ? [current, previous.secret] : [current];
}

/** A new secret takes the place of the current one, which signs too for `graceSeconds`; what was before it does no more. */
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

/** Likewise, of secrets as the text that `findSecretsText` gave. */
export function sealSecretsText(
  sealer: Sealer,
  orgId: string,
  endpointId: string,
  text: string,
): { ciphertext: Buffer; keyId: string } {
  return sealer.seal(text, bindingOf(orgId, endpointId));
}

/** Secrets as text, to be sealed under another key; undefined when no key opens them. */
export function findSecretsText(
  sealer: Sealer,
  orgId: string,
  endpointId: string,
  sealed: Buffer,
): string | undefined {
  return sealer.open(sealed, bindingOf(orgId, endpointId));
}

/** The secrets of an endpoint; undefined where it has none, and where no key at hand opens them. */
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

/** Errors: credentials_missing when given up, secret_key_missing without the key. */
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
