import { findClaimFile, insertClaimFile, listClaimFiles, type StoredFile } from '../../db/claims/evidence.js';
import type { OrgDb } from '../../db/orgDb.js';
import { packManifest } from '../../domain/claims/evidence/claimCsv.js';
import type { ClaimEvidence } from '../../domain/claims/evidence/claimEvidence.js';
import { DomainError } from '../../domain/errors.js';
import { publicId } from '../../domain/ids.js';
import { parseInstant } from '../../domain/period.js';
import { packBytes } from '../../platform/archive/archiveWriter.js';
import { claimNotFound } from './wholeClaim.js';

const CLAIM_JSON = 'claim.json';
const CLAIM_PDF = 'claim.pdf';
/** Attempts to render the document of a draft that is replaced meanwhile. */
const ATTEMPTS_MAX = 3;

interface DocumentDeps {
  /** Renders the document of a claim in a separate process. Error: document_failed. */
  renderClaim(evidence: ClaimEvidence): Promise<Buffer>;
}

/** A file of a claim's frozen evidence. Error: not_found. */
export async function getEvidenceFile(
  orgDb: OrgDb,
  id: string,
  name: 'claim.json' | 'claim.csv',
): Promise<StoredFile> {
  const file = await findClaimFile(orgDb, id, name);
  if (!file) throw claimNotFound();
  return file;
}

/**
 * The claim's document, rendered from the frozen evidence at the first request and then stored. A draft that is
 * replaced meanwhile is read again. Errors: not_found, document_failed.
 */
export async function getClaimPdf(
  orgDb: OrgDb,
  id: string,
  { renderClaim }: DocumentDeps,
): Promise<StoredFile> {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const stored = await findClaimFile(orgDb, id, CLAIM_PDF);
    if (stored) return stored;
    const evidence = evidenceOf(await getEvidenceFile(orgDb, id, CLAIM_JSON));
    const bytes = await renderClaim(evidence);
    const file = { name: CLAIM_PDF, mediaType: 'application/pdf', bytes };
    const kept = await orgDb.transaction((inside) => insertClaimFile(inside, id, evidence.sha256, file));
    if (kept) return kept;
  }
  throw new DomainError('document_failed', 'the claim changes too often to read it; repeat the request');
}

/**
 * All files of a claim's evidence in one archive with identical bytes each time. Errors: not_found, document_failed.
 */
export async function packClaim(orgDb: OrgDb, id: string, deps: DocumentDeps): Promise<Buffer> {
  await getClaimPdf(orgDb, id, deps);
  const files = await listClaimFiles(orgDb, id);
  const claim = files.find(({ name }) => name === CLAIM_JSON);
  if (!claim) throw claimNotFound();
  const evidence = evidenceOf(claim);
  const text = packManifest({ claimId: publicId('clm', id), evidenceSha256: evidence.sha256 }, files);
  const seconds = Number((parseInstant(evidence.generated_at)?.micros ?? 0n) / 1_000_000n);
  return packBytes([...files, { name: 'manifest.json', bytes: Buffer.from(text) }], seconds);
}

const evidenceOf = ({ bytes }: StoredFile): ClaimEvidence =>
  JSON.parse(bytes.toString('utf8')) as ClaimEvidence;
