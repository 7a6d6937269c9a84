import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';

/** Version of the format of encrypted bytes: version, key id, nonce, ciphertext, tag. */
const VERSION = 1;
const KEY_ID_BYTES = 8;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const HEADER_BYTES = 1 + KEY_ID_BYTES;
export const SECRET_KEY_BYTES = 32;

/**
 * The context of encrypted bytes: they cannot be decrypted in any other, so that a row copied elsewhere reveals
 * nothing.
 */
export interface SecretBinding {
  orgId: string;
  /** Their owner within the organization, e.g. a connection's id. */
  subjectId: string;
  /** Their kind, e.g. `billing-credentials`. */
  purpose: string;
}

/** A key and the id by which ciphertexts refer to it. */
export interface SecretKey {
  /** 16 hex digits of the key's digest: identifies a key and reveals nothing about it. */
  id: string;
  bytes: Buffer;
}

/** A key from its base64 or base64url text; undefined when that is not 32 bytes. */
export function parseSecretKey(text: string): SecretKey | undefined {
  if (!/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  return bytes.length === SECRET_KEY_BYTES ? { id: keyIdOf(bytes), bytes } : undefined;
}

/** A new key, as its base64 text. */
export function makeSecretKey(): string {
  return randomBytes(SECRET_KEY_BYTES).toString('base64');
}

function keyIdOf(bytes: Buffer): string {
  return createHash('sha256')
    .update('trueup secret key id\0')
    .update(bytes)
    .digest('hex')
    .slice(0, KEY_ID_BYTES * 2);
}

/** The id of the key that encrypted these bytes; undefined: they have another format. */
export function findSealingKeyId(sealed: Buffer): string | undefined {
  if (sealed[0] !== VERSION || sealed.length < HEADER_BYTES + NONCE_BYTES + TAG_BYTES) return undefined;
  return sealed.subarray(1, HEADER_BYTES).toString('hex');
}

/** Encrypts by AES-256-GCM with a random nonce; the context is authenticated with the text. */
export function seal(key: SecretKey, text: string, binding: SecretBinding): Buffer {
  const header = Buffer.concat([Buffer.from([VERSION]), Buffer.from(key.id, 'hex')]);
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key.bytes, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(additionalData(header, binding));
  const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return Buffer.concat([header, nonce, body, cipher.getAuthTag()]);
}

/** Decrypts; undefined: the key is another, the bytes were changed, or the context differs. */
export function open(key: SecretKey, sealed: Buffer, binding: SecretBinding): string | undefined {
  if (findSealingKeyId(sealed) !== key.id) return undefined;
  const header = sealed.subarray(0, HEADER_BYTES);
  const nonce = sealed.subarray(HEADER_BYTES, HEADER_BYTES + NONCE_BYTES);
  const decipher = createDecipheriv('aes-256-gcm', key.bytes, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(additionalData(header, binding));
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  try {
    const body = sealed.subarray(HEADER_BYTES + NONCE_BYTES, -TAG_BYTES);
    return Buffer.concat([decipher.update(body), decipher.final()]).toString('utf8');
  } catch {
    return undefined;
  }
}

function additionalData(header: Buffer, { orgId, subjectId, purpose }: SecretBinding): Buffer {
  return Buffer.concat([header, Buffer.from(JSON.stringify([purpose, orgId, subjectId]), 'utf8')]);
}

/** HMAC-SHA256 of a text with a key that is derived for one purpose (HKDF, RFC 5869). */
export function sign(key: SecretKey, purpose: string, text: string): Buffer {
  const derived = hkdfSync('sha256', key.bytes, '', `trueup signature: ${purpose}`, SECRET_KEY_BYTES);
  return createHmac('sha256', Buffer.from(derived)).update(text, 'utf8').digest();
}

/** Whether a signature is by this key for this text and purpose. */
export function isSignedBy(key: SecretKey, purpose: string, text: string, signature: Buffer): boolean {
  const own = sign(key, purpose, text);
  return own.length === signature.length && timingSafeEqual(own, signature);
}

/** Random bytes, with a reserve for those that base62 skips. */
export function spareRandomBytes(characters: number): Buffer {
  return randomBytes(characters * 2);
}

/** sha256 of a key's secret, which is stored. The secret has 256 random bits, so no slow hash is needed. */
export function hashSecret(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

/** Compares two digests in constant time. */
export function sameDigest(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
