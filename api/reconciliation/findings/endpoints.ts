import {
  findFinding,
  findFindingEvidence,
  listFindingDays,
  listFindings,
} from '../../../db/reconciliation/findings.js';
import { DomainError } from '../../../domain/errors.js';
import { findUuid, isUuidText } from '../../../domain/ids.js';
import { absPico } from '../../../domain/money.js';
import { dayOf } from '../../../domain/period.js';
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
    const { fromMicros, toMicros } = windowOf(query.from, query.to, ['from', 'to']);
    const found = await listFindings(
      orgDb,
      {
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
      },
      { limit: query.limit + 1, offset: after ? 0 : query.offset, after },
    );
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
    const id = findUuid('fnd', params.id);
    // One state of all of it: a run may publish another one between two reads.
    const whole = await orgDb.transaction(async (inside) => {
      const finding = id === undefined ? undefined : await findFinding(inside, id);
      const evidence = finding && (await findFindingEvidence(inside, finding.id));
      return finding && evidence && { finding, evidence, days: await listFindingDays(inside, finding.id) };
    }, 'repeatable read');
    if (!whole) throw new DomainError('not_found', 'there is no finding with this id');
    return { status: 200, body: presentWholeFinding(whole.finding, whole.days, whole.evidence) };
  },
});

export const findingEndpoints: readonly Endpoint[] = [listFindingsEndpoint, getFindingEndpoint];
