/**
 * The written form of an API key: `tu_live_<id 10>_<secret 43><check 6>`, base62. The prefix lets secret scanners
 * find it, the check (CRC-32 of everything before it) tells a typing error without asking the database.
 */
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const CRC_POLYNOMIAL = 0xedb88320;

export const KEY_ID_CHARS = 10;
/** 43 base62 characters hold 256 bits. */
export const KEY_SECRET_CHARS = 43;
const CHECK_CHARS = 6;
const KEY_PREFIX = 'tu_live_';
/** Characters of a whole key: prefix, id, underscore, secret, check. */
const KEY_CHARS = KEY_PREFIX.length + KEY_ID_CHARS + 1 + KEY_SECRET_CHARS + CHECK_CHARS;

/** The published pattern of a key, for secret scanners. */
export const KEY_PATTERN = /^tu_live_([0-9A-Za-z]{10})_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/;

const KEY_ID_PREFIX = 'key_';
const KEY_ID = /^key_[0-9A-Za-z]{10}$/;

/** Whether a text is the public id of a key, of one that there is or not. */
export function isKeyId(text: string): boolean {
  return KEY_ID.test(text);
}

export interface ParsedKey {
  /** `key_` and the ten characters: the public id. */
  keyId: string;
  secret: string;
}

const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ CRC_POLYNOMIAL : value >>> 1;
  return value >>> 0;
});

/** CRC-32 (IEEE 802.3) of an ASCII text. */
export function crc32(text: string): number {
  let crc = 0xffffffff;
  for (let i = 0; i < text.length; i += 1)
    crc = (crc >>> 8) ^ (CRC_TABLE[(crc ^ text.charCodeAt(i)) & 0xff] ?? 0);
  return (crc ^ 0xffffffff) >>> 0;
}

function checkOf(text: string): string {
  let rest = crc32(text);
  let check = '';
  for (let i = 0; i < CHECK_CHARS; i += 1) {
    check = (BASE62[rest % 62] ?? '0') + check;
    rest = Math.floor(rest / 62);
  }
  return check;
}

/** Random bytes → base62 text of a length; bytes that would skew the digits are passed over, so give spare ones. */
export function base62FromBytes(bytes: Uint8Array, length: number): string {
  let text = '';
  for (const byte of bytes) {
    if (byte < 248) text += BASE62[byte % 62];
    if (text.length === length) return text;
  }
  throw new RangeError('too few random bytes');
}

/** What every text of a key begins with, whichever secret it has: who sees it knows which key it is and cannot use it. */
export function publicPrefix(keyId: string): string {
  return KEY_PREFIX + keyId.slice(KEY_ID_PREFIX.length);
}

/** The full key from the ten characters of its id and its secret. */
export function composeKey(idChars: string, secret: string): string {
  const body = `${KEY_PREFIX}${idChars}_${secret}`;
  return body + checkOf(body);
}

/** Reads a key; undefined when its form or its check is wrong. */
export function parseKey(key: string): ParsedKey | undefined {
  const match = KEY_PATTERN.exec(key);
  if (!match) return undefined;
  const [, idChars = '', secret = '', check = ''] = match;
  if (checkOf(key.slice(0, -CHECK_CHARS)) !== check) return undefined;
  return { keyId: `key_${idChars}`, secret };
}

/** What is wrong with a text that is to be a key, in words that never repeat it; undefined when it has the form of one. */
export function findKeyFault(text: string): string | undefined {
  if (parseKey(text)) return undefined;
  if (!text.startsWith(KEY_PREFIX)) return `a key begins with ${KEY_PREFIX}`;
  if (text.length !== KEY_CHARS)
    return `a key has ${KEY_CHARS} characters, and this has ${text.length}: it was cut or something was added`;
  if (!KEY_PATTERN.test(text)) return 'it has characters in it that no key has';
  return 'the check sum does not fit, so at least one character is wrong';
}
