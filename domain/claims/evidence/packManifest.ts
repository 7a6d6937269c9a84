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
