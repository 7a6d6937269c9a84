import { isoFromMicros } from '../period.js';

/** Hex digits of the content hash that a version shows. */
const HASH_DIGITS = 8;

/**
 * The name of a state of the price table, `YYYYMMDDTHHMMSSffffffZ-<8 hex of the content hash>`:
 * the time tells which is newer, the hash tells two states of one microsecond apart.
 */
export function priceVersionName(updatedAtMicros: bigint, contentHash: string): string {
  const [whole = '', fraction = ''] = isoFromMicros(updatedAtMicros).replace('Z', '').split('.');
  const time = whole.replaceAll('-', '').replaceAll(':', '');
  return `${time}${fraction.padEnd(6, '0')}Z-${contentHash.slice(0, HASH_DIGITS)}`;
}
