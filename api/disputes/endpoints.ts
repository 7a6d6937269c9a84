import {
  findDispute,
  findDisputeEvidence,
  listDisputeDays,
  listDisputes,
} from '../../db/queries/disputes.js';
import { DomainError } from '../../domain/errors.js';
import { findUuid, isUuidText } from '../../domain/ids.js';
import { defineEndpoint, type Endpoint } from '../endpoint.js';
import { cursoredPage, decodeTimeCursor } from '../paging.js';
import { providerFilter } from '../query.js';
import { exportDisputes } from './export.js';
import { resolveEndpoints } from './resolve.js';
import {
  DISPUTES_PATH,
  disputeParams,
  listDisputesQuery,
  listDisputesResponse,
  presentDispute,
  presentWholeDispute,
  wholeDisputeSchema,
} from './wire.js';

const TAG = 'Financial';
const READ = { scope: 'financial:read', workspace: 'refused' } as const;

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

export const disputeEndpoints: readonly Endpoint[] = [
  listDisputesEndpoint,
  // Before the disputes by their ids: it is none.
  exportDisputes,
  getDisputeEndpoint,
  ...resolveEndpoints,
];
