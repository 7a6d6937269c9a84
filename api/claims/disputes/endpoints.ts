import { Readable } from 'node:stream';
import { streamDisputes } from '../../../db/claims/disputeExport.js';
import {
  findDispute,
  findDisputeEvidence,
  listDisputeDays,
  listDisputes,
  type StoredDispute,
} from '../../../db/claims/disputes.js';
import { type HeldDispute, lockDispute, resolveDispute } from '../../../db/claims/resolveDispute.js';
import { DomainError } from '../../../domain/errors.js';
import { findUuid, isUuidText, publicId } from '../../../domain/ids.js';
import { dayOf } from '../../../domain/period.js';
import { recordAction } from '../../../usecases/access/recordAction.js';
import { defineEndpoint, type Endpoint, type HttpMethod } from '../../endpoint.js';
import { cursoredPage, decodeTimeCursor } from '../../paging.js';
import { providerFilter } from '../../query.js';
import { writeDisputesCsv } from './csv.js';
import {
  DISPUTES_PATH,
  disputeParams,
  disputeSchema,
  exportDisputesQuery,
  listDisputesQuery,
  listDisputesResponse,
  presentDispute,
  presentWholeDispute,
  resolveBody,
  wholeDisputeSchema,
} from './wire.js';

const TAG = 'Financial';
const READ = { scope: 'financial:read', workspace: 'refused' } as const;
const WRITE = { scope: 'financial:write', workspace: 'refused' } as const;

const listDisputesEndpoint = defineEndpoint({
  operationId: 'listDisputes',
  method: 'get',
  path: DISPUTES_PATH,
  tag: TAG,
  summary: 'What is asked back from providers, newest first',
  access: READ,
  query: listDisputesQuery,
  responses: { 200: { description: 'A page of disputes', schema: listDisputesResponse } },
  problems: [],
  async handle({ query, orgDb }) {
    const after = decodeTimeCursor(query.cursor, isUuidText);
    const found = await listDisputes(
      orgDb,
      { status: query.status, provider: providerFilter(query.provider) },
      { limit: query.limit + 1, offset: after ? 0 : query.offset, after },
    );
    const { shown, page } = cursoredPage(found, query, (dispute) => [dispute.openedAtMicros, dispute.id]);
    return {
      status: 200,
      body: { disputes: shown.map((dispute) => presentDispute(orgDb.orgId, dispute)), ...page },
    };
  },
});

const getDisputeEndpoint = defineEndpoint({
  operationId: 'getDispute',
  method: 'get',
  path: `${DISPUTES_PATH}/{id}`,
  tag: TAG,
  summary: 'A dispute with its days and its evidence, as they were when it was opened',
  access: READ,
  params: disputeParams,
  responses: { 200: { description: 'The dispute', schema: wholeDisputeSchema } },
  problems: ['not_found'],
  async handle({ params, orgDb }) {
    const id = findUuid('dsp', params.id);
    const dispute = id === undefined ? undefined : await findDispute(orgDb, id);
    // Neither its days nor its evidence ever change.
    const evidence = dispute && (await findDisputeEvidence(orgDb, dispute.id));
    if (!dispute || !evidence) throw new DomainError('not_found', 'there is no dispute with this id');
    const days = await listDisputeDays(orgDb, dispute.id);
    return { status: 200, body: presentWholeDispute(orgDb.orgId, dispute, days, evidence) };
  },
});

const exportDisputes = defineEndpoint({
  operationId: 'exportDisputes',
  method: 'get',
  path: `${DISPUTES_PATH}/export`,
  tag: TAG,
  summary: 'What is and was asked back from providers, as CSV',
  description:
    'In the order in which they were opened, streamed. amount_usd is the exact sum of a dispute’s days, amount_cents the same rounded down. A transfer that ends without its last chunk is broken: fetch it again.',
  access: READ,
  limit: 'export',
  query: exportDisputesQuery,
  responses: { 200: { description: 'The disputes', contentType: 'text/csv' } },
  problems: [],
  async handle({ query, orgDb, signal }, deps) {
    const pages = streamDisputes(orgDb, query.status);
    // Read before the answer begins: a database that is away is an ordinary 503, not a broken transfer.
    const first = await pages.next();
    return {
      status: 200,
      headers: {
        'Content-Disposition': `attachment; filename="disputes-${dayOf(deps.nowMicros())}.csv"`,
      },
      content: {
        type: 'text/csv; charset=utf-8; header=present',
        data: Readable.from(writeDisputesCsv(first, pages, signal)),
      },
    };
  },
});

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
    tag: TAG,
    summary: 'Resolve a dispute without a claim',
    description:
      'A repeat with the same resolution changes nothing. A dispute that is in a claim is resolved by the end of the claim, or once its draft is discarded. POST, PATCH and PUT do the same.',
    access: WRITE,
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

const resolveEndpoints: readonly Endpoint[] = [resolveBy('post'), resolveBy('patch'), resolveBy('put')];

export const disputeEndpoints: readonly Endpoint[] = [
  listDisputesEndpoint,
  // Before the disputes by their ids: it is none.
  exportDisputes,
  getDisputeEndpoint,
  ...resolveEndpoints,
];
