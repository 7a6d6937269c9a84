import { listRepriceFindings, type NewRepriceRun, type RepriceRun } from '../../../db/pricing/repriceRuns.js';
import { DomainError, invalidField } from '../../../domain/errors.js';
import { publicId } from '../../../domain/ids.js';
import {
  exclusiveEnd,
  type Instant,
  isoFromMicros,
  MICROS_PER_DAY,
  spanMicros,
} from '../../../domain/period.js';
import { runTableOf } from '../../../usecases/runs/runTables.js';
import type { Endpoint } from '../../endpoint.js';
import { providerFilter } from '../../query.js';
import {
  cancelRunEndpoint,
  getRunEndpoint,
  listRunsEndpoint,
  type RunResource,
  startRunEndpoint,
} from '../../runs/runEndpoints.js';
import {
  LISTED_MODELS_MAX,
  listRepriceRunsQuery,
  listRepriceRunsResponse,
  MODELS_MAX,
  presentRepriceRun,
  REPRICE_PATH,
  REPRICE_RUNS_PATH,
  repriceBody,
  repriceRunSchema,
} from './wire.js';

/** Longest window of one run, days. */
const REPRICE_DAYS_MAX = 3_660n;

const RESOURCE: RunResource<RepriceRun, NewRepriceRun> = {
  runs: runTableOf('reprice'),
  tag: 'Pricing',
  read: { scope: 'pricing:read', workspace: 'refused' },
  write: { scope: 'pricing:write', workspace: 'refused' },
  path: REPRICE_RUNS_PATH,
  schema: repriceRunSchema,
  async present(runs, orgDb, isListed) {
    const ids = runs.map(({ id }) => id);
    const found = await listRepriceFindings(orgDb, ids, isListed ? LISTED_MODELS_MAX : MODELS_MAX);
    return runs.map((run) => presentRepriceRun(run, found.get(run.id)));
  },
};

function windowOfBody(from: Instant, to: Instant): { windowStartMicros: bigint; windowEndMicros: bigint } {
  const windowStartMicros = from.micros;
  const windowEndMicros = exclusiveEnd(to);
  if (windowStartMicros >= windowEndMicros)
    throw invalidField('body', 'from', 'must not lie after to; swap them', 'invalid_range');
  if (spanMicros(from, to) > REPRICE_DAYS_MAX * MICROS_PER_DAY)
    throw invalidField(
      'body',
      'from',
      `must lie at most ${REPRICE_DAYS_MAX} days before to`,
      'invalid_range',
    );
  return { windowStartMicros, windowEndMicros };
}

function isSameWork(open: RepriceRun, wanted: Omit<NewRepriceRun, 'id'>): boolean {
  return (
    open.windowStartMicros === wanted.windowStartMicros &&
    open.windowEndMicros === wanted.windowEndMicros &&
    open.provider === wanted.provider &&
    open.model === wanted.model
  );
}

function inProgress(open: RepriceRun): DomainError {
  return new DomainError(
    'reprice_in_progress',
    `${publicId('run', open.id)} prices calls of another window or filter; wait for its end, or cancel it`,
  );
}

export const repricingEndpoints: readonly Endpoint[] = [
  startRunEndpoint(RESOURCE, {
    operationId: 'startRepricing',
    path: REPRICE_PATH,
    summary: 'Price stored calls again by present prices',
    description:
      'Asynchronous. Each call’s computed cost is computed from its stored tokens as at ingest; a reported cost does not change. Both prices are kept. One run at a time: while one of the same window and filter is open, it is the answer (existing: true).',
    body: repriceBody,
    problems: ['invalid_range', 'reprice_in_progress'],
    prepare({ body, caller }) {
      const wanted = {
        ...windowOfBody(body.from, body.to),
        provider: providerFilter(body.provider) ?? null,
        model: body.model ?? null,
        requestedBy: caller.keyId,
      };
      return {
        wanted,
        open: {},
        refuseOpen: (open) => (isSameWork(open, wanted) ? undefined : inProgress(open)),
        audit: ({ id, windowStartMicros, windowEndMicros, provider, model }) => ({
          action: 'repricing.started',
          subject: { type: 'repricing', id: publicId('run', id) },
          details: {
            from: isoFromMicros(windowStartMicros),
            to: isoFromMicros(windowEndMicros),
            provider,
            model,
          },
        }),
      };
    },
  }),
  listRunsEndpoint(RESOURCE, {
    operationId: 'listRepricings',
    summary: 'Re-pricings, newest first',
    described: 'A page of runs',
    query: listRepriceRunsQuery,
    response: listRepriceRunsResponse,
    filter: ({ status }) => ({ status }),
  }),
  getRunEndpoint(RESOURCE, {
    operationId: 'getRepricing',
    summary: 'One re-pricing: how far it is, and what it changed',
    described: 'The run',
  }),
  cancelRunEndpoint(RESOURCE, {
    operationId: 'cancelRepricing',
    summary: 'Stop a re-pricing; calls that it has priced keep their new prices',
    action: 'repricing.cancelled',
    subjectType: 'repricing',
  }),
];
