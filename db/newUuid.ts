import { randomBytes } from 'node:crypto';
import { uuidFromMicros } from '../domain/ids.js';

/** A new id whose order is that of its time (UUIDv7). */
export function newUuid(atMicros: bigint): string {
  return uuidFromMicros(atMicros, randomBytes(8).readBigUInt64BE());
}
