import { randomBytes, randomFillSync } from 'node:crypto';

/**
 * Ids of calls from the system's random numbers. Streams of `Random` are parts of one cycle of 2^32 numbers, and a run of
 * many loads draws enough of them that two streams meet: then calls of two loads would have the same ids.
 */

const DIGITS = Buffer.from('0123456789abcdef');
const pool = Buffer.alloc(65_536);
let used = pool.length;

/** Writes lower-case hex digits into bytes. */
export function writeRandomHex(digits: number, bytes: Uint8Array, at: number): void {
  if (used + digits > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  for (let place = 0; place < digits; place += 1)
    bytes[at + place] = DIGITS[(pool[used + place] as number) & 15] as number;
  used += digits;
}

export function randomHex(digits: number): string {
  return randomBytes(digits / 2).toString('hex');
}
