import type { OrgDb } from '../../../db/orgDb.js';
import {
  findOpenRepriceRun,
  findRepriceRun,
  insertRepriceRun,
  listRepriceFindings,
  listRepriceRuns,
  type NewRepriceRun,
  type RepriceRun,
} from '../../../db/pricing/repriceRuns.js';
import { insertOutboxMessage } from '../../../db/runs/outbox.js';
import { requestRunCancel } from '../../../db/runs/runStates.js';
import { DomainError, invalidField } from '../../../domain/errors.js';
import { findUuid, newUuid, publicId } from '../../../domain/ids.js';
import {
  exclusiveEnd,
  type Instant,
  isoFromMicros,
  MICROS_PER_DAY,
  spanMicros,
} from '../../../domain/period.js';
import { recordAction } from '../../../usecases/access/recordAction.js';
import { openRun } from '../../../usecases/runs/openRun.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { pageOf } from '../../paging.js';
import { providerFilter } from '../../query.js';
import { acceptedResponse, acceptedRun } from '../../runs/runWire.js';
import {
  LISTED_MODELS_MAX,
  listRepriceRunsQuery,
  listRepriceRunsResponse,
  MODELS_MAX,
  presentRepriceRun,
  REPRICE_PATH,
  REPRICE_RUNS_PATH,
  repriceBody,
  repriceRunParams,
  repriceRunSchema,
} from './wire.js';

/** Longest window of one run. */
const REPRICE_DAYS_MAX = 3_660n;

async function present(orgDb: OrgDb, run: RepriceRun) {
  const found = await listRepriceFindings(orgDb, [run.id], MODELS_MAX);
  return presentRepriceRun(run, found.get(run.id));
}

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

const subjectOf = (id: string) => ({ type: 'repricing', id: publicId('run', id) });

const startRepricing = defineEndpoint({
  operationId: 'startRepricing',
  method: 'post',
  path: REPRICE_PATH,
  tag: 'Pricing',
  summary: 'Price stored calls anew by the prices of now',
  description:
    'Asynchronous. Each call’s computed cost is worked out from its stored tokens as when it came in; a reported cost stays. Both prices are kept. One run at a time: while one of the same window and filter is open, it is the answer (existing: true).',
  access: { scope: 'pricing:write', workspace: 'refused' },
  limit: 'reprice',
  body: repriceBody,
  responses: acceptedResponse(repriceRunSchema),
  problems: ['invalid_range', 'reprice_in_progress'],
  async handle({ body, orgDb, caller, requestId, afterCommit, runLimit }, deps) {
    const wanted: NewRepriceRun = {
      id: newUuid(deps.nowMicros()),
      ...windowOfBody(body.from, body.to),
      provider: providerFilter(body.provider) ?? null,
      model: body.model ?? null,
      requestedBy: caller.keyId,
    };
    const { run, existing } = await openRun<RepriceRun>(orgDb, {
      insert: (inside) => insertRepriceRun(inside, wanted),
      ...(runLimit ? { limit: runLimit } : {}),
      message: 'reprice.start',
      findOpen: () => findOpenRepriceRun(orgDb),
      record: (inside, run) =>
        recordAction(inside, { caller, requestId }, 'repricing.started', subjectOf(run.id), {
          from: isoFromMicros(run.windowStartMicros),
          to: isoFromMicros(run.windowEndMicros),
          provider: run.provider,
          model: run.model,
        }),
    });
    if (existing && !isSameWork(run, wanted)) throw inProgress(run);
    if (!existing) afterCommit(() => deps.kickDispatcher());
    return acceptedRun(await present(orgDb, run), existing);
  },
});

function isSameWork(open: RepriceRun, wanted: NewRepriceRun): boolean {
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

async function getRun(orgDb: OrgDb, id: string): Promise<RepriceRun> {
  const uuid = findUuid('run', id);
  const run = uuid === undefined ? undefined : await findRepriceRun(orgDb, uuid);
  if (!run) throw new DomainError('not_found', 'there is no re-pricing with this id');
  return run;
}

const readRun = defineEndpoint({
  operationId: 'getRepricing',
  method: 'get',
  path: `${REPRICE_RUNS_PATH}/{id}`,
  tag: 'Pricing',
  summary: 'One re-pricing: how far it is, and what it changed',
  access: { scope: 'pricing:read', workspace: 'refused' },
  params: repriceRunParams,
  responses: { 200: { description: 'The run', schema: repriceRunSchema } },
  problems: ['not_found'],
  async handle({ params, orgDb }) {
    return { status: 200, body: await present(orgDb, await getRun(orgDb, params.id)) };
  },
});

const listRuns = defineEndpoint({
  operationId: 'listRepricings',
  method: 'get',
  path: REPRICE_RUNS_PATH,
  tag: 'Pricing',
  summary: 'Re-pricings, newest first',
  access: { scope: 'pricing:read', workspace: 'refused' },
  query: listRepriceRunsQuery,
  responses: { 200: { description: 'A page of runs', schema: listRepriceRunsResponse } },
  problems: [],
  async handle({ query, orgDb }) {
    const { status, limit, offset } = query;
    const found = await listRepriceRuns(orgDb, { status, limit: limit + 1, offset });
    const { shown, page } = pageOf(found, query);
    const findings = await listRepriceFindings(
      orgDb,
      shown.map((run) => run.id),
      LISTED_MODELS_MAX,
    );
    const runs = shown.map((run) => presentRepriceRun(run, findings.get(run.id)));
    return { status: 200, body: { runs, ...page } };
  },
});

const cancelRun = defineEndpoint({
  operationId: 'cancelRepricing',
  method: 'post',
  path: `${REPRICE_RUNS_PATH}/{id}/cancel`,
  tag: 'Pricing',
  summary: 'Stop a re-pricing; what it has priced stays priced',
  access: { scope: 'pricing:write', workspace: 'refused' },
  params: repriceRunParams,
  responses: acceptedResponse(repriceRunSchema),
  problems: ['not_found', 'run_not_cancellable'],
  async handle({ params, orgDb, afterCommit, caller, requestId }, deps) {
    const { id, status } = await getRun(orgDb, params.id);
    const run = await orgDb.transaction(async (inside) => {
      if (!(await requestRunCancel(inside, 'reprice', id))) return undefined;
      await insertOutboxMessage(inside, 'reprice.cancel', id);
      const asked = await findRepriceRun(inside, id);
      await recordAction(inside, { caller, requestId }, 'repricing.cancelled', subjectOf(id));
      return asked;
    });
    if (!run)
      throw new DomainError('run_not_cancellable', `the run has ended (${status}); there is nothing to stop`);
    afterCommit(() => deps.kickDispatcher());
    return acceptedRun(await present(orgDb, run), false);
  },
});

export const repricingEndpoints: readonly Endpoint[] = [startRepricing, listRuns, readRun, cancelRun];
