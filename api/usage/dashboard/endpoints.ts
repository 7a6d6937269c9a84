import { sumUsageBooks } from '../../../db/usage/usage.js';
import { usdNumberFromPico } from '../../../domain/money.js';
import { daysBefore } from '../../../domain/period.js';
import { defineEndpoint } from '../../endpoint.js';
import { providerFilter, windowOf } from '../../query.js';
import { presentAsOf, resolveView } from '../asOf.js';
import { USAGE_GROUPS_MAX } from '../usage/endpoints.js';
import { presentUsageItems } from '../usage/wire.js';
import { breakdownParams, breakdownQuery, breakdownResponse } from './wire.js';

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
    const window = windowOf(query.since, query.until, ['since', 'until']);
    const toMicros = window.toMicros ?? deps.nowMicros() + 1n;
    const fromMicros = window.fromMicros ?? daysBefore(toMicros, DEFAULT_DAYS);
    // Without `until` everything that has come in counts, also a call of a client whose clock is ahead of ours.
    const asked = { fromMicros, toMicros: window.toMicros };
    const nowMicros = deps.nowMicros();
    const view = await resolveView(orgDb, {
      asOf: query.as_of,
      ...asked,
      names: ['since', 'until'],
      nowMicros,
    });
    const { totals, groups, adjustments } = await sumUsageBooks(orgDb, {
      dimension: params.dimension,
      filter: {
        teamId: query.team_id,
        feature: query.feature,
        provider: providerFilter(query.provider),
        projectId: query.project_id,
      },
      ...asked,
      view,
      limit: USAGE_GROUPS_MAX + 1,
      offset: 0,
    });
    const items = presentUsageItems(totals, groups, USAGE_GROUPS_MAX);
    if (params.dimension === 'day') items.sort((a, b) => (a.key < b.key ? -1 : 1));
    return {
      status: 200,
      body: {
        dimension: params.dimension,
        items,
        total_cost_usd: usdNumberFromPico(totals.costPico),
        ...presentAsOf(view, nowMicros, adjustments),
      },
    };
  },
});

export const dashboardEndpoints = [breakdown];
