import type { OrgDb } from '../../../db/orgDb.js';
import { DomainError, invalidField } from '../../../domain/errors.js';
import { findUuid, publicId } from '../../../domain/ids.js';
import { recordAction } from '../../../usecases/access/recordAction.js';
import {
  createClaim,
  discardDraft,
  mergeDrafts,
  readyToDraft,
} from '../../../usecases/claims/draftClaims.js';
import { getWholeClaim, uuidOfClaim } from '../../../usecases/claims/wholeClaim.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { CLAIM_ADMIN, CLAIMS_PATH, claimParams, claimSchema, presentClaim } from '../claims/wire.js';
import { createClaimBody, MERGE_PATH, mergeClaimsBody } from './wire.js';

const TAG = 'Claims';
/** Drafts are put in order by whoever may write claims; to make one of what was chosen takes an admin. */
const CLAIM_WRITE = { scope: 'claims:write', workspace: 'refused' } as const;
const subjectOf = (id: string) => ({ type: 'claim', id: publicId('clm', id) });

async function answerWith(inside: OrgDb, id: string) {
  return presentClaim(inside.orgId, await getWholeClaim(inside, id));
}

const createClaimEndpoint = defineEndpoint({
  operationId: 'createClaim',
  method: 'post',
  path: CLAIMS_PATH,
  tag: TAG,
  summary: 'Draft a claim over chosen disputes',
  description:
    'Of one account of one provider, of as many kinds and months as there are. What the provider charged the account too little in these months is taken off and listed, and the evidence is frozen.',
  access: CLAIM_ADMIN,
  body: createClaimBody,
  idempotency: 'afterwards',
  responses: {
    201: { description: 'The draft', schema: claimSchema, headers: { Location: 'The claim' } },
  },
  problems: ['not_found', 'mixed_accounts', 'already_claimed', 'already_resolved', 'nets_to_nothing'],
  async handle(request, deps) {
    const { body, caller, settle, afterCommit } = request;
    const disputeIds = body.dispute_ids.map(uuidOfDispute);
    const ready = await readyToDraft(caller.orgId, deps);
    afterCommit(() => deps.kickDispatcher());
    return settle(async (inside) => {
      const said = { disputeIds, by: caller.keyId, notes: body.notes || null };
      const claim = await createClaim(inside, said, ready);
      const whole = await answerWith(inside, claim.id);
      await recordAction(inside, request, 'claim.created', subjectOf(claim.id), {
        dispute_ids: whole.dispute_ids,
        total_recoverable_cents: claim.recoverableCents,
      });
      return { status: 201, headers: { Location: `${CLAIMS_PATH}/${whole.id}` }, body: whole };
    });
  },
});

const mergeClaimsEndpoint = defineEndpoint({
  operationId: 'mergeClaims',
  method: 'post',
  path: MERGE_PATH,
  tag: TAG,
  summary: 'Make one draft of several',
  description:
    'This one stays, with the disputes of all of them, netted and frozen anew; the others are gone. All of them are drafts of one account of one provider.',
  access: CLAIM_WRITE,
  params: claimParams,
  body: mergeClaimsBody,
  idempotency: 'afterwards',
  responses: { 200: { description: 'The draft as it is now', schema: claimSchema } },
  problems: ['not_found', 'mixed_accounts', 'claim_not_draft', 'nets_to_nothing'],
  async handle(request, deps) {
    const { params, body, caller, settle, afterCommit } = request;
    const intoId = uuidOfClaim(params.id);
    const otherIds = body.claim_ids.map(uuidOfClaim);
    if (otherIds.includes(intoId))
      throw invalidField('body', 'claim_ids', 'must not name the draft itself', 'invalid_body');
    const ready = await readyToDraft(caller.orgId, deps);
    afterCommit(() => deps.kickDispatcher());
    return settle(async (inside) => {
      const claim = await mergeDrafts(inside, { intoId, otherIds, by: caller.keyId }, ready);
      const whole = await answerWith(inside, claim.id);
      await recordAction(inside, request, 'claim.merged', subjectOf(claim.id), {
        merged_claim_ids: body.claim_ids,
        total_recoverable_cents: claim.recoverableCents,
      });
      return { status: 200, body: whole };
    });
  },
});

const discardClaimEndpoint = defineEndpoint({
  operationId: 'discardClaim',
  method: 'delete',
  path: `${CLAIMS_PATH}/{id}`,
  tag: TAG,
  summary: 'Discard a draft',
  description:
    'Its disputes stay open and are in no claim; the next run of the provider drafts them again, unless they are resolved or in another claim by then.',
  access: CLAIM_WRITE,
  params: claimParams,
  responses: { 204: { description: 'Discarded' } },
  problems: ['not_found', 'claim_not_draft'],
  async handle(request) {
    const { params, orgDb } = request;
    const id = uuidOfClaim(params.id);
    await orgDb.transaction(async (inside) => {
      const { claim, disputeIds } = await discardDraft(inside, id);
      await recordAction(inside, request, 'claim.discarded', subjectOf(id), {
        dispute_ids: disputeIds.map((one) => publicId('dsp', one)),
        total_recoverable_cents: claim.recoverableCents,
      });
    });
    return { status: 204 };
  },
});

/** Error not_found. */
function uuidOfDispute(id: string, at: number): string {
  const uuid = findUuid('dsp', id);
  if (uuid === undefined)
    throw new DomainError('not_found', `there is no dispute with the id at place ${at + 1} of the list`);
  return uuid;
}

export const claimDraftEndpoints: readonly Endpoint[] = [
  createClaimEndpoint,
  mergeClaimsEndpoint,
  discardClaimEndpoint,
];
