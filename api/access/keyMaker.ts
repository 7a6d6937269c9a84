import {
  base62FromBytes,
  composeKey,
  KEY_ID_CHARS,
  KEY_SECRET_CHARS,
  parseKey,
} from '../../domain/access/keyFormat.js';
import { hashSecret, spareRandomBytes } from '../../platform/keyMaterial.js';

/** What is stored of a key's text; the text itself is shown once and kept nowhere. */
export interface KeyDigest {
  /** `key_` and ten characters. */
  id: string;
  secretHash: Buffer;
  last4: string;
}

/** A key's text and what is stored of it. */
export interface DrawnKey extends KeyDigest {
  text: string;
}

/** A new key in the published format, not stored anywhere yet; with an id, a new secret for that key. */
export function drawKey(id?: string): DrawnKey {
  const idChars = id === undefined ? draw(KEY_ID_CHARS) : id.slice('key_'.length);
  const text = composeKey(idChars, draw(KEY_SECRET_CHARS));
  const digest = digestKey(text);
  if (!digest) throw new Error('a new key is not in the key format');
  return { ...digest, text };
}

/** What is stored of a key; undefined when the text is not in the key format. */
export function digestKey(text: string): KeyDigest | undefined {
  const parsed = parseKey(text);
  return parsed && { id: parsed.keyId, secretHash: hashSecret(parsed.secret), last4: text.slice(-4) };
}

function draw(characters: number): string {
  return base62FromBytes(spareRandomBytes(characters), characters);
}
