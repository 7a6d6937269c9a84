import { publicId } from '../../../../domain/ids.js';
import type { TestOrganization } from '../../../support/api.js';
import { storeFindings } from '../../../support/findings.js';
import { CLAIMS } from '../claims.js';
import { make, markerOf, type Operation, type OperationsPlace, randomName, unknownId } from './operation.js';

const DISPUTES = '/api/v1/financial/disputes';
const READ = { scope: 'financial:read', workspace: 'refused' } as const;
const RESOLVE = { scope: 'financial:write', workspace: 'refused' } as const;
const WRITE = { scope: 'claims:write', workspace: 'refused' } as const;

/** An open dispute in no claim; its public id. */
async function makeDispute(place: OperationsPlace, owner: TestOrganization): Promise<string> {
  const marker = markerOf(owner);
  const [id = ''] = await storeFindings(owner.orgDb, [
    { accountId: marker, model: `${marker}-${randomName()}`, cause: marker, advice: [marker] },
  ]);
  const path = `/api/v1/financial/review-queue/${publicId('fnd', id)}/confirm`;
  return (await make(place, owner, path, { notes: marker })).id;
}

/** A draft over one; its public id. */
export async function makeDraft(place: OperationsPlace, owner: TestOrganization): Promise<string> {
  const dispute_ids = [await makeDispute(place, owner)];
  return (await make(place, owner, CLAIMS, { dispute_ids, notes: markerOf(owner) })).id;
}

const resolveBy = (method: Operation['method']): Operation => ({
  method,
  path: `${DISPUTES}/{id}`,
  access: RESOLVE,
  status: 200,
  ids: { id: unknownId('dsp') },
  request: async (place, owner) => ({
    params: { id: await makeDispute(place, owner) },
    json: { resolution: 'other', notes: markerOf(owner) },
  }),
});

/** Operations that resolve and export disputes, and draft claims over them. */
export const DRAFT_OPERATIONS: Record<string, Operation> = {
  resolveDispute: resolveBy('POST'),
  resolveDisputeByPatch: resolveBy('PATCH'),
  resolveDisputeByPut: resolveBy('PUT'),
  exportDisputes: {
    method: 'GET',
    path: `${DISPUTES}/export`,
    access: READ,
    status: 200,
    request: async (place, owner) => {
      await makeDispute(place, owner);
      return {};
    },
  },
  createClaim: {
    method: 'POST',
    path: CLAIMS,
    access: { ...WRITE, role: 'admin' },
    status: 201,
    request: async (place, owner) => ({
      json: { dispute_ids: [await makeDispute(place, owner)], notes: markerOf(owner) },
    }),
  },
  mergeClaims: {
    method: 'POST',
    path: `${CLAIMS}/{id}/merge`,
    access: WRITE,
    status: 200,
    ids: { id: unknownId('clm') },
    request: async (place, owner) => ({
      params: { id: await makeDraft(place, owner) },
      json: { claim_ids: [await makeDraft(place, owner)] },
    }),
  },
  discardClaim: {
    method: 'DELETE',
    path: `${CLAIMS}/{id}`,
    access: WRITE,
    status: 204,
    ids: { id: unknownId('clm') },
    request: async (place, owner) => ({ params: { id: await makeDraft(place, owner) } }),
  },
};
