import { randomBytes } from 'node:crypto';
import { openRun } from '../../db/openRun.js';
import type { OrgDb } from '../../db/orgDb.js';
import {
  countPublishedBuckets,
  findLastBilledMonth,
  listPublishedBuckets,
  sumMonth,
} from '../../db/queries/gapExplorer.js';
import {
  findGapRun,
  findOpenGapRun,
  type GapRun,
  insertGapRun,
  listGapRuns,
  type NewGapRun,
  requestGapRunCancel,
} from '../../db/queries/gapRuns.js';
import { insertOutboxMessage } from '../../db/queries/outbox.js';
import { DomainError } from '../../domain/errors.js';
import { findUuid, uuidFromMicros } from '../../domain/ids.js';
import { dayOf, gapWindow, isoFromMicros } from '../../domain/period.js';
import { nextMonth, previousMonth, summarizeMonth } from '../../domain/reconciliation/summary.js';
import { defineEndpoint, type Endpoint, type EndpointResponse } from '../endpoint.js';
import { RUN_RETRY_AFTER_SECONDS } from '../runWire.js';
import {
  EXPLORER_PATH,
  explorerQuery,
  explorerResponse,
  listRunsQuery,
  listRunsResponse,
  presentGap,
  presentRun,
  presentSummary,
  RUNS_PATH,
  runParams,
  runQuery,
  runSchema,
  runUrlOf,
  summaryResponse,
} from './wire.js';

const accepted = {
  202: {
    description: 'Taken; poll status_url',
    schema: runSchema,
    headers: { Location: 'Where to ask for its state', 'Retry-After': 'Seconds' },
  },
};

function acceptedRun(run: GapRun, existing: boolean): EndpointResponse {
  return {
    status: 202,
    headers: { Location: runUrlOf(run), 'Retry-After': String(RUN_RETRY_AFTER_SECONDS) },
    body: { ...presentRun(run), ...(existing ? { existing } : {}) },
  };
}

const startRun = defineEndpoint({
  operationId: 'startGapRun',
  method: 'post',
  path: `${EXPLORER_PATH}/run`,
  tag: 'Reconciliation',
  summary: 'Compare bills and calls anew',
  description:
    'Asynchronous. While a run of the same period and provider is open, that run is the answer (existing: true).',
  access: { scope: 'reconciliation:write' },
  query: runQuery,
  responses: accepted,
  problems: ['invalid_parameter'],
  async handle({ query, orgDb }, deps) {
    const now = deps.nowMicros();
    const window = gapWindow(query.period, now);
    const wanted: NewGapRun = {
      id: uuidFromMicros(now, randomBytes(8).readBigUInt64BE()),
      period: query.period,
      provider: query.provider ?? null,
      windowStartMicros: window.start,
      windowEndMicros: window.end,
    };
    const { run, existing } = await openRun<GapRun>(orgDb, {
      insert: (inside) => insertGapRun(inside, wanted),
      message: 'gap_run.start',
      findOpen: () => findOpenGapRun(orgDb, wanted.period, wanted.provider),
    });
    if (!existing) deps.kickDispatcher();
    return acceptedRun(run, existing);
  },
});

async function getRun(orgDb: OrgDb, id: string): Promise<GapRun> {
  const uuid = findUuid('run', id);
  const run = uuid === undefined ? undefined : await findGapRun(orgDb, uuid);
  if (!run) throw new DomainError('not_found', 'there is no run with this id');
  return run;
}

const readRun = defineEndpoint({
  operationId: 'getGapRun',
  method: 'get',
  path: `${RUNS_PATH}/{id}`,
  tag: 'Reconciliation',
  summary: 'One run and how far it is',
  access: { scope: 'reconciliation:read' },
  params: runParams,
  responses: { 200: { description: 'The run', schema: runSchema } },
  problems: ['not_found'],
  async handle({ params, orgDb }) {
    return { status: 200, body: presentRun(await getRun(orgDb, params.id)) };
  },
});

const listRuns = defineEndpoint({
  operationId: 'listGapRuns',
  method: 'get',
  path: RUNS_PATH,
  tag: 'Reconciliation',
  summary: 'Runs, newest first',
  access: { scope: 'reconciliation:read' },
  query: listRunsQuery,
  responses: { 200: { description: 'A page of runs', schema: listRunsResponse } },
  problems: [],
  async handle({ query, orgDb }) {
    const found = await listGapRuns(orgDb, {
      provider: query.provider,
      status: query.status,
      limit: query.limit + 1,
      offset: query.offset,
    });
    const runs = found.slice(0, query.limit).map(presentRun);
    return {
      status: 200,
      body: { runs, count: runs.length, offset: query.offset, has_more: found.length > query.limit },
    };
  },
});

const cancelRun = defineEndpoint({
  operationId: 'cancelGapRun',
  method: 'post',
  path: `${RUNS_PATH}/{id}/cancel`,
  tag: 'Reconciliation',
  summary: 'Stop a run; nothing of it is published',
  access: { scope: 'reconciliation:write' },
  params: runParams,
  responses: accepted,
  problems: ['not_found', 'run_not_cancellable'],
  async handle({ params, orgDb }, deps) {
    const { id, status } = await getRun(orgDb, params.id);
    const run = await orgDb.transaction(async (inside) => {
      const asked = await requestGapRunCancel(inside, id);
      if (asked) await insertOutboxMessage(inside, 'gap_run.cancel', id);
      return asked;
    });
    if (!run)
      throw new DomainError('run_not_cancellable', `the run has ended (${status}); there is nothing to stop`);
    deps.kickDispatcher();
    return acceptedRun(run, false);
  },
});

const explore = defineEndpoint({
  operationId: 'exploreGaps',
  method: 'get',
  path: EXPLORER_PATH,
  tag: 'Reconciliation',
  summary: 'Where billed and observed differ',
  description:
    'Days, and hours with period=7d where the provider’s usage report is hourly. total and flagged count the period before flagged_only and flagged are applied.',
  access: { scope: 'reconciliation:read' },
  query: explorerQuery,
  responses: { 200: { description: 'Buckets of the latest runs, newest first', schema: explorerResponse } },
  problems: ['invalid_parameter'],
  async handle({ query, orgDb }, deps) {
    const { start, end } = gapWindow(query.period, deps.nowMicros());
    const window = {
      fromDay: dayOf(start),
      toDay: dayOf(end),
      provider: query.provider ?? null,
      hourly: query.period === '7d',
    };
    const flaggedOnly = query.flagged_only ?? false;
    const { counts, buckets } = await orgDb.transaction(
      async (inside) => ({
        counts: await countPublishedBuckets(inside, window),
        buckets: await listPublishedBuckets(inside, window, {
          flaggedOnly: flaggedOnly || (query.flagged ?? false),
          unmatchedOnly: flaggedOnly,
        }),
      }),
      'repeatable read',
    );
    return {
      status: 200,
      body: {
        period: { start: isoFromMicros(start), end: isoFromMicros(end) },
        ...counts,
        gaps: buckets.map(presentGap),
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
  access: { scope: 'reconciliation:read' },
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

export const reconciliationEndpoints: readonly Endpoint[] = [
  explore,
  startRun,
  listRuns,
  readRun,
  cancelRun,
  summary,
];
