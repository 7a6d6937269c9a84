import { CLAIMS } from '../claims.js';
import { makeDraft } from './drafts.js';
import { type Operation, unknownId } from './operation.js';

const READ = { scope: 'claims:read', workspace: 'refused' } as const;

const fileOf = (extension: string): Operation => ({
  method: 'GET',
  path: `${CLAIMS}/{id}/evidence.${extension}`,
  access: READ,
  status: 200,
  ids: { id: unknownId('clm') },
  request: async (place, owner) => ({ params: { id: await makeDraft(place, owner) } }),
});

/** The files of a claim's evidence. */
export const EVIDENCE_OPERATIONS: Record<string, Operation> = {
  getClaimEvidenceJson: fileOf('json'),
  getClaimEvidenceCsv: fileOf('csv'),
  getClaimEvidencePdf: fileOf('pdf'),
  getClaimEvidencePack: fileOf('tar.gz'),
};
