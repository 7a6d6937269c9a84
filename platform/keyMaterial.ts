import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

/** Random bytes that leave room for those that base62 passes over. */
export function spareRandomBytes(characters: number): Buffer {
  return randomBytes(characters * 2);
}

/** sha256 of a key's secret: what is stored. The secret has 256 random bits, so no slow hash is needed. */
export function hashSecret(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

/** Compares two digests in constant time. */
export function sameDigest(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
