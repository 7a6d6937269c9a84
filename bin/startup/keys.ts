import type { NewKey } from '../../db/queries/keys.js';
import {
  base62FromBytes,
  composeKey,
  KEY_ID_CHARS,
  KEY_SECRET_CHARS,
  parseKey,
} from '../../domain/access/keyFormat.js';
import type { Role } from '../../domain/access/scopes.js';
import { hashSecret, spareRandomBytes } from '../../platform/keyMaterial.js';

/** A new key in the published format, not stored anywhere yet. */
export function makeKey(): string {
  const [id, secret] = [KEY_ID_CHARS, KEY_SECRET_CHARS].map((length) =>
    base62FromBytes(spareRandomBytes(length), length),
  );
  return composeKey(id ?? '', secret ?? '');
}

/** What is stored of a key; undefined when it is not in the key format. */
export function describeKey(key: string, name: string, role: Role): NewKey | undefined {
  const parsed = parseKey(key);
  if (!parsed) return undefined;
  const { keyId, secret } = parsed;
  return {
    id: keyId,
    name,
    role,
    secretHash: hashSecret(secret),
    last4: key.slice(-4),
    createdBy: 'command line',
  };
}
