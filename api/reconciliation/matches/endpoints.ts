import {
  listMatchDisputes,
  listMatches,
  listMatchFindings,
  type MatchFilter,
  sumMatches,
} from '../../../db/reconciliation/matches.js';
import { isUuidText } from '../../../domain/ids.js';
import { absPico, usdNumberFromPico } from '../../../domain/money.js';
import { dayOf } from '../../../domain/period.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { cursoredPage, decodeAmountCursor } from '../../paging.js';
import { dayWindowOf, providerFilter } from '../../query.js';
import { matchesQuery, matchesResponse, presentMatch } from './wire.js';

const getMatches = defineEndpoint({
  operationId: 'listMatches',
  method: 'get',
  path: '/api/v1/reconciliation/matches',
  tag: 'Reconciliation',
  summary: 'What was billed beside what was observed, day by day',
  description:
    'One record for each account, model and UTC day of the latest runs: matched, partial and unmatched ones, with the evidence and what explains them. The largest |delta_usd| first. totals are of everything that is asked for; for a month whose days have all been compared they are the summary’s.',
  access: { scope: 'reconciliation:read', workspace: 'refused' },
  query: matchesQuery,
  responses: { 200: { description: 'A page of records', schema: matchesResponse } },
  problems: ['invalid_parameter', 'invalid_range'],
  async handle({ query, orgDb }, deps) {
    const filter: MatchFilter = {
      ...dayWindowOf(query.from, query.to, deps.nowMicros()),
      provider: providerFilter(query.provider),
      accountId: query.provider_account_id,
      grade: query.confidence,
      matchStatus: query.match_status,
    };
    const after = decodeAmountCursor(query.cursor, isUuidText);
    const { found, findings, disputes, totals } = await orgDb.transaction(async (inside) => {
      const records = await listMatches(inside, filter, {
        limit: query.limit + 1,
        offset: query.offset,
        after: after && { deltaPico: after.pico, matchId: after.id },
      });
      const days = records.map((record) => ({ ...record, day: dayOf(record.bucketMicros) }));
      return {
        found: records,
        findings: await listMatchFindings(inside, days),
        disputes: await listMatchDisputes(inside, days),
        totals: await sumMatches(inside, filter),
      };
    }, 'repeatable read');
    const { shown, page } = cursoredPage(found, query, (record) => [
      absPico(record.providerCostPico - record.ourCostPico),
      record.matchId,
    ]);
    return {
      status: 200,
      body: {
        matches: shown.map((record, at) =>
          presentMatch(record, { findings: findings[at] ?? [], disputeId: disputes[at] ?? null }),
        ),
        ...page,
        totals: {
          matched_usd: usdNumberFromPico(totals.matchedPico),
          unmatched_usd: usdNumberFromPico(totals.unmatchedPico),
        },
      },
    };
  },
});

export const matchEndpoints: readonly Endpoint[] = [getMatches];
