import { z } from 'zod';
import {
  findClaimFile,
  insertClaimFile,
  listClaimFiles,
  type StoredFile,
} from '../../../db/claims/claimEvidenceFiles.js';
import type { OrgDb } from '../../../db/orgDb.js';
import { packManifest } from '../../../domain/claims/evidence/packManifest.js';
import { DomainError } from '../../../domain/errors.js';
import { publicId } from '../../../domain/ids.js';
import { parseInstant } from '../../../domain/period.js';
import { packBytes } from '../../../platform/archive/packBytes.js';
import { claimNotFound, uuidOfClaim } from '../../../usecases/claims/wholeClaim.js';
import type { ApiDeps } from '../../deps.js';
import { defineEndpoint, type Endpoint, type ResponseDoc } from '../../endpoint.js';
import { CLAIM_READ, claimParams } from '../claims/wire.js';
import { attached, EVIDENCE_PATH, evidenceOf } from './wire.js';

const CLAIM_JSON = 'claim.json';
const CLAIM_PDF = 'claim.pdf';

/** Error not_found. */
async function getFile(orgDb: OrgDb, id: string, name: string): Promise<StoredFile> {
  const file = await findClaimFile(orgDb, id, name);
  if (!file) throw claimNotFound();
  return file;
}

/** How often a draft may be made anew while its document is set. */
const ATTEMPTS_MAX = 3;

/**
 * The document, set from the frozen evidence when it is first asked for and stored then. A draft that is made anew
 * meanwhile is read again. Errors not_found, document_failed.
 */
async function getPdf(orgDb: OrgDb, id: string, deps: ApiDeps): Promise<StoredFile> {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
    const stored = await findClaimFile(orgDb, id, CLAIM_PDF);
    if (stored) return stored;
    const evidence = evidenceOf(await getFile(orgDb, id, CLAIM_JSON));
    const bytes = await deps.renderClaim(evidence);
    const file = { name: CLAIM_PDF, mediaType: 'application/pdf', bytes };
    const kept = await insertClaimFile(orgDb, id, evidence.sha256, file);
    if (kept) return kept;
  }
  throw new DomainError('document_failed', 'the claim is made anew again and again; ask once more');
}

/** One form of a claim's evidence, as it is downloaded. */
interface EvidenceForm extends Pick<Endpoint, 'operationId' | 'summary' | 'description' | 'problems'> {
  extension: string;
  answer: ResponseDoc;
  read(orgDb: OrgDb, id: string, deps: ApiDeps): Promise<{ mediaType: string; bytes: Buffer }>;
}

const download = ({ extension, answer, read, ...described }: EvidenceForm): Endpoint =>
  defineEndpoint({
    ...described,
    method: 'get',
    path: `${EVIDENCE_PATH}.${extension}`,
    tag: 'Claims',
    access: CLAIM_READ,
    limit: 'export',
    params: claimParams,
    responses: { 200: answer },
    async handle({ params, orgDb }, deps) {
      const id = uuidOfClaim(params.id);
      const { mediaType, bytes } = await read(orgDb, id, deps);
      return { status: 200, headers: attached(id, extension), content: { type: mediaType, data: bytes } };
    },
  });

const getEvidenceJson = download({
  operationId: 'getClaimEvidenceJson',
  extension: 'json',
  summary: 'The frozen evidence of a claim, byte for byte as in its pack',
  answer: { description: 'claim.json', schema: z.record(z.string(), z.unknown()) },
  problems: ['not_found'],
  read: (orgDb, id) => getFile(orgDb, id, CLAIM_JSON),
});

const getEvidenceCsv = download({
  operationId: 'getClaimEvidenceCsv',
  extension: 'csv',
  summary: 'A claim line by line: each day and class, charged and expected',
  answer: { description: 'claim.csv', contentType: 'text/csv' },
  problems: ['not_found'],
  async read(orgDb, id) {
    const { bytes } = await getFile(orgDb, id, 'claim.csv');
    return { mediaType: 'text/csv; charset=utf-8; header=present', bytes };
  },
});

const getEvidencePdf = download({
  operationId: 'getClaimEvidencePdf',
  extension: 'pdf',
  summary: 'The document of a claim: summary, chart, lines, rates, calls and pages',
  description: 'Set from the frozen evidence when it is first asked for; the same bytes from then on.',
  answer: { description: 'claim.pdf', contentType: 'application/pdf' },
  problems: ['not_found', 'document_failed'],
  read: getPdf,
});

const getEvidencePack = download({
  operationId: 'getClaimEvidencePack',
  extension: 'tar.gz',
  summary: 'The whole pack of a claim, as npm run evidence:verify checks it',
  description:
    'The evidence, its lines as CSV, its document, the provider’s pages as they were received, the calls and the rates, with a manifest of their sha256. The same bytes each time.',
  answer: { description: 'The pack', contentType: 'application/gzip' },
  problems: ['not_found', 'document_failed'],
  async read(orgDb, id, deps) {
    await getPdf(orgDb, id, deps);
    const files = await listClaimFiles(orgDb, id);
    const claim = files.find(({ name }) => name === CLAIM_JSON);
    if (!claim) throw claimNotFound();
    const evidence = evidenceOf(claim);
    const text = packManifest({ claimId: publicId('clm', id), evidenceSha256: evidence.sha256 }, files);
    const seconds = Number((parseInstant(evidence.generated_at)?.micros ?? 0n) / 1_000_000n);
    const bytes = await packBytes([...files, { name: 'manifest.json', bytes: Buffer.from(text) }], seconds);
    return { mediaType: 'application/gzip', bytes };
  },
});

export const claimEvidenceEndpoints: readonly Endpoint[] = [
  getEvidenceJson,
  getEvidenceCsv,
  getEvidencePdf,
  getEvidencePack,
];
