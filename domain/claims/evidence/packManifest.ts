import { EVIDENCE_FORMAT } from './claimEvidence.js';

/** A file of a pack, as its manifest lists it. */
export interface PackedFile {
  name: string;
  mediaType: string;
  sizeBytes: number;
  /** hex */
  sha256: string;
}

/** The text of `manifest.json`: every other file of a pack with its sha256, in their order. */
export function packManifest(
  of: { claimId: string; evidenceSha256: string },
  files: readonly PackedFile[],
): string {
  const manifest = {
    format: EVIDENCE_FORMAT,
    claim_id: of.claimId,
    evidence_sha256: of.evidenceSha256,
    files: files.map(({ name, mediaType, sizeBytes, sha256 }) => ({
      path: name,
      media_type: mediaType,
      size_bytes: sizeBytes,
      sha256,
    })),
  };
  return `${JSON.stringify(manifest, null, 1)}\n`;
}

/** What JSON holds. */
export type JsonValue =
  | null
  | boolean
  | number
  | string
  | readonly JsonValue[]
  | { readonly [key: string]: JsonValue | undefined };

/**
 * The one text of a JSON value, whoever writes it down: no spaces, the names of each object in the order of their UTF-16
 * code units, numbers and strings as JSON.stringify writes them, names without a value left out. Its UTF-8 bytes are what
 * is hashed, so that a value that a database or a client has taken apart and put together again has the same hash.
 */
export function canonicalJson(value: JsonValue): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  if (isList(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const parts = Object.keys(value)
    .sort()
    .flatMap((name) => {
      const one = value[name];
      return one === undefined ? [] : [`${JSON.stringify(name)}:${canonicalJson(one)}`];
    });
  return `{${parts.join(',')}}`;
}

const isList = (value: object): value is readonly JsonValue[] => Array.isArray(value);
