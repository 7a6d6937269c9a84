import type { z } from 'zod';
import { daysBefore } from '../../../domain/period.js';
import { sumUsageAsOf } from '../../../usecases/usage/usage.js';
import { defineEndpoint } from '../../endpoint.js';
import { providerFilter, windowOf } from '../../query.js';
import { USAGE_GROUPS_MAX } from '../usage/wire.js';
import { breakdownParams, breakdownQuery, breakdownResponse, presentBreakdown } from './wire.js';

const DEFAULT_DAYS = 30n;

const breakdown = defineEndpoint({
  operationId: 'getDashboardBreakdown',
  method: 'get',
  path: '/api/v1/dashboard/breakdown/{dimension}',
  tag: 'Usage',
  summary: 'Cost and tokens by one dimension, filtered by labels',
  description:
    'By default the last 30 days. Items are ordered by cost; those of `day` by day. Closed months stand as they were closed; `as_of` asks otherwise.',
  access: { scope: 'usage:read', workspace: 'own' },
  params: breakdownParams,
  query: breakdownQuery,
  responses: { 200: { description: 'The breakdown and its total', schema: breakdownResponse } },
  problems: ['invalid_range', 'as_of_unanswerable'],
  async handle({ params, query, orgDb }, deps) {
    const nowMicros = deps.nowMicros();
    const asked = { asOf: query.as_of, ...windowOfQuery(query, nowMicros), nowMicros };
    const { dimension } = params;
    const filter = {
      teamId: query.team_id,
      feature: query.feature,
      provider: providerFilter(query.provider),
      projectId: query.project_id,
    };
    const sums = await sumUsageAsOf(orgDb, asked, { dimension, filter, limit: USAGE_GROUPS_MAX + 1 });
    return { status: 200, body: presentBreakdown(dimension, sums, nowMicros) };
  },
});

/** Half-open. Without `until` everything that has come in counts, also a call of a client whose clock is ahead of ours. */
function windowOfQuery({ since, until }: z.output<typeof breakdownQuery>, nowMicros: bigint) {
  const names = ['since', 'until'] as const;
  const { fromMicros, toMicros } = windowOf(since, until, names);
  return { fromMicros: fromMicros ?? daysBefore(toMicros ?? nowMicros + 1n, DEFAULT_DAYS), toMicros, names };
}

export const dashboardEndpoints = [breakdown];
