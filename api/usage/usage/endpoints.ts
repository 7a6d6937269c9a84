import type { z } from 'zod';
import { listEvents } from '../../../db/events/events.js';
import type { OrgDb } from '../../../db/orgDb.js';
import { daysBefore, exclusiveEnd } from '../../../domain/period.js';
import { sumUsage, sumUsageAsOf } from '../../../usecases/usage/usage.js';
import { endpointGroup } from '../../endpoint.js';
import {
  decodeEventCursor,
  decodeOffsetCursor,
  encodeCursor,
  eventPosition,
  nextCursor,
} from '../../paging.js';
import { assertPayloads } from '../../pipeline/auth.js';
import { providerFilter, windowOf } from '../../query.js';
import {
  breakdownCsv,
  breakdownParams,
  breakdownQuery,
  breakdownResponse,
  presentBreakdown,
  presentUsageGroupRecord,
  presentUsageRecord,
  presentUsageSummary,
  USAGE_GROUPS_MAX,
  usageCsv,
  usageRecordsQuery,
  usageRecordsResponse,
  usageSummaryQuery,
  usageSummaryResponse,
} from './wire.js';

const DEFAULT_DAYS = 30n;

const routes = endpointGroup({ tag: 'Usage', access: { scope: 'usage:read', workspace: 'own' } });

const usageSummary = routes.get('/api/v1/usage/summary', {
  operationId: 'getUsageSummary',
  summary: 'Cost and tokens of a window, by one dimension',
  description:
    'By default the last 30 days by model. A call that was just acknowledged is in it. Closed months stand as they were closed, and what changed later is in the day on which it came; `as_of` asks otherwise.',
  query: usageSummaryQuery,
  csv: usageCsv,
  responses: {
    200: { description: 'Totals and their breakdown, cost descending', schema: usageSummaryResponse },
  },
  problems: ['invalid_range', 'as_of_unanswerable'],
  async handle({ query, orgDb }, deps) {
    const nowMicros = deps.nowMicros();
    const { asked, shown } = summaryWindow(query, nowMicros);
    const sums = await sumUsageAsOf(
      orgDb,
      { asOf: query.as_of, ...asked, nowMicros },
      {
        dimension: query.group_by,
        filter: { projectId: query.project_id },
        limit: USAGE_GROUPS_MAX + 1,
      },
    );
    return { status: 200, body: presentUsageSummary(sums, shown, query.group_by, nowMicros) };
  },
});

/** The requested window, and the window that the answer names. Error: invalid_range. */
function summaryWindow({ from, to }: z.output<typeof usageSummaryQuery>, nowMicros: bigint) {
  const names = ['from', 'to'] as const;
  windowOf(from, to, names);
  const toMicros = to ? exclusiveEnd(to) : nowMicros + 1n;
  // Exactly 30 days: a date includes its whole day, a time is a moment.
  const lastMicros = to?.dateOnly ? toMicros : toMicros - 1n;
  const fromMicros = from?.micros ?? daysBefore(lastMicros, DEFAULT_DAYS);
  // Without `to` every stored call is included, also one of a client whose clock is ahead.
  return { asked: { fromMicros, toMicros: to && toMicros, names }, shown: { fromMicros, toMicros } };
}

const usageRecords = routes.get('/api/v1/usage/records', {
  operationId: 'listUsageRecords',
  summary: 'Usage call by call, or by group',
  description: 'Calls as they are known now, each at its own time, also in closed months.',
  query: usageRecordsQuery,
  responses: { 200: { description: 'A page of records', schema: usageRecordsResponse } },
  problems: ['invalid_range', 'forbidden'],
  async handle({ query, caller, orgDb }) {
    // Records contain no payloads, but include_payload needs the scope here as in other endpoints.
    assertPayloads(caller, query.include_payload);
    const { group_by: groupBy } = query;
    const body = await (groupBy === undefined ? listCalls(orgDb, query) : listGroups(orgDb, query, groupBy));
    return { status: 200, body };
  },
});

type RecordsQuery = z.output<typeof usageRecordsQuery>;

function filterOf(query: RecordsQuery) {
  return {
    sessionId: query.session_id,
    provider: providerFilter(query.provider),
    model: query.model,
    teamId: query.team_id,
    feature: query.feature,
    projectId: query.project_id,
    kind: query.kind,
  };
}

async function listCalls(orgDb: OrgDb, query: RecordsQuery) {
  const window = windowOf(query.since, query.until, ['since', 'until']);
  const after = decodeEventCursor(query.cursor);
  const { events, hasMore } = await listEvents(
    orgDb,
    { ...filterOf(query), ...window, withoutBlocked: true },
    { limit: query.limit, offset: after ? 0 : query.offset, after },
    false,
  );
  const next = nextCursor(events, hasMore, eventPosition);
  return page(events.map(presentUsageRecord), query.offset, null, hasMore, next);
}

async function listGroups(orgDb: OrgDb, query: RecordsQuery, groupBy: NonNullable<RecordsQuery['group_by']>) {
  const window = windowOf(query.since, query.until, ['since', 'until']);
  const offset = decodeOffsetCursor(query.cursor, query.offset);
  const { groups } = await sumUsage(orgDb, {
    dimension: groupBy,
    filter: filterOf(query),
    ...window,
    limit: query.limit + 1,
    offset,
  });
  const shown = groups.slice(offset, offset + query.limit);
  const hasMore = groups.length > offset + query.limit;
  const next = hasMore ? encodeCursor([String(offset + query.limit)]) : null;
  return page(shown.map(presentUsageGroupRecord), offset, groupBy, hasMore, next);
}

function page(
  records: object[],
  offset: number,
  groupBy: string | null,
  hasMore: boolean,
  nextCursor: string | null,
) {
  return {
    records,
    count: records.length,
    offset,
    group_by: groupBy,
    has_more: hasMore,
    next_cursor: nextCursor,
  };
}

export const usageEndpoints = [usageSummary, usageRecords];

const breakdown = routes.get('/api/v1/dashboard/breakdown/{dimension}', {
  operationId: 'getDashboardBreakdown',
  summary: 'Cost and tokens by one dimension, filtered by labels',
  description:
    'By default the last 30 days. Items are ordered by cost; those of `day` by day. Closed months stand as they were closed; `as_of` asks otherwise.',
  params: breakdownParams,
  query: breakdownQuery,
  csv: breakdownCsv,
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

/** The half-open window. Without `until` every stored call is included, also one of a client whose clock is ahead. */
function windowOfQuery({ since, until }: z.output<typeof breakdownQuery>, nowMicros: bigint) {
  const names = ['since', 'until'] as const;
  const { fromMicros, toMicros } = windowOf(since, until, names);
  return { fromMicros: fromMicros ?? daysBefore(toMicros ?? nowMicros + 1n, DEFAULT_DAYS), toMicros, names };
}

export const dashboardEndpoints = [breakdown];
