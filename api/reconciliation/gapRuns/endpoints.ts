import type { OrgDb } from '../../../db/orgDb.js';
import {
  findGapRun,
  findOpenGapRun,
  type GapRun,
  insertGapRun,
  listGapRuns,
  type NewGapRun,
} from '../../../db/reconciliation/gapRuns.js';
import { insertOutboxMessage } from '../../../db/runs/outbox.js';
import { requestRunCancel } from '../../../db/runs/runStates.js';
import { DomainError } from '../../../domain/errors.js';
import { findUuid, newUuid, publicId } from '../../../domain/ids.js';
import { gapWindow } from '../../../domain/period.js';
import { RUN_TERMINAL_STATUSES } from '../../../domain/runs/runs.js';
import { recordAction } from '../../../usecases/access/recordAction.js';
import { openRun } from '../../../usecases/runs/openRun.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { pageOf } from '../../paging.js';
import { acceptedResponse, acceptedRun } from '../../runs/runWire.js';
import {
  EXPLORER_PATH,
  listRunsQuery,
  listRunsResponse,
  presentRun,
  RUNS_PATH,
  requestedRun,
  runBody,
  runParams,
  runQuery,
  runSchema,
} from './wire.js';

const subjectOf = (id: string) => ({ type: 'gap_run', id: publicId('run', id) });

const startRun = defineEndpoint({
  operationId: 'startGapRun',
  method: 'post',
  path: `${EXPLORER_PATH}/run`,
  tag: 'Reconciliation',
  summary: 'Compare bills and calls anew',
  description:
    'Asynchronous. While a run of the same period and provider is open, that run is the answer (existing: true). Period and provider come in the query or in the body.',
  access: { scope: 'reconciliation:write', workspace: 'refused' },
  limit: 'gap_run',
  query: runQuery,
  body: runBody,
  isBodyOptional: true,
  responses: acceptedResponse(runSchema),
  problems: ['invalid_parameter'],
  async handle({ query, body, orgDb, afterCommit, caller, requestId, runLimit }, deps) {
    const now = deps.nowMicros();
    const { period, provider } = requestedRun(query, body);
    const window = gapWindow(period, now);
    const wanted: NewGapRun = {
      id: newUuid(now),
      period,
      provider,
      windowStartMicros: window.start,
      windowEndMicros: window.end,
    };
    const { run, existing } = await openRun<GapRun>(orgDb, {
      insert: (inside) => insertGapRun(inside, wanted),
      ...(runLimit ? { limit: runLimit } : {}),
      message: 'gap_run.start',
      findOpen: () => findOpenGapRun(orgDb, wanted.period, wanted.provider),
      record: (inside, { id, period, provider }) =>
        recordAction(inside, { caller, requestId }, 'gap_run.started', subjectOf(id), { period, provider }),
    });
    if (!existing) afterCommit(() => deps.kickDispatcher());
    return acceptedRun(presentRun(run), existing);
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
  access: { scope: 'reconciliation:read', workspace: 'refused' },
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
  access: { scope: 'reconciliation:read', workspace: 'refused' },
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
    const { shown, page } = pageOf(found, query);
    return { status: 200, body: { runs: shown.map(presentRun), ...page } };
  },
});

function whyNotCancellable({ status }: GapRun): string {
  return RUN_TERMINAL_STATUSES.has(status)
    ? `the run has ended (${status}); there is nothing to stop`
    : 'the run has published its findings and is drafting claims; it ends by itself, and drafts can be discarded';
}

const cancelRun = defineEndpoint({
  operationId: 'cancelGapRun',
  method: 'post',
  path: `${RUNS_PATH}/{id}/cancel`,
  tag: 'Reconciliation',
  summary: 'Stop a run; nothing of it is published',
  description: 'A run that has published its findings is not stopped any more: 409, and it ends by itself.',
  access: { scope: 'reconciliation:write', workspace: 'refused' },
  params: runParams,
  responses: acceptedResponse(runSchema),
  problems: ['not_found', 'run_not_cancellable'],
  async handle({ params, orgDb, afterCommit, caller, requestId }, deps) {
    const { id } = await getRun(orgDb, params.id);
    const run = await orgDb.transaction(async (inside) => {
      if (!(await requestRunCancel(inside, 'gap_run', id))) return undefined;
      await insertOutboxMessage(inside, 'gap_run.cancel', id);
      const asked = await findGapRun(inside, id);
      await recordAction(inside, { caller, requestId }, 'gap_run.cancelled', subjectOf(id));
      return asked;
    });
    if (!run) throw new DomainError('run_not_cancellable', whyNotCancellable(await getRun(orgDb, params.id)));
    afterCommit(() => deps.kickDispatcher());
    return acceptedRun(presentRun(run), false);
  },
});

export const gapRunEndpoints: readonly Endpoint[] = [startRun, listRuns, readRun, cancelRun];
