import type { OrgDb } from '../../../db/orgDb.js';
import {
  findOpenSavingsRun,
  findSavingsRun,
  insertSavingsRun,
  listSavingsRuns,
  type NewSavingsRun,
  type SavingsPeriod,
  type SavingsRun,
} from '../../../db/policies/savingsRuns.js';
import { DomainError, type FieldIssue, invalidField } from '../../../domain/errors.js';
import { findUuid, newUuid, publicId } from '../../../domain/ids.js';
import {
  exclusiveEnd,
  type Instant,
  isoFromMicros,
  MICROS_PER_DAY,
  spanMicros,
} from '../../../domain/period.js';
import { recordAction } from '../../../usecases/access/recordAction.js';
import { standardPeriod } from '../../../usecases/policies/openSavingsRun.js';
import { openRun } from '../../../usecases/runs/openRun.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { pageOf } from '../../paging.js';
import { acceptedResponse, acceptedRun } from '../../runs/runWire.js';
import {
  listSavingsRunsQuery,
  listSavingsRunsResponse,
  presentSavingsRun,
  SAVINGS_RUNS_PATH,
  savingsRunBody,
  savingsRunParams,
  savingsRunSchema,
} from './wire.js';

/** Longest period of one run. */
const SAVINGS_DAYS_MAX = 92;
const TAG = 'Enforcement';
const READ = { scope: 'enforcement:read', workspace: 'refused' } as const;

/** The period that is asked for; with neither bound the 30 days before now. Errors invalid_parameter or invalid_body, invalid_range. */
export function periodOf(
  { from, to }: { from?: Instant | undefined; to?: Instant | undefined },
  nowMicros: bigint,
  where: FieldIssue['in'],
): SavingsPeriod {
  if (from === undefined && to === undefined) return standardPeriod(nowMicros);
  if (from === undefined || to === undefined) {
    const code = where === 'body' ? 'invalid_body' : 'invalid_parameter';
    throw invalidField(where, from ? 'to' : 'from', 'give from and to, or neither', code);
  }
  const period = {
    isStandard: false,
    windowStartMicros: from.micros,
    windowEndMicros: exclusiveEnd(to),
  };
  if (period.windowStartMicros >= period.windowEndMicros)
    throw invalidField(where, 'from', 'must not lie after to; swap them', 'invalid_range');
  return period;
}

const startRun = defineEndpoint({
  operationId: 'startSavingsRun',
  method: 'post',
  path: SAVINGS_RUNS_PATH,
  tag: TAG,
  summary: 'Model what the rules would have saved',
  description: `Asynchronous. Of the last 30 days, or of a period of at most ${SAVINGS_DAYS_MAX} days. While a run of the same period is open, it is the answer (existing: true).`,
  access: { scope: 'enforcement:write', workspace: 'refused' },
  limit: 'savings_run',
  body: savingsRunBody,
  isBodyOptional: true,
  responses: acceptedResponse(savingsRunSchema),
  problems: ['invalid_range'],
  async handle({ body, orgDb, caller, requestId, afterCommit, runLimit }, deps) {
    const now = deps.nowMicros();
    const period = periodOf(body, now, 'body');
    if (body.from && body.to && spanMicros(body.from, body.to) > BigInt(SAVINGS_DAYS_MAX) * MICROS_PER_DAY)
      throw invalidField(
        'body',
        'from',
        `must lie at most ${SAVINGS_DAYS_MAX} days before to`,
        'invalid_range',
      );
    const wanted: NewSavingsRun = {
      id: newUuid(now),
      ...period,
      cause: 'request',
      requestedBy: caller.keyId,
    };
    const { run, existing } = await openRun<SavingsRun>(orgDb, {
      insert: (inside) => insertSavingsRun(inside, wanted),
      ...(runLimit ? { limit: runLimit } : {}),
      message: 'savings_run.start',
      findOpen: () => findOpenSavingsRun(orgDb, period),
      record: (inside, opened) =>
        recordAction(
          inside,
          { caller, requestId },
          'savings_run.started',
          { type: 'savings_run', id: publicId('run', opened.id) },
          { from: isoFromMicros(opened.windowStartMicros), to: isoFromMicros(opened.windowEndMicros) },
        ),
    });
    if (!existing) afterCommit(() => deps.kickDispatcher());
    return acceptedRun(presentSavingsRun(run), existing);
  },
});

async function getSavingsRun(orgDb: OrgDb, id: string): Promise<SavingsRun> {
  const uuid = findUuid('run', id);
  const run = uuid === undefined ? undefined : await findSavingsRun(orgDb, uuid);
  if (!run) throw new DomainError('not_found', 'there is no savings run with this id');
  return run;
}

const readRun = defineEndpoint({
  operationId: 'getSavingsRun',
  method: 'get',
  path: `${SAVINGS_RUNS_PATH}/{id}`,
  tag: TAG,
  summary: 'One savings run: how far it is, and what it came to',
  access: READ,
  params: savingsRunParams,
  responses: { 200: { description: 'The run', schema: savingsRunSchema } },
  problems: ['not_found'],
  async handle({ params, orgDb }) {
    return { status: 200, body: presentSavingsRun(await getSavingsRun(orgDb, params.id)) };
  },
});

const listRuns = defineEndpoint({
  operationId: 'listSavingsRuns',
  method: 'get',
  path: SAVINGS_RUNS_PATH,
  tag: TAG,
  summary: 'Savings runs, newest first',
  access: READ,
  query: listSavingsRunsQuery,
  responses: { 200: { description: 'A page of runs', schema: listSavingsRunsResponse } },
  problems: [],
  async handle({ query, orgDb }) {
    const { status, limit, offset } = query;
    const found = await listSavingsRuns(orgDb, { status, limit: limit + 1, offset });
    const { shown, page } = pageOf(found, query);
    return { status: 200, body: { runs: shown.map(presentSavingsRun), ...page } };
  },
});

export const savingsRunEndpoints: readonly Endpoint[] = [startRun, listRuns, readRun];
