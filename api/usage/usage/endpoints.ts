import { listEvents } from '../../../db/events/events.js';
import { sumUsage, sumUsageBooks } from '../../../db/usage/usage.js';
import { daysBefore, exclusiveEnd } from '../../../domain/period.js';
import { defineEndpoint } from '../../endpoint.js';
import {
  decodeEventCursor,
  decodeOffsetCursor,
  encodeCursor,
  eventPosition,
  nextCursor,
} from '../../paging.js';
import { assertPayloads } from '../../pipeline/auth.js';
import { providerFilter, windowOf } from '../../query.js';
import { presentAsOf, resolveView } from '../asOf.js';
import {
  presentUsageGroupRecord,
  presentUsageRecord,
  presentUsageSummary,
  usageRecordsQuery,
  usageRecordsResponse,
  usageSummaryQuery,
  usageSummaryResponse,
} from './wire.js';

/** Groups of a breakdown; the others are one more. */
export const USAGE_GROUPS_MAX = 1_000;
const DEFAULT_DAYS = 30n;

const usageSummary = defineEndpoint({
  operationId: 'getUsageSummary',
  method: 'get',
  path: '/api/v1/usage/summary',
  tag: 'Usage',
  summary: 'Cost and tokens of a window, by one dimension',
  description:
    'By default the last 30 days by model. A call that was just acknowledged is in it. Closed months stand as they were closed, and what changed later is in the day on which it came; `as_of` asks otherwise.',
  access: { scope: 'usage:read', workspace: 'own' },
  query: usageSummaryQuery,
  responses: {
    200: { description: 'Totals and their breakdown, cost descending', schema: usageSummaryResponse },
  },
  problems: ['invalid_range', 'as_of_unanswerable'],
  async handle({ query, orgDb }, deps) {
    windowOf(query.from, query.to, ['from', 'to']);
    const toMicros = query.to ? exclusiveEnd(query.to) : deps.nowMicros() + 1n;
    // Exactly 30 days: a date is its whole day, a time is itself.
    const lastMicros = query.to?.dateOnly ? toMicros : toMicros - 1n;
    const fromMicros = query.from?.micros ?? daysBefore(lastMicros, DEFAULT_DAYS);
    // Without `to` everything that has come in counts, also a call of a client whose clock is ahead of ours.
    const asked = { fromMicros, toMicros: query.to && toMicros };
    const nowMicros = deps.nowMicros();
    const view = await resolveView(orgDb, { asOf: query.as_of, ...asked, names: ['from', 'to'], nowMicros });
    const { totals, groups, adjustments } = await sumUsageBooks(orgDb, {
      dimension: query.group_by,
      filter: { projectId: query.project_id },
      ...asked,
      view,
      limit: USAGE_GROUPS_MAX + 1,
      offset: 0,
    });
    const window = { fromMicros, toMicros };
    return {
      status: 200,
      body: {
        ...presentUsageSummary(totals, groups, window, query.group_by, USAGE_GROUPS_MAX),
        ...presentAsOf(view, nowMicros, adjustments),
      },
    };
  },
});

const usageRecords = defineEndpoint({
  operationId: 'listUsageRecords',
  method: 'get',
  path: '/api/v1/usage/records',
  tag: 'Usage',
  summary: 'Usage call by call, or by group',
  description: 'Calls as they are known now, each at its own time, also in closed months.',
  access: { scope: 'usage:read', workspace: 'own' },
  query: usageRecordsQuery,
  responses: { 200: { description: 'A page of records', schema: usageRecordsResponse } },
  problems: ['invalid_range', 'forbidden'],
  async handle({ query, caller, orgDb }) {
    // Records show none; whoever may not read payloads hears it here as everywhere.
    assertPayloads(caller, query.include_payload);
    const window = windowOf(query.since, query.until, ['since', 'until']);
    const filter = {
      sessionId: query.session_id,
      provider: providerFilter(query.provider),
      model: query.model,
      teamId: query.team_id,
      feature: query.feature,
      projectId: query.project_id,
      kind: query.kind,
    };
    if (query.group_by === undefined) {
      const after = decodeEventCursor(query.cursor);
      const { events, hasMore } = await listEvents(
        orgDb,
        { ...filter, ...window, withoutBlocked: true },
        { limit: query.limit, offset: after ? 0 : query.offset, after },
        false,
      );
      const next = nextCursor(events, hasMore, eventPosition);
      return { status: 200, body: page(events.map(presentUsageRecord), query.offset, null, hasMore, next) };
    }
    const offset = decodeOffsetCursor(query.cursor, query.offset);
    const { groups } = await sumUsage(orgDb, {
      dimension: query.group_by,
      filter,
      ...window,
      limit: query.limit + 1,
      offset,
    });
    const shown = groups.slice(offset, offset + query.limit);
    const hasMore = groups.length > offset + query.limit;
    const next = hasMore ? encodeCursor([String(offset + query.limit)]) : null;
    return {
      status: 200,
      body: page(shown.map(presentUsageGroupRecord), offset, query.group_by, hasMore, next),
    };
  },
});

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
