import { publicId } from '../../../../domain/ids.js';
import type { TestOrganization } from '../../../support/api.js';
import { storeFindings } from '../../../support/findings.js';
import { make, markerOf, type Operation, randomName, unknownId } from './operation.js';

const FINANCIAL = '/api/v1/financial';
const READ = { scope: 'financial:read', workspace: 'refused' } as const;
const WRITE = { scope: 'financial:write', workspace: 'refused' } as const;

/** A finding over a new series; returns its public id. */
async function makeFinding(owner: TestOrganization): Promise<string> {
  const marker = markerOf(owner);
  const [id = ''] = await storeFindings(owner.orgDb, [
    { accountId: marker, model: `${marker}-${randomName()}`, cause: marker, advice: [marker] },
  ]);
  return publicId('fnd', id);
}

/** A dispute over such a finding; its public id. */
const makeDispute: Operation['request'] = async (place, owner) => {
  const path = `${FINANCIAL}/review-queue/${await makeFinding(owner)}/confirm`;
  return { params: { id: (await make(place, owner, path, { notes: markerOf(owner) })).id } };
};

const listOf = (path: string, makeOne: Operation['request']): Operation => ({
  method: 'GET',
  path: `${FINANCIAL}${path}`,
  access: READ,
  status: 200,
  request: async (place, owner) => {
    await makeOne(place, owner);
    return {};
  },
});

const ofFinding: Operation['request'] = async (_place, owner) => ({
  params: { id: await makeFinding(owner) },
});

/** Operations on findings, decisions about them, and recoverable dollars. */
export const FINANCIAL_OPERATIONS: Record<string, Operation> = {
  getFinancialSummary: listOf('/summary', ofFinding),
  getReviewQueue: listOf('/review-queue', ofFinding),
  confirmReviewItem: {
    method: 'POST',
    path: `${FINANCIAL}/review-queue/{id}/confirm`,
    access: WRITE,
    status: 201,
    ids: { id: unknownId('fnd') },
    request: async (place, owner) => ({
      ...(await ofFinding(place, owner)),
      json: { notes: markerOf(owner) },
    }),
  },
  dismissReviewItem: {
    method: 'POST',
    path: `${FINANCIAL}/review-queue/{id}/dismiss`,
    access: WRITE,
    status: 200,
    ids: { id: unknownId('fnd') },
    request: async (place, owner) => ({
      ...(await ofFinding(place, owner)),
      json: { reason: markerOf(owner) },
    }),
  },
  listFindings: listOf('/findings', ofFinding),
  getFinding: {
    method: 'GET',
    path: `${FINANCIAL}/findings/{id}`,
    access: READ,
    status: 200,
    ids: { id: unknownId('fnd') },
    request: ofFinding,
  },
  listDisputes: listOf('/disputes', makeDispute),
  getDispute: {
    method: 'GET',
    path: `${FINANCIAL}/disputes/{id}`,
    access: READ,
    status: 200,
    ids: { id: unknownId('dsp') },
    request: makeDispute,
  },
};
