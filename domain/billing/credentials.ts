import { DomainError } from '../errors.js';
import type { SealBinding, Sealer } from '../sealer.js';

/** What a provider asks for, e.g. `{admin_key}`. */
export type Credentials = Readonly<Record<string, string>>;

const bindingOf = (orgId: string, connectionId: string): SealBinding => ({
  orgId,
  subjectId: connectionId,
  purpose: 'billing-credentials',
});

/** Seals credentials for the one connection that they belong to. */
export function sealCredentials(
  sealer: Sealer,
  orgId: string,
  connectionId: string,
  credentials: Credentials,
): { ciphertext: Buffer; keyId: string } {
  return sealer.seal(JSON.stringify(credentials), bindingOf(orgId, connectionId));
}

/** Credentials as text, to be sealed under another key; undefined when no key opens them. */
export function findSealedText(
  sealer: Sealer,
  orgId: string,
  connectionId: string,
  sealed: Buffer,
): string | undefined {
  return sealer.open(sealed, bindingOf(orgId, connectionId));
}

export function resealText(
  sealer: Sealer,
  orgId: string,
  connectionId: string,
  text: string,
): { ciphertext: Buffer; keyId: string } {
  return sealer.seal(text, bindingOf(orgId, connectionId));
}

/**
 * The credentials of a connection. Errors: credentials_missing when they were given up, secret_key_missing when the key
 * that sealed them is not at hand.
 */
export function openCredentials(
  sealer: Sealer,
  orgId: string,
  connection: { id: string; ciphertext: Buffer | null },
): Credentials {
  if (connection.ciphertext === null) {
    throw new DomainError(
      'credentials_missing',
      'the connection has no credentials any more; give new ones with PATCH, in credentials',
    );
  }
  const text = findSealedText(sealer, orgId, connection.id, connection.ciphertext);
  if (text === undefined) {
    throw new DomainError(
      'secret_key_missing',
      'the credentials cannot be opened: wrong or missing secret key; whoever runs the service gives back the key that sealed them (DATA_DIR/secret-key, or TRUEUP_SECRET_KEY), or new credentials are given with PATCH',
    );
  }
  return JSON.parse(text) as Credentials;
}
