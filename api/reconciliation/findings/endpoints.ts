import type { z } from 'zod';
import { type FindingFilter, listFindings } from '../../../db/reconciliation/findings.js';
import { findUuid, isUuidText } from '../../../domain/ids.js';
import { absPico } from '../../../domain/money.js';
import { dayOf } from '../../../domain/period.js';
import { getWholeFinding } from '../../../usecases/reconciliation/readRuns.js';
import { csvListOf } from '../../csv.js';
import { endpointGroup } from '../../endpoint.js';
import { cursoredPage, decodeSizeCursor } from '../../paging.js';
import { providerFilter, windowOf } from '../../query.js';
import {
  FINDINGS_PATH,
  findingParams,
  findingsCsv,
  listFindingsQuery,
  listFindingsResponse,
  presentFinding,
  presentWholeFinding,
  wholeFindingSchema,
} from './wire.js';

/** Filter value for an unknown invoice; no finding has it. */
const NO_INVOICE = '00000000-0000-0000-0000-000000000000';

function filterOf(query: z.output<typeof listFindingsQuery>): FindingFilter {
  const { fromMicros, toMicros } = windowOf(query.from, query.to, ['from', 'to']);
  return {
    provider: providerFilter(query.provider),
    accountId: query.provider_account_id,
    invoiceId: query.invoice_id === undefined ? undefined : (findUuid('inv', query.invoice_id) ?? NO_INVOICE),
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

const routes = endpointGroup({ tag: 'Financial', access: { scope: 'financial:read', workspace: 'refused' } });

routes.get(FINDINGS_PATH, {
  operationId: 'listFindings',
  summary: 'Findings of both directions, the largest first',
  description:
    'Mistakes of the provider, the organization’s own (blame=own, with what to change) and what nothing explains. The review queue has those of them that people decide on.',
  query: listFindingsQuery,
  csv: findingsCsv,
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

routes.get(`${FINDINGS_PATH}/{id}`, {
  operationId: 'getFinding',
  csv: csvListOf('finding-days', wholeFindingSchema, 'days'),
  summary: 'A finding with its days, its computation and its evidence',
  params: findingParams,
  responses: { 200: { description: 'The finding', schema: wholeFindingSchema } },
  problems: ['not_found'],
  async handle({ params, orgDb }) {
    const whole = await getWholeFinding(orgDb, findUuid('fnd', params.id));
    return { status: 200, body: presentWholeFinding(whole.finding, whole.days, whole.evidence) };
  },
});

export const findingEndpoints = routes.endpoints;
