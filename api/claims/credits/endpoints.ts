import { z } from 'zod';
import { DomainError } from '../../../domain/errors.js';
import { findUuid, publicId } from '../../../domain/ids.js';
import { recordAction } from '../../../usecases/access/recordAction.js';
import { rejectCredit } from '../../../usecases/claims/decideCredits.js';
import { getWholeClaim, uuidOfClaim } from '../../../usecases/claims/wholeClaim.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { CLAIMS_PATH, claimParams, claimSchema, presentClaim } from '../claims/wire.js';

const TAG = 'Claims';

const creditParams = claimParams.extend({
  credit_id: z.string().max(64, { error: 'is not the id of a credit' }),
});

const rejectCreditEndpoint = defineEndpoint({
  operationId: 'rejectClaimCredit',
  method: 'post',
  path: `${CLAIMS_PATH}/{id}/credits/{credit_id}/reject`,
  tag: TAG,
  summary: 'Say that a credit is not the answer to a claim',
  description:
    'It is not proposed for this claim again, and may be for another one. A credit is accepted by the move that it proposes. A repeat changes nothing.',
  access: { scope: 'claims:write', workspace: 'refused' },
  params: creditParams,
  responses: { 200: { description: 'The claim as it is now', schema: claimSchema } },
  problems: ['not_found', 'already_resolved'],
  async handle(request) {
    const { params, caller, orgDb } = request;
    const claimId = uuidOfClaim(params.id);
    const creditId = findUuid('crd', params.credit_id);
    if (creditId === undefined)
      throw new DomainError('not_found', 'no credit with this id was proposed for the claim');
    const whole = await orgDb.transaction(async (inside) => {
      const credit = await rejectCredit(inside, { claimId, creditId, by: caller.keyId });
      const claim = await getWholeClaim(inside, claimId);
      await recordAction(
        inside,
        request,
        'claim.credit_rejected',
        { type: 'claim', id: publicId('clm', claimId) },
        { credit_id: publicId('crd', creditId), source: credit.source, amount_cents: credit.cents },
      );
      return claim;
    });
    return { status: 200, body: presentClaim(orgDb.orgId, whole) };
  },
});

export const claimCreditEndpoints: readonly Endpoint[] = [rejectCreditEndpoint];
