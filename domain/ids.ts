import { LATEST_MICROS } from './period.js';

/** Public ids are a kind prefix and a uuid without dashes; only wire.ts adds and removes the prefix. */
const UUID_HEX = /^[0-9a-f]{32}$/;
const UUID_TEXT = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export type IdKind =
  | 'evt'
  | 'clm'
  | 'inv'
  | 'rpt'
  | 'run'
  | 'dsp'
  | 'alr'
  | 'org'
  | 'imp'
  | 'src'
  | 'prc'
  | 'ctr'
  | 'ovr'
  | 'prp'
  | 'con'
  | 'wsp'
  | 'whk'
  | 'msg'
  | 'dlv'
  | 'rul'
  | 'fnd'
  | 'mat'
  | 'crd'
  | 'ses'
  | 'lnk'
  | 'usr';

export function publicId(kind: IdKind, uuid: string): string {
  return `${kind}_${uuid.replaceAll('-', '')}`;
}

/** The public id of a billing source: an imported file, or the data that a connection fetched. */
export function publicSourceId(kind: 'file' | 'api', uuid: string): string {
  return publicId(kind === 'api' ? 'src' : 'imp', uuid);
}

export function isUuidText(text: string): boolean {
  return UUID_TEXT.test(text);
}

/** Public id → uuid text with dashes; undefined when it is not an id of that kind. */
export function findUuid(kind: IdKind, id: string): string | undefined {
  const prefix = `${kind}_`;
  if (!id.startsWith(prefix)) return undefined;
  const hex = id.slice(prefix.length);
  return UUID_HEX.test(hex) ? formatUuid(hex) : undefined;
}

export function formatUuid(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** A version 7 uuid (RFC 9562, method 3) with microseconds, so that the row behind an id is found by its time. */
export function uuidFromMicros(micros: bigint, random62: bigint): string {
  const millis = micros / 1000n;
  const subMillis = micros % 1000n;
  const high = (millis << 16n) | 0x7000n | subMillis;
  const low = 0x8000000000000000n | (random62 & 0x3fffffffffffffffn);
  return formatUuid(high.toString(16).padStart(16, '0') + low.toString(16).padStart(16, '0'));
}

/** The microseconds in an id made by `uuidFromMicros`; undefined when the uuid is of another make. */
export function findMicrosOfUuid(uuid: string): bigint | undefined {
  const hex = uuid.replaceAll('-', '');
  if (hex[12] !== '7') return undefined;
  const subMillis = BigInt(`0x${hex.slice(13, 16)}`);
  if (subMillis > 999n) return undefined;
  const micros = BigInt(`0x${hex.slice(0, 12)}`) * 1000n + subMillis;
  return micros > LATEST_MICROS ? undefined : micros;
}

export function newUuid(atMicros: bigint): string {
  const [random = 0n] = crypto.getRandomValues(new BigUint64Array(1));
  return uuidFromMicros(atMicros, random);
}
