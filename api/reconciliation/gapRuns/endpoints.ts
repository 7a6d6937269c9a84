import type { GapRun, NewGapRun } from '../../../db/reconciliation/gapRuns.js';
import { publicId } from '../../../domain/ids.js';
import { gapWindow } from '../../../domain/period.js';
import { runTableOf } from '../../../usecases/runs/runTables.js';
import type { Endpoint } from '../../endpoint.js';
import {
  cancelRunEndpoint,
  getRunEndpoint,
  listRunsEndpoint,
  type RunResource,
  startRunEndpoint,
} from '../../runs/runEndpoints.js';
import {
  EXPLORER_PATH,
  listRunsQuery,
  listRunsResponse,
  presentRun,
  RUNS_PATH,
  requestedRun,
  runBody,
  runQuery,
  runSchema,
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
    summary: 'Compare bills and calls anew',
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
