import { publicId } from '../../../../domain/ids.js';
import type { TestOrganization } from '../../../support/api.js';
import { type ClaimToStore, storeClaim } from '../../../support/claims.js';
import { CLAIMS } from '../claims.js';
import { markerOf, type Operation, unknownId } from './operation.js';

const READ = { scope: 'claims:read', workspace: 'refused' } as const;
const ADMIN = { scope: 'claims:write', workspace: 'refused', role: 'admin' } as const;

/** A claim of the owner, in a status; its public id. */
export async function makeClaim(owner: TestOrganization, given: ClaimToStore = {}): Promise<string> {
  const marker = markerOf(owner);
  return publicId('clm', (await storeClaim(owner.orgDb, { notes: marker, by: marker, ...given })).id);
}

const ofClaim =
  (given?: ClaimToStore): Operation['request'] =>
  async (_place, owner) => ({ params: { id: await makeClaim(owner, given) } });

/** Operations that read and move claims. */
export const CLAIM_OPERATIONS: Record<string, Operation> = {
  listClaims: {
    method: 'GET',
    path: CLAIMS,
    access: READ,
    status: 200,
    request: async (_place, owner) => {
      await makeClaim(owner);
      return {};
    },
  },
  getClaim: {
    method: 'GET',
    path: `${CLAIMS}/{id}`,
    access: READ,
    status: 200,
    ids: { id: unknownId('clm') },
    request: ofClaim(),
  },
  submitClaim: {
    method: 'POST',
    path: `${CLAIMS}/{id}/submit`,
    access: ADMIN,
    status: 200,
    ids: { id: unknownId('clm') },
    request: ofClaim(),
  },
  snoozeClaim: {
    method: 'POST',
    path: `${CLAIMS}/{id}/snooze`,
    access: { scope: 'claims:write', workspace: 'refused' },
    status: 200,
    ids: { id: unknownId('clm') },
    request: async (place, owner) => ({
      ...(await ofClaim()(place, owner)),
      json: { until: new Date(Date.now() + 30 * 86_400_000).toISOString() },
    }),
  },
  setClaimStatus: {
    method: 'PATCH',
    path: `${CLAIMS}/{id}/status`,
    access: ADMIN,
    status: 200,
    ids: { id: unknownId('clm') },
    request: async (place, owner) => ({
      ...(await ofClaim({ status: 'submitted_to_provider' })(place, owner)),
      json: { status: 'under_review', external_ticket_id: markerOf(owner) },
    }),
  },
};
