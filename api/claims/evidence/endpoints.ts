import { z } from 'zod';
import type { OrgDb } from '../../../db/orgDb.js';
import { getClaimPdf, getEvidenceFile, packClaim } from '../../../usecases/claims/evidenceFiles.js';
import type { ApiDeps } from '../../deps.js';
import { defineEndpoint, type Endpoint, type ResponseDoc } from '../../endpoint.js';
import { CLAIM_READ, claimParams, uuidOfClaim } from '../claims/wire.js';
import { attached, EVIDENCE_PATH } from './wire.js';

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
  read: (orgDb, id) => getEvidenceFile(orgDb, id, 'claim.json'),
});

const getEvidenceCsv = download({
  operationId: 'getClaimEvidenceCsv',
  extension: 'csv',
  summary: 'A claim line by line: each day and class, charged and expected',
  answer: { description: 'claim.csv', contentType: 'text/csv' },
  problems: ['not_found'],
  async read(orgDb, id) {
    const { bytes } = await getEvidenceFile(orgDb, id, 'claim.csv');
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
  read: getClaimPdf,
});

const getEvidencePack = download({
  operationId: 'getClaimEvidencePack',
  extension: 'tar.gz',
  summary: 'The whole pack of a claim, as ./trueup evidence verify checks it',
  description:
    'The evidence, its lines as CSV, its document, the provider’s pages as they were received, the calls and the rates, with a manifest of their sha256. The same bytes each time.',
  answer: { description: 'The pack', contentType: 'application/gzip' },
  problems: ['not_found', 'document_failed'],
  read: async (orgDb, id, deps) => ({
    mediaType: 'application/gzip',
    bytes: await packClaim(orgDb, id, deps),
  }),
});

export const claimEvidenceEndpoints: readonly Endpoint[] = [
  getEvidenceJson,
  getEvidenceCsv,
  getEvidencePdf,
  getEvidencePack,
];
