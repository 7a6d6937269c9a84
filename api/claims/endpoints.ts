import { listClaims } from '../../db/queries/claims.js';
import { isUuidText } from '../../domain/ids.js';
import { defineEndpoint, type Endpoint } from '../endpoint.js';
import { cursoredPage, decodeTimeCursor } from '../paging.js';
import { providerFilter } from '../query.js';
import { getWholeClaim, uuidOfClaim } from './wholeClaim.js';
import {
  CLAIM_READ,
  CLAIMS_PATH,
  claimParams,
  claimSchema,
  listClaimsQuery,
  listClaimsResponse,
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

export const claimEndpoints: readonly Endpoint[] = [listClaimsEndpoint, getClaim];
