import { Readable } from 'node:stream';
import { listDisputes, streamDisputes } from '../../../db/claims/disputes.js';
import { isUuidText } from '../../../domain/ids.js';
import { dayOf } from '../../../domain/period.js';
import { getWholeDispute, resolveDispute, uuidOfDispute } from '../../../usecases/claims/decideFindings.js';
import { defineEndpoint, type Endpoint, endpointGroup, type HttpMethod } from '../../endpoint.js';
import { cursoredPage, decodeTimeCursor } from '../../paging.js';
import { providerFilter } from '../../query.js';
import { writeDisputesCsv } from './csv.js';
import {
  DISPUTES_PATH,
  disputeParams,
  disputeSchema,
  disputesCsv,
  exportDisputesQuery,
  listDisputesQuery,
  listDisputesResponse,
  presentDispute,
  presentWholeDispute,
  resolveBody,
  wholeDisputeSchema,
} from './wire.js';

const TAG = 'Financial';

const routes = endpointGroup({ tag: TAG, access: { scope: 'financial:read', workspace: 'refused' } });

const listDisputesEndpoint = routes.get(DISPUTES_PATH, {
  operationId: 'listDisputes',
  summary: 'Disputes with providers, newest first',
  query: listDisputesQuery,
  csv: disputesCsv,
  responses: { 200: { description: 'A page of disputes', schema: listDisputesResponse } },
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

const getDisputeEndpoint = routes.get(`${DISPUTES_PATH}/{id}`, {
  operationId: 'getDispute',
  summary: 'A dispute with its days and its evidence, as they were when it was opened',
  params: disputeParams,
  responses: { 200: { description: 'The dispute', schema: wholeDisputeSchema } },
  problems: ['not_found'],
  async handle({ params, orgDb }) {
    const whole = await getWholeDispute(orgDb, uuidOfDispute(params.id));
    return { status: 200, body: presentWholeDispute(orgDb.orgId, whole) };
  },
});

const exportDisputes = routes.get(`${DISPUTES_PATH}/export`, {
  operationId: 'exportDisputes',
  summary: 'Open and closed disputes with providers, as CSV',
  description:
    'In the order in which they were opened, streamed. amount_usd is the exact sum of a dispute’s days, amount_cents the same rounded down. A transfer that ends without its last chunk is broken: fetch it again.',
  limit: 'export',
  query: exportDisputesQuery,
  responses: { 200: { description: 'The disputes', contentType: 'text/csv' } },
  async handle({ query, orgDb, signal }, deps) {
    const pages = streamDisputes(orgDb, query.status);
    // The first page is read before the answer begins, so that an unreachable database is an ordinary 503 and not a
    // broken transfer.
    const first = await pages.next();
    const data = Readable.from(writeDisputesCsv(first, pages, signal));
    return {
      status: 200,
      headers: { 'Content-Disposition': `attachment; filename="disputes-${dayOf(deps.nowMicros())}.csv"` },
      content: { type: 'text/csv; charset=utf-8; header=present', data },
    };
  },
});

/** POST, PATCH and PUT resolve a dispute in the same way, since clients try each of them. */
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
    access: { scope: 'financial:write', workspace: 'refused' },
    params: disputeParams,
    body: resolveBody,
    responses: { 200: { description: 'The dispute as it is now', schema: disputeSchema } },
    problems: ['not_found', 'already_resolved', 'already_claimed'],
    async handle(request) {
      const { params, body, orgDb } = request;
      const said = { resolution: body.resolution, notes: body.notes || null };
      const dispute = await resolveDispute(orgDb, uuidOfDispute(params.id), said, request);
      return { status: 200, body: presentDispute(orgDb.orgId, dispute) };
    },
  });

const resolveEndpoints: readonly Endpoint[] = [resolveBy('post'), resolveBy('patch'), resolveBy('put')];

export const disputeEndpoints: readonly Endpoint[] = [
  listDisputesEndpoint,
  // The fixed path …/export precedes …/{id}, so that `export` is not read as a dispute's id.
  exportDisputes,
  getDisputeEndpoint,
  ...resolveEndpoints,
];
