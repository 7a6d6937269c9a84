import type { z } from 'zod';
import { type FindingFilter, listFindings } from '../../../db/reconciliation/findings.js';
import { findUuid, isUuidText } from '../../../domain/ids.js';
import { absPico } from '../../../domain/money.js';
import { dayOf } from '../../../domain/period.js';
import { getWholeFinding } from '../../../usecases/reconciliation/readRuns.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { cursoredPage, decodeSizeCursor } from '../../paging.js';
import { providerFilter, windowOf } from '../../query.js';
import {
  FINDINGS_PATH,
  findingParams,
  listFindingsQuery,
  listFindingsResponse,
  presentFinding,
  presentWholeFinding,
  wholeFindingSchema,
} from './wire.js';

const TAG = 'Financial';
const READ = { scope: 'financial:read', workspace: 'refused' } as const;

function filterOf(query: z.output<typeof listFindingsQuery>): FindingFilter {
  const { fromMicros, toMicros } = windowOf(query.from, query.to, ['from', 'to']);
  return {
    provider: providerFilter(query.provider),
    accountId: query.provider_account_id,
    model: query.model,
    kind: query.kind,
    grade: query.confidence,
    blame: query.blame,
    direction: query.direction,
    status: query.status,
    fromDay: fromMicros === undefined ? undefined : dayOf(fromMicros),
    toDay: toMicros === undefined ? undefined : dayOf(toMicros - 1n),
  };
}

const listFindingsEndpoint = defineEndpoint({
  operationId: 'listFindings',
  method: 'get',
  path: FINDINGS_PATH,
  tag: TAG,
  summary: 'What runs have found, the largest first, whichever way it is wrong',
  description:
    'Mistakes of the provider, the organization’s own (blame=own, with what to change) and what nothing explains. The review queue has those of them that people decide on.',
  access: READ,
  query: listFindingsQuery,
  responses: { 200: { description: 'A page of findings', schema: listFindingsResponse } },
  problems: ['invalid_range'],
  async handle({ query, orgDb }) {
    const after = decodeSizeCursor(query.cursor, isUuidText);
    const asked = { limit: query.limit + 1, offset: after ? 0 : query.offset, after };
    const found = await listFindings(orgDb, filterOf(query), asked);
    const { shown, page } = cursoredPage(found, query, (one) => [absPico(one.impactPico), one.id]);
    return { status: 200, body: { findings: shown.map(presentFinding), ...page } };
  },
});

const getFindingEndpoint = defineEndpoint({
  operationId: 'getFinding',
  method: 'get',
  path: `${FINDINGS_PATH}/{id}`,
  tag: TAG,
  summary: 'A finding with its days, its computation and its evidence',
  access: READ,
  params: findingParams,
  responses: { 200: { description: 'The finding', schema: wholeFindingSchema } },
  problems: ['not_found'],
  async handle({ params, orgDb }) {
    const whole = await getWholeFinding(orgDb, findUuid('fnd', params.id));
    return { status: 200, body: presentWholeFinding(whole.finding, whole.days, whole.evidence) };
  },
});

export const findingEndpoints: readonly Endpoint[] = [listFindingsEndpoint, getFindingEndpoint];
