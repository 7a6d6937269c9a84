import { digestKey, drawKey } from '../../api/access/keyMaker.js';
import type { NewKey } from '../../db/access/keys.js';
import type { Role } from '../../domain/access/scopes.js';

/** A new key in the published format, not stored anywhere yet. */
export function makeKey(): string {
  return drawKey().text;
}

/** What is stored of a key; undefined when it is not in the key format. */
export function describeKey(key: string, name: string, role: Role): NewKey | undefined {
  const digest = digestKey(key);
  return digest && { ...digest, name, role, createdBy: 'command line' };
}
