import {
  countPublishedBuckets,
  findLastBilledMonth,
  listPublishedBuckets,
  sumMonth,
} from '../../../db/reconciliation/gapExplorer.js';
import { nextMonth, previousMonth } from '../../../domain/billing/periods/month.js';
import { absPico } from '../../../domain/money.js';
import { dayOf, gapWindow, isoFromMicros } from '../../../domain/period.js';
import { summarizeMonth } from '../../../domain/reconciliation/summary.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { cursoredPage, decodeTimeAmountCursor } from '../../paging.js';
import { EXPLORER_PATH } from '../gapRuns/wire.js';
import { explorerQuery, explorerResponse, presentGap, presentSummary, summaryResponse } from './wire.js';

const explore = defineEndpoint({
  operationId: 'exploreGaps',
  method: 'get',
  path: EXPLORER_PATH,
  tag: 'Reconciliation',
  summary: 'Where billed and observed differ',
  description:
    'The period is the UTC days that end with today, up to now. Days, and hours with period=7d where the provider’s usage report is hourly. total and flagged count the period before flagged_only and flagged are applied. Newest first, then the largest gap; one answer holds at most 10,000 buckets, and next_cursor leads to the others.',
  access: { scope: 'reconciliation:read', workspace: 'refused' },
  query: explorerQuery,
  responses: { 200: { description: 'Buckets of the latest runs, newest first', schema: explorerResponse } },
  problems: ['invalid_parameter'],
  async handle({ query, orgDb }, deps) {
    const now = deps.nowMicros();
    const { start, end } = gapWindow(query.period, now);
    const window = {
      fromDay: dayOf(start),
      toDay: dayOf(end),
      provider: query.provider ?? null,
      hourly: query.period === '7d',
    };
    const flaggedOnly = query.flagged_only ?? false;
    const after = decodeTimeAmountCursor(query.cursor);
    const { counts, buckets } = await orgDb.transaction(
      async (inside) => ({
        counts: await countPublishedBuckets(inside, window),
        buckets: await listPublishedBuckets(
          inside,
          window,
          { flaggedOnly: flaggedOnly || (query.flagged ?? false), unmatchedOnly: flaggedOnly },
          {
            limit: query.limit + 1,
            offset: query.offset,
            after: after && { bucketMicros: after.micros, deltaPico: after.pico, place: after.place },
          },
        ),
      }),
      'repeatable read',
    );
    const { shown, page } = cursoredPage(
      buckets,
      query,
      ({ bucketMicros, providerCostPico, ourCostPico, place }) => [
        bucketMicros,
        absPico(providerCostPico - ourCostPico),
        place,
      ],
    );
    return {
      status: 200,
      body: {
        period: { start: isoFromMicros(start), end: isoFromMicros(now) },
        ...counts,
        gaps: shown.map(presentGap),
        ...page,
      },
    };
  },
});

const summary = defineEndpoint({
  operationId: 'getReconciliationSummary',
  method: 'get',
  path: '/api/v1/reconciliation/summary',
  tag: 'Reconciliation',
  summary: 'The last billed month, matched and unmatched',
  description:
    'The last complete UTC month with billing data, else the previous one. The four grades sum to matched_usd + unmatched_usd, which is what was billed for usage.',
  access: { scope: 'reconciliation:read', workspace: 'refused' },
  responses: { 200: { description: 'The summary', schema: summaryResponse } },
  problems: [],
  async handle({ orgDb }, deps) {
    const today = dayOf(deps.nowMicros());
    const found = await orgDb.transaction(async (inside) => {
      const firstDay = (await findLastBilledMonth(inside, today)) ?? previousMonth(today);
      return { firstDay, totals: await sumMonth(inside, firstDay, nextMonth(firstDay)) };
    }, 'repeatable read');
    const { billedPico, matchedByGrade } = found.totals;
    return {
      status: 200,
      body: presentSummary(summarizeMonth(found.firstDay.slice(0, 7), billedPico, matchedByGrade)),
    };
  },
});

export const reconciliationEndpoints: readonly Endpoint[] = [explore, summary];
