import { z } from 'zod';
import { listClaims } from '../../../db/claims/claims.js';
import type { OrgDb } from '../../../db/orgDb.js';
import { type ClaimCommand, NO_FIELDS } from '../../../domain/claims/lifecycle.js';
import { DomainError } from '../../../domain/errors.js';
import { findUuid, isUuidText } from '../../../domain/ids.js';
import { parseInstant } from '../../../domain/period.js';
import {
  createClaim,
  discardDraft,
  mergeDrafts,
  readyToDraft,
  readyToMerge,
} from '../../../usecases/claims/draftClaims.js';
import { draftClaimTicket } from '../../../usecases/claims/draftClaimTicket.js';
import { getClaimPdf, getEvidenceFile, packClaim } from '../../../usecases/claims/evidenceFiles.js';
import { rejectCredit } from '../../../usecases/claims/findCredits.js';
import { moveClaim } from '../../../usecases/claims/moveClaim.js';
import { snoozeClaim } from '../../../usecases/claims/reminders.js';
import { getWholeClaim, type WholeClaim } from '../../../usecases/claims/wholeClaim.js';
import type { ApiDeps } from '../../deps.js';
import {
  defineEndpoint,
  type Endpoint,
  type EndpointRequest,
  type EndpointResponse,
  endpointGroup,
  type ResponseDoc,
} from '../../endpoint.js';
import { cursoredPage, decodeTimeCursor } from '../../paging.js';
import { providerFilter } from '../../query.js';
import {
  attached,
  CLAIM_ADMIN,
  CLAIM_READ,
  CLAIMS_PATH,
  claimParams,
  claimSchema,
  claimsCsv,
  createClaimBody,
  creditParams,
  EVIDENCE_PATH,
  fieldsOf,
  listClaimsQuery,
  listClaimsResponse,
  MERGE_PATH,
  mergeClaimsBody,
  moveBody,
  presentClaim,
  presentListedClaim,
  presentTicket,
  SNOOZE_PATH,
  snoozeBody,
  ticketSchema,
  uuidOfClaim,
} from './wire.js';

const routes = endpointGroup({ tag: 'Claims', access: { read: CLAIM_READ, write: CLAIM_ADMIN } });

const listClaimsEndpoint = routes.get(CLAIMS_PATH, {
  operationId: 'listClaims',
  summary: 'Claims on providers, newest first',
  description: 'Without evidence and history: GET /api/v1/claims/{id} has both.',
  query: listClaimsQuery,
  csv: claimsCsv,
  responses: { 200: { description: 'A page of claims', schema: listClaimsResponse } },
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

const getClaim = routes.get(`${CLAIMS_PATH}/{id}`, {
  operationId: 'getClaim',
  summary: 'A claim with its history and its evidence',
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
  'While the workflow engine is away: 503 workflow_engine_unavailable, and the claim does not change. A repeat with the same Idempotency-Key is safe.';

type MoveRequest = EndpointRequest<unknown, { id: string }, unknown>;

/** Moves a claim and answers with the moved claim. */
async function answerMove(
  operationId: string,
  request: MoveRequest,
  asked: Pick<ClaimCommand, 'to' | 'fields'>,
  deps: ApiDeps,
): Promise<EndpointResponse> {
  const { params, orgDb, header } = request;
  const idempotencyKey = header('idempotency-key');
  const wanted = { ...asked, claimId: uuidOfClaim(params.id), operationId, idempotencyKey };
  return answerWith(orgDb.orgId, await moveClaim(orgDb, wanted, request, deps));
}

const answerWith = (orgId: string, whole: WholeClaim): EndpointResponse => ({
  status: 200,
  body: presentClaim(orgId, whole),
});

const submitClaim = routes.post(`${CLAIMS_PATH}/{id}/submit`, {
  operationId: 'submitClaim',
  summary: 'Record that a draft was sent to the provider',
  description: `Its disputes are claimed from then on. ${UNAVAILABLE}`,
  idempotency: 'afterwards',
  params: claimParams,
  responses: MOVED,
  problems: MOVE_PROBLEMS,
  async handle(request, deps) {
    const asked = { to: 'submitted_to_provider', fields: NO_FIELDS } as const;
    return answerMove('submitClaim', request, asked, deps);
  },
});

const setClaimStatus = routes.patch(`${CLAIMS_PATH}/{id}/status`, {
  operationId: 'setClaimStatus',
  summary: 'Record what became of a claim',
  description: `docs/claims.md has the moves that are legal. ${UNAVAILABLE}`,
  idempotency: 'afterwards',
  params: claimParams,
  body: moveBody,
  responses: MOVED,
  problems: MOVE_PROBLEMS,
  async handle(request, deps) {
    const asked = { to: request.body.status, fields: fieldsOf(request.body) };
    return answerMove('setClaimStatus', request, asked, deps);
  },
});

/** The scope claims:write permits merging and discarding drafts; only admins may build a claim from chosen disputes. */
const CLAIM_WRITE = { scope: 'claims:write', workspace: 'refused' } as const;

const createClaimEndpoint = routes.post(CLAIMS_PATH, {
  operationId: 'createClaim',
  summary: 'Draft a claim over chosen disputes',
  description:
    'Of one account of one provider, of as many kinds and months as there are. What the provider charged the account too little in these months is taken off and listed, and the evidence is frozen.',
  body: createClaimBody,
  idempotency: 'afterwards',
  responses: {
    201: { description: 'The draft', schema: claimSchema, headers: { Location: 'The claim' } },
  },
  problems: ['not_found', 'mixed_accounts', 'already_claimed', 'already_resolved', 'nets_to_nothing'],
  async handle(request, deps) {
    const { body, orgDb, settle, afterCommit } = request;
    const given = { disputeIds: body.dispute_ids.map(uuidInList), notes: body.notes || null };
    const ready = await readyToDraft(orgDb.orgId, deps);
    afterCommit(() => deps.kickDispatcher());
    return settle(async (inside) => {
      const draft = presentClaim(orgDb.orgId, await createClaim(inside, given, request, ready));
      return { status: 201, headers: { Location: `${CLAIMS_PATH}/${draft.id}` }, body: draft };
    });
  },
});

const mergeClaimsEndpoint = routes.post(MERGE_PATH, {
  operationId: 'mergeClaims',
  summary: 'Make one draft of several',
  description:
    'This claim takes the disputes of all of them, is netted again and gets new evidence; the others are removed. All of them are drafts of one account of one provider.',
  access: CLAIM_WRITE,
  params: claimParams,
  body: mergeClaimsBody,
  idempotency: 'afterwards',
  responses: { 200: { description: 'The draft as it is now', schema: claimSchema } },
  problems: ['not_found', 'mixed_accounts', 'claim_not_draft', 'nets_to_nothing'],
  async handle(request, deps) {
    const { params, body, orgDb, settle, afterCommit } = request;
    const given = { intoId: uuidOfClaim(params.id), otherIds: body.claim_ids.map(uuidOfClaim) };
    const ready = await readyToMerge(orgDb.orgId, given, deps);
    afterCommit(() => deps.kickDispatcher());
    return settle(async (inside) =>
      answerWith(orgDb.orgId, await mergeDrafts(inside, given, request, ready)),
    );
  },
});

const discardClaimEndpoint = routes.delete(`${CLAIMS_PATH}/{id}`, {
  operationId: 'discardClaim',
  summary: 'Discard a draft',
  description:
    'Its disputes stay open and are in no claim; the next run of the provider drafts them again, unless they are resolved or in another claim by then.',
  access: CLAIM_WRITE,
  params: claimParams,
  responses: { 204: { description: 'Discarded' } },
  problems: ['not_found', 'claim_not_draft'],
  async handle(request) {
    await discardDraft(request.orgDb, uuidOfClaim(request.params.id), request);
    return { status: 204 };
  },
});

/** The uuid in a claim's public id at place `at` of a list. Error: not_found. */
function uuidInList(id: string, at: number): string {
  const uuid = findUuid('dsp', id);
  if (uuid === undefined)
    throw new DomainError('not_found', `there is no dispute with the id at place ${at + 1} of the list`);
  return uuid;
}

/** Snoozing changes no claim's status, so it requires no more than sorting drafts. */
const snoozeClaimEndpoint = routes.post(SNOOZE_PATH, {
  operationId: 'snoozeClaim',
  tag: 'Claims',
  summary: 'Snooze claim reminders',
  description:
    'Until then no notice of it is given, and then one, for all that was due by then. A move ends it. Null takes it back.',
  access: { scope: 'claims:write', workspace: 'refused' },
  params: claimParams,
  body: snoozeBody,
  responses: { 200: { description: 'The claim as it is now', schema: claimSchema } },
  problems: ['not_found', 'claim_over'],
  async handle(request, deps) {
    const { params, body, orgDb, afterCommit } = request;
    const until = body.until === null ? null : (parseInstant(body.until) ?? null);
    const wanted = { claimId: uuidOfClaim(params.id), until };
    const { whole, hasChanged } = await snoozeClaim(orgDb, wanted, request);
    if (hasChanged) afterCommit(() => deps.kickDispatcher());
    return answerWith(orgDb.orgId, whole);
  },
});

const rejectCreditEndpoint = routes.post(`${CLAIMS_PATH}/{id}/credits/{credit_id}/reject`, {
  operationId: 'rejectClaimCredit',
  summary: 'Say that a credit is not the answer to a claim',
  description:
    'It is not proposed for this claim again, and may be for another one. A credit is accepted by the move that it proposes. A repeat changes nothing.',
  access: { scope: 'claims:write', workspace: 'refused' },
  params: creditParams,
  responses: { 200: { description: 'The claim as it is now', schema: claimSchema } },
  problems: ['not_found', 'already_resolved'],
  async handle(request) {
    const { params, orgDb } = request;
    const claimId = uuidOfClaim(params.id);
    const whole = await rejectCredit(orgDb, { claimId, creditId: uuidOfCredit(params.credit_id) }, request);
    return answerWith(orgDb.orgId, whole);
  },
});

/** The uuid in a credit's public id. Error: not_found. */
function uuidOfCredit(id: string): string {
  const uuid = findUuid('crd', id);
  if (uuid === undefined)
    throw new DomainError('not_found', 'no credit with this id was proposed for the claim');
  return uuid;
}

const ticketEndpoint = (method: 'get' | 'post', operationId: string): Endpoint =>
  defineEndpoint({
    operationId,
    method,
    path: `${CLAIMS_PATH}/{id}/ticket-draft`,
    tag: 'Claims',
    summary: 'The text of a support ticket for an escalated claim',
    description: 'Drafted on every request from present data; nothing is stored and nothing is sent.',
    // A POST writes to the audit log, so it requires more than the scope to read.
    access: method === 'post' ? { scope: 'claims:write', workspace: 'refused' } : CLAIM_READ,
    params: claimParams,
    responses: { 200: { description: 'The draft', schema: ticketSchema } },
    problems: ['not_found', 'illegal_transition'],
    async handle(request, { settings }) {
      const { params, orgDb } = request;
      const id = uuidOfClaim(params.id);
      const drafted = await draftClaimTicket(orgDb, id, method === 'post' ? request : undefined);
      return { status: 200, body: presentTicket(orgDb.orgId, id, drafted, settings.baseUrl()) };
    },
  });

/** One downloadable form of a claim's evidence. */
interface EvidenceForm extends Pick<Endpoint, 'operationId' | 'summary' | 'description' | 'problems'> {
  extension: string;
  answer: ResponseDoc;
  read(orgDb: OrgDb, id: string, deps: ApiDeps): Promise<{ mediaType: string; bytes: Buffer }>;
}

const download = ({ extension, answer, read, ...described }: EvidenceForm): Endpoint =>
  defineEndpoint({
    ...described,
    method: 'get',
    path: `${EVIDENCE_PATH}.${extension}`,
    tag: 'Claims',
    access: CLAIM_READ,
    limit: 'export',
    params: claimParams,
    responses: { 200: answer },
    async handle({ params, orgDb }, deps) {
      const id = uuidOfClaim(params.id);
      const { mediaType, bytes } = await read(orgDb, id, deps);
      return { status: 200, headers: attached(id, extension), content: { type: mediaType, data: bytes } };
    },
  });

const getEvidenceJson = download({
  operationId: 'getClaimEvidenceJson',
  extension: 'json',
  summary: 'The frozen evidence of a claim, byte for byte as in its pack',
  answer: { description: 'claim.json', schema: z.record(z.string(), z.unknown()) },
  problems: ['not_found'],
  read: (orgDb, id) => getEvidenceFile(orgDb, id, 'claim.json'),
});

const getEvidenceCsv = download({
  operationId: 'getClaimEvidenceCsv',
  extension: 'csv',
  summary: 'A claim line by line: each day and class, charged and expected',
  answer: { description: 'claim.csv', contentType: 'text/csv' },
  problems: ['not_found'],
  async read(orgDb, id) {
    const { bytes } = await getEvidenceFile(orgDb, id, 'claim.csv');
    return { mediaType: 'text/csv; charset=utf-8; header=present', bytes };
  },
});

const getEvidencePdf = download({
  operationId: 'getClaimEvidencePdf',
  extension: 'pdf',
  summary: 'The document of a claim: summary, chart, lines, rates, calls and pages',
  description: 'Set from the frozen evidence when it is first asked for; the same bytes from then on.',
  answer: { description: 'claim.pdf', contentType: 'application/pdf' },
  problems: ['not_found', 'document_failed'],
  read: getClaimPdf,
});

const getEvidencePack = download({
  operationId: 'getClaimEvidencePack',
  extension: 'tar.gz',
  summary: 'The whole pack of a claim, as ./trueup evidence verify checks it',
  description:
    'The evidence, its lines as CSV, its document, the provider’s pages as they were received, the calls and the rates, with a manifest of their sha256. The same bytes each time.',
  answer: { description: 'The pack', contentType: 'application/gzip' },
  problems: ['not_found', 'document_failed'],
  read: async (orgDb, id, deps) => ({
    mediaType: 'application/gzip',
    bytes: await packClaim(orgDb, id, deps),
  }),
});

const claimEvidenceEndpoints: readonly Endpoint[] = [
  getEvidenceJson,
  getEvidenceCsv,
  getEvidencePdf,
  getEvidencePack,
];

export const claimEndpoints: readonly Endpoint[] = [
  listClaimsEndpoint,
  getClaim,
  submitClaim,
  setClaimStatus,
  createClaimEndpoint,
  mergeClaimsEndpoint,
  discardClaimEndpoint,
  snoozeClaimEndpoint,
  ...claimEvidenceEndpoints,
  rejectCreditEndpoint,
  ticketEndpoint('post', 'draftTicket'),
  ticketEndpoint('get', 'getTicketDraft'),
];
