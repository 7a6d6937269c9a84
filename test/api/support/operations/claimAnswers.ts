import { findUuid, publicId } from '../../../../domain/ids.js';
import { storeCredit } from '../../../support/credits.js';
import { CLAIMS } from '../claims.js';
import { makeClaim } from './claims.js';
import { markerOf, type Operation, unknownId } from './operation.js';

const READ = { scope: 'claims:read', workspace: 'refused' } as const;
const WRITE = { scope: 'claims:write', workspace: 'refused' } as const;

const ticketBy = (method: Operation['method']): Operation => ({
  method,
  path: `${CLAIMS}/{id}/ticket-draft`,
  access: method === 'GET' ? READ : WRITE,
  status: 200,
  ids: { id: unknownId('clm') },
  request: async (_place, owner) => ({ params: { id: await makeClaim(owner, { status: 'escalated' }) } }),
});

/** Operations on a provider's answer to a claim, and on a missing answer. */
export const CLAIM_ANSWER_OPERATIONS: Record<string, Operation> = {
  draftTicket: ticketBy('POST'),
  getTicketDraft: ticketBy('GET'),
  rejectClaimCredit: {
    method: 'POST',
    path: `${CLAIMS}/{id}/credits/{credit_id}/reject`,
    access: WRITE,
    status: 200,
    ids: { id: unknownId('clm'), credit_id: unknownId('crd') },
    request: async (_place, owner) => {
      const id = await makeClaim(owner, { status: 'under_review' });
      const description = markerOf(owner);
      const credit = await storeCredit(owner.orgDb, findUuid('clm', id) ?? '', { cents: 100, description });
      return { params: { id, credit_id: publicId('crd', credit) } };
    },
  },
};
