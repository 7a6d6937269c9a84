import type { z } from 'zod';
import type { MatchFilter, MatchRecord } from '../../../db/reconciliation/gapExplorer.js';
import { isUuidText } from '../../../domain/ids.js';
import { absPico } from '../../../domain/money.js';
import { readMatches } from '../../../usecases/reconciliation/readRuns.js';
import { endpointGroup } from '../../endpoint.js';
import { cursoredPage, decodeAmountCursor } from '../../paging.js';
import { dayWindowOf, providerFilter } from '../../query.js';
import { matchesCsv, matchesQuery, matchesResponse, presentMatch, presentTotals } from './wire.js';

function filterOf(query: z.output<typeof matchesQuery>, nowMicros: bigint): MatchFilter {
  return {
    ...dayWindowOf(query.from, query.to, nowMicros),
    provider: providerFilter(query.provider),
    accountId: query.provider_account_id,
    grade: query.confidence,
    matchStatus: query.match_status,
  };
}

const positionOf = ({ record }: { record: MatchRecord }) =>
  [absPico(record.providerCostPico - record.ourCostPico), record.matchId] as const;

const routes = endpointGroup({
  tag: 'Reconciliation',
  access: { scope: 'reconciliation:read', workspace: 'refused' },
});

routes.get('/api/v1/reconciliation/matches', {
  operationId: 'listMatches',
  summary: 'Billed and observed usage, day by day',
  description:
    'One record for each account, model and UTC day of the latest runs: matched, partial and unmatched ones, with the evidence and what explains them. The largest |delta_usd| first. totals cover the whole selection; for a month whose days have all been compared they are the summary’s.',
  query: matchesQuery,
  csv: matchesCsv,
  responses: { 200: { description: 'A page of records', schema: matchesResponse } },
  problems: ['invalid_parameter', 'invalid_range'],
  async handle({ query, orgDb }, deps) {
    const filter = filterOf(query, deps.nowMicros());
    const after = decodeAmountCursor(query.cursor, isUuidText);
    const position = after && { deltaPico: after.pico, matchId: after.id };
    const asked = { limit: query.limit + 1, offset: query.offset, after: position };
    const { matches, totals } = await readMatches(orgDb, filter, asked);
    const { shown, page } = cursoredPage(matches, query, positionOf);
    const listed = shown.map(({ record, ...explained }) => presentMatch(record, explained));
    return { status: 200, body: { matches: listed, ...page, totals: presentTotals(totals) } };
  },
});

export const matchEndpoints = routes.endpoints;
