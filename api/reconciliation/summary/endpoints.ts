import type { z } from 'zod';
import type { PlacedBucket } from '../../../db/reconciliation/gapExplorer.js';
import { absPico } from '../../../domain/money.js';
import { dayOf, gapWindow, isoFromMicros } from '../../../domain/period.js';
import { exploreGaps, readMonthSummary } from '../../../usecases/reconciliation/readRuns.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { cursoredPage, decodeTimeAmountCursor } from '../../paging.js';
import { EXPLORER_PATH } from '../gapRuns/wire.js';
import { explorerQuery, explorerResponse, presentGap, presentSummary, summaryResponse } from './wire.js';

type ExplorerQuery = z.output<typeof explorerQuery>;

function filterOf({ flagged_only: flaggedOnly = false, flagged = false }: ExplorerQuery) {
  return { flaggedOnly: flaggedOnly || flagged, unmatchedOnly: flaggedOnly };
}

function pageOf({ limit, offset, cursor }: ExplorerQuery) {
  const after = decodeTimeAmountCursor(cursor);
  const position = after && { bucketMicros: after.micros, deltaPico: after.pico, place: after.place };
  return { limit: limit + 1, offset, after: position };
}

const positionOf = ({ bucketMicros, providerCostPico, ourCostPico, place }: PlacedBucket) =>
  [bucketMicros, absPico(providerCostPico - ourCostPico), place] as const;

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
    const days = { fromDay: dayOf(start), toDay: dayOf(end) };
    const window = { ...days, provider: query.provider ?? null, hourly: query.period === '7d' };
    const { counts, buckets } = await exploreGaps(orgDb, window, filterOf(query), pageOf(query));
    const { shown, page } = cursoredPage(buckets, query, positionOf);
    const period = { start: isoFromMicros(start), end: isoFromMicros(now) };
    return { status: 200, body: { period, ...counts, gaps: shown.map(presentGap), ...page } };
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
    const found = await readMonthSummary(orgDb, dayOf(deps.nowMicros()));
    return { status: 200, body: presentSummary(found) };
  },
});

export const reconciliationEndpoints: readonly Endpoint[] = [explore, summary];
