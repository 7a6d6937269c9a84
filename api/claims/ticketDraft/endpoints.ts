import { draftTicket } from '../../../domain/claims/ticketDraft.js';
import { DomainError } from '../../../domain/errors.js';
import { publicId } from '../../../domain/ids.js';
import { isoFromMicros } from '../../../domain/period.js';
import { recordAction } from '../../../usecases/access/recordAction.js';
import { readTicketFacts } from '../../../usecases/claims/readTicketFacts.js';
import { claimNotFound, uuidOfClaim } from '../../../usecases/claims/wholeClaim.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { CLAIM_READ, CLAIMS_PATH, claimParams } from '../claims/wire.js';
import { ticketSchema } from './wire.js';

const ticketEndpoint = (method: 'get' | 'post', operationId: string): Endpoint =>
  defineEndpoint({
    operationId,
    method,
    path: `${CLAIMS_PATH}/{id}/ticket-draft`,
    tag: 'Claims',
    summary: 'The text of a support ticket for an escalated claim',
    description: 'Made anew on every call from what is known now; nothing is stored and nothing is sent.',
    // A POST leaves a row in the audit log, which whoever only reads does not.
    access: method === 'post' ? { scope: 'claims:write', workspace: 'refused' } : CLAIM_READ,
    params: claimParams,
    responses: { 200: { description: 'The draft', schema: ticketSchema } },
    problems: ['not_found', 'illegal_transition'],
    async handle(request, deps) {
      const { params, orgDb } = request;
      const id = uuidOfClaim(params.id);
      const found = await readTicketFacts(orgDb, id);
      if (!found) throw claimNotFound();
      if (found.status !== 'escalated')
        throw new DomainError(
          'illegal_transition',
          `the claim is ${found.status}: a ticket is drafted for a claim that is escalated`,
        );
      const { subject, body, suggestedResolution } = draftTicket(found.facts);
      const claimId = publicId('clm', id);
      if (method === 'post')
        await recordAction(orgDb, request, 'claim.ticket_drafted', { type: 'claim', id: claimId });
      return {
        status: 200,
        body: {
          org_id: publicId('org', orgDb.orgId),
          claim_id: claimId,
          subject,
          body,
          suggested_resolution: suggestedResolution,
          evidence_refs: ['pdf', 'csv', 'json', 'tar.gz'].map(
            (extension) => `${deps.settings.baseUrl()}${CLAIMS_PATH}/${claimId}/evidence.${extension}`,
          ),
          generated_at: isoFromMicros(found.atMicros),
        },
      };
    },
  });

export const ticketDraftEndpoints: readonly Endpoint[] = [
  ticketEndpoint('post', 'draftTicket'),
  ticketEndpoint('get', 'getTicketDraft'),
];
