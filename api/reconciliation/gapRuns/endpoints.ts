import type { z } from 'zod';
import type { PlacedBucket } from '../../../db/reconciliation/gapExplorer.js';
import type { GapRun, NewGapRun } from '../../../db/reconciliation/gapRuns.js';
import { publicId } from '../../../domain/ids.js';
import { absPico } from '../../../domain/money.js';
import { dayOf, gapWindow, isoFromMicros } from '../../../domain/period.js';
import { exploreGaps, readMonthSummary } from '../../../usecases/reconciliation/readRuns.js';
import { runTableOf } from '../../../usecases/runs/runTables.js';
import { type Endpoint, endpointGroup } from '../../endpoint.js';
import { cursoredPage, decodeTimeAmountCursor } from '../../paging.js';
import {
  cancelRunEndpoint,
  getRunEndpoint,
  listRunsEndpoint,
  type RunResource,
  startRunEndpoint,
} from '../../runs/runEndpoints.js';
import {
  EXPLORER_PATH,
  explorerQuery,
  explorerResponse,
  gapsCsv,
  listRunsQuery,
  listRunsResponse,
  presentGap,
  presentRun,
  presentSummary,
  RUNS_PATH,
  requestedRun,
  runBody,
  runQuery,
  runSchema,
  summaryResponse,
} from './wire.js';

const RESOURCE: RunResource<GapRun, NewGapRun> = {
  runs: runTableOf('gap_run'),
  tag: 'Reconciliation',
  read: { scope: 'reconciliation:read', workspace: 'refused' },
  write: { scope: 'reconciliation:write', workspace: 'refused' },
  path: RUNS_PATH,
  schema: runSchema,
  present: (runs) => runs.map(presentRun),
};

export const gapRunEndpoints: readonly Endpoint[] = [
  startRunEndpoint(RESOURCE, {
    operationId: 'startGapRun',
    path: `${EXPLORER_PATH}/run`,
    summary: 'Compare bills and calls again',
    description:
      'Asynchronous. While a run of the same period and provider is open, that run is the answer (existing: true). Period and provider come in the query or in the body.',
    query: runQuery,
    body: runBody,
    isBodyOptional: true,
    problems: ['invalid_parameter'],
    prepare({ query, body }, deps) {
      const { period, provider } = requestedRun(query, body);
      const window = gapWindow(period, deps.nowMicros());
      return {
        wanted: { period, provider, windowStartMicros: window.start, windowEndMicros: window.end },
        open: { period, provider },
        audit: ({ id }) => ({
          action: 'gap_run.started',
          subject: { type: 'gap_run', id: publicId('run', id) },
          details: { period, provider },
        }),
      };
    },
  }),
  listRunsEndpoint(RESOURCE, {
    operationId: 'listGapRuns',
    summary: 'Runs, newest first',
    described: 'A page of runs',
    query: listRunsQuery,
    response: listRunsResponse,
    filter: ({ provider, status }) => ({ provider, status }),
  }),
  getRunEndpoint(RESOURCE, {
    operationId: 'getGapRun',
    summary: 'One run and how far it is',
    described: 'The run',
  }),
  cancelRunEndpoint(RESOURCE, {
    operationId: 'cancelGapRun',
    summary: 'Stop a run; nothing of it is published',
    description: 'A run that has published its findings is not stopped any more: 409, and it ends by itself.',
    action: 'gap_run.cancelled',
    subjectType: 'gap_run',
  }),
];

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

const routes = endpointGroup({
  tag: 'Reconciliation',
  access: { scope: 'reconciliation:read', workspace: 'refused' },
});

routes.get(EXPLORER_PATH, {
  operationId: 'exploreGaps',
  summary: 'Differences between billed and observed usage',
  description:
    'The period is the UTC days that end with today, up to now. Days, and hours with period=7d where the provider’s usage report is hourly. total and flagged count the period before flagged_only and flagged are applied. Newest first, then the largest gap; one answer holds at most 10,000 buckets, and next_cursor leads to the others.',
  query: explorerQuery,
  csv: gapsCsv,
  responses: { 200: { description: 'Buckets of the latest runs, newest first', schema: explorerResponse } },
  problems: ['invalid_parameter'],
  async handle({ query, orgDb }, deps) {
    const now = deps.nowMicros();
    const { start, end } = gapWindow(query.period, now);
    const days = { fromDay: dayOf(start), toDay: dayOf(end) };
    const window = { ...days, provider: query.provider ?? null, hourly: query.period === '7d' };
    const { counts, buckets, invoices } = await exploreGaps(orgDb, window, filterOf(query), pageOf(query));
    const { shown, page } = cursoredPage(buckets, query, positionOf);
    const period = { start: isoFromMicros(start), end: isoFromMicros(now) };
    return {
      status: 200,
      body: { period, ...counts, gaps: shown.map((bucket) => presentGap(bucket, invoices)), ...page },
    };
  },
});

routes.get('/api/v1/reconciliation/summary', {
  operationId: 'getReconciliationSummary',
  summary: 'The last billed month, matched and unmatched',
  description:
    'The last complete UTC month with billing data, else the previous one. The four grades sum to matched_usd + unmatched_usd, which is what was billed for usage.',
  responses: { 200: { description: 'The summary', schema: summaryResponse } },
  async handle({ orgDb }, deps) {
    const found = await readMonthSummary(orgDb, dayOf(deps.nowMicros()));
    return { status: 200, body: presentSummary(found) };
  },
});

export const reconciliationEndpoints = routes.endpoints;
