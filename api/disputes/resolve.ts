import type { StoredDispute } from '../../db/queries/disputes.js';
import { findDispute } from '../../db/queries/disputes.js';
import { type HeldDispute, lockDispute, resolveDispute } from '../../db/queries/resolveDispute.js';
import { DomainError } from '../../domain/errors.js';
import { findUuid, publicId } from '../../domain/ids.js';
import { defineEndpoint, type Endpoint, type HttpMethod } from '../endpoint.js';
import { recordAction } from '../recordAction.js';
import { DISPUTES_PATH, disputeParams, disputeSchema, presentDispute, resolveBody } from './wire.js';

/** The same by every method that somebody may try. */
const METHODS = {
  post: 'resolveDispute',
  patch: 'resolveDisputeByPatch',
  put: 'resolveDisputeByPut',
} as const satisfies Partial<Record<HttpMethod, string>>;

const resolveBy = (method: keyof typeof METHODS): Endpoint =>
  defineEndpoint({
    operationId: METHODS[method],
    method,
    path: `${DISPUTES_PATH}/{id}`,
    tag: 'Financial',
    summary: 'Resolve a dispute without a claim',
    description:
      'A repeat with the same resolution changes nothing. A dispute that is in a claim is resolved by the end of the claim, or once its draft is discarded. POST, PATCH and PUT do the same.',
    access: { scope: 'financial:write', workspace: 'refused' },
    params: disputeParams,
    body: resolveBody,
    responses: { 200: { description: 'The dispute as it is now', schema: disputeSchema } },
    problems: ['not_found', 'already_resolved', 'already_claimed'],
    async handle(request) {
      const { params, body, orgDb, caller } = request;
      const id = findUuid('dsp', params.id);
      const dispute = await orgDb.transaction(async (inside) => {
        const held = id === undefined ? undefined : await lockDispute(inside, id);
        if (!held) throw new DomainError('not_found', 'there is no dispute with this id');
        const { dispute } = held;
        if (isResolvedSo(held, body.resolution)) return dispute;
        const said = { resolution: body.resolution, notes: body.notes || null, by: caller.keyId };
        await resolveDispute(inside, dispute.id, said);
        const after = await findDispute(inside, dispute.id);
        const subject = { type: 'dispute', id: publicId('dsp', dispute.id) };
        await recordAction(inside, request, 'dispute.resolved', subject, {
          resolution: body.resolution,
          amount_cents: dispute.amountCents,
        });
        return after ?? dispute;
      });
      return { status: 200, body: presentDispute(orgDb.orgId, dispute) };
    },
  });

/** Whether it is resolved in this way already; false where it can be. Errors already_resolved, already_claimed. */
function isResolvedSo({ dispute, claimStatus }: HeldDispute, resolution: string): boolean {
  if (dispute.status === 'resolved') {
    if (dispute.resolution === resolution) return true;
    throw new DomainError(
      'already_resolved',
      `it is resolved as ${dispute.resolution}; what is resolved stays so`,
    );
  }
  if (dispute.claimId !== null) throw inClaim(dispute, dispute.claimId, claimStatus);
  return false;
}

function inClaim(dispute: StoredDispute, claimId: string, status: HeldDispute['claimStatus']): DomainError {
  const claim = publicId('clm', claimId);
  return new DomainError(
    'already_claimed',
    dispute.status === 'open' || status === 'draft'
      ? `it is in the draft ${claim}: discard that one first (DELETE /api/v1/claims/${claim})`
      : `it is in the claim ${claim}, which is ${status}: record what the provider answers (PATCH /api/v1/claims/${claim}/status), and the end of the claim resolves it`,
  );
}

export const resolveEndpoints: readonly Endpoint[] = [
  resolveBy('post'),
  resolveBy('patch'),
  resolveBy('put'),
];
