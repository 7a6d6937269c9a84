/** The files of claims' evidence, as they were when each claim was made. */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { EvidenceFile } from '../../domain/claims/evidence/claimEvidence.js';
import type { PackedFile } from '../../domain/claims/evidence/packManifest.js';
import type { OrgDb } from '../orgDb.js';

const pack = promisify(gzip);
const unpack = promisify(gunzip);

/** A file and what is known of it. */
export interface StoredFile extends PackedFile {
  bytes: Buffer;
}

interface FileRow {
  name: string;
  media_type: string;
  bytes: number;
  sha256: Buffer;
  content: Buffer;
}

const COLUMNS = 'name, media_type, bytes, sha256, content';

/** Throws Error for bytes that are not those that were stored. */
async function fromFileRow(row: FileRow): Promise<StoredFile> {
  const bytes = await unpack(row.content);
  const digest = createHash('sha256').update(bytes).digest();
  if (!digest.equals(row.sha256)) throw new Error(`the stored file ${row.name} of a claim is damaged`);
  return {
    name: row.name,
    mediaType: row.media_type,
    sizeBytes: row.bytes,
    sha256: digest.toString('hex'),
    bytes,
  };
}

/** Undefined where there is no such claim, or no such file of it. */
export async function findClaimFile(
  orgDb: OrgDb,
  claimId: string,
  name: string,
): Promise<StoredFile | undefined> {
  const [row] = await orgDb.rows<FileRow>(
    `select ${COLUMNS} from claim_files where org_id = $1 and claim_id = $2::uuid and name = $3`,
    [orgDb.orgId, claimId, name],
  );
  return row && fromFileRow(row);
}

/** All files of a claim by their names; in memory as a whole. */
export async function listClaimFiles(orgDb: OrgDb, claimId: string): Promise<StoredFile[]> {
  const rows = await orgDb.rows<FileRow>(
    `select ${COLUMNS} from claim_files where org_id = $1 and claim_id = $2::uuid order by name collate "C"`,
    [orgDb.orgId, claimId],
  );
  return Promise.all(rows.map(fromFileRow));
}

/**
 * Stores a file that is made from a claim's frozen evidence, once, as long as it is that evidence: a draft may have been
 * made anew meanwhile. Returns the stored one, which another may have stored first; undefined where the evidence is other.
 */
export async function insertClaimFile(
  orgDb: OrgDb,
  claimId: string,
  evidenceSha256: string,
  file: EvidenceFile,
): Promise<StoredFile | undefined> {
  return orgDb.transaction(async (inside) => {
    const [same] = await inside.rows<{ id: string }>(
      `select id from claims where org_id = $1 and id = $2::uuid and evidence_sha256 = $3 for share`,
      [inside.orgId, claimId, Buffer.from(evidenceSha256, 'hex')],
    );
    if (!same) return undefined;
    await inside.run(
      `insert into claim_files (org_id, claim_id, name, media_type, bytes, sha256, content)
       values ($1, $2::uuid, $3, $4, $5, $6, $7) on conflict do nothing`,
      [
        ...[inside.orgId, claimId, file.name, file.mediaType, file.bytes.length],
        ...[createHash('sha256').update(file.bytes).digest(), await pack(file.bytes)],
      ],
    );
    return findClaimFile(inside, claimId, file.name);
  });
}
