import { listClaims } from '../../../db/claims/claims.js';
import { NO_FIELDS } from '../../../domain/claims/lifecycle.js';
import { isUuidText } from '../../../domain/ids.js';
import { moveClaim } from '../../../usecases/claims/moveClaim.js';
import { getWholeClaim, uuidOfClaim } from '../../../usecases/claims/wholeClaim.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { cursoredPage, decodeTimeCursor } from '../../paging.js';
import { providerFilter } from '../../query.js';
import {
  CLAIM_ADMIN,
  CLAIM_READ,
  CLAIMS_PATH,
  claimParams,
  claimSchema,
  fieldsOf,
  listClaimsQuery,
  listClaimsResponse,
  moveBody,
  presentClaim,
  presentListedClaim,
} from './wire.js';

const TAG = 'Claims';

const listClaimsEndpoint = defineEndpoint({
  operationId: 'listClaims',
  method: 'get',
  path: CLAIMS_PATH,
  tag: TAG,
  summary: 'What was or will be asked back from providers, newest first',
  description: 'Without evidence and history: GET /api/v1/claims/{id} has both.',
  access: CLAIM_READ,
  query: listClaimsQuery,
  responses: { 200: { description: 'A page of claims', schema: listClaimsResponse } },
  problems: [],
  async handle({ query, orgDb }) {
    const after = decodeTimeCursor(query.cursor, isUuidText);
    const found = await listClaims(
      orgDb,
      { status: query.status, provider: providerFilter(query.provider) },
      { limit: query.limit + 1, offset: after ? 0 : query.offset, after },
    );
    const { shown, page } = cursoredPage(found, query, (claim) => [claim.createdAtMicros, claim.id]);
    return {
      status: 200,
      body: { claims: shown.map((claim) => presentListedClaim(orgDb.orgId, claim)), ...page },
    };
  },
});

const getClaim = defineEndpoint({
  operationId: 'getClaim',
  method: 'get',
  path: `${CLAIMS_PATH}/{id}`,
  tag: TAG,
  summary: 'A claim with its history and its evidence',
  access: CLAIM_READ,
  params: claimParams,
  responses: { 200: { description: 'The claim', schema: claimSchema } },
  problems: ['not_found'],
  async handle({ params, orgDb }) {
    const whole = await getWholeClaim(orgDb, uuidOfClaim(params.id));
    return { status: 200, body: presentClaim(orgDb.orgId, whole) };
  },
});

const MOVE_PROBLEMS = [
  'not_found',
  'illegal_transition',
  'claim_conflict',
  'workflow_engine_unavailable',
] as const;
const MOVED = { 200: { description: 'The claim as the move has left it', schema: claimSchema } };
const UNAVAILABLE =
  'While the workflow engine is away: 503 workflow_engine_unavailable, and the claim is as it was and stays so. A repeat with the same Idempotency-Key is safe.';

const submitClaim = defineEndpoint({
  operationId: 'submitClaim',
  method: 'post',
  path: `${CLAIMS_PATH}/{id}/submit`,
  tag: TAG,
  summary: 'Record that a draft was sent to the provider',
  description: `Its disputes are claimed from then on. ${UNAVAILABLE}`,
  access: CLAIM_ADMIN,
  idempotency: 'afterwards',
  params: claimParams,
  responses: MOVED,
  problems: MOVE_PROBLEMS,
  handle: (request, deps) =>
    moveClaim('submitClaim', request, { to: 'submitted_to_provider', fields: NO_FIELDS }, deps),
});

const setClaimStatus = defineEndpoint({
  operationId: 'setClaimStatus',
  method: 'patch',
  path: `${CLAIMS_PATH}/{id}/status`,
  tag: TAG,
  summary: 'Record what became of a claim',
  description: `docs/claims.md has the moves that are legal. ${UNAVAILABLE}`,
  access: CLAIM_ADMIN,
  idempotency: 'afterwards',
  params: claimParams,
  body: moveBody,
  responses: MOVED,
  problems: MOVE_PROBLEMS,
  handle: (request, deps) =>
    moveClaim('setClaimStatus', request, { to: request.body.status, fields: fieldsOf(request.body) }, deps),
});

export const claimEndpoints: readonly Endpoint[] = [
  listClaimsEndpoint,
  getClaim,
  submitClaim,
  setClaimStatus,
];
