import type { NewSavingsRun, SavingsPeriod, SavingsRun } from '../../../db/policies/savingsRuns.js';
import { type FieldIssue, invalidField } from '../../../domain/errors.js';
import { publicId } from '../../../domain/ids.js';
import {
  exclusiveEnd,
  type Instant,
  isoFromMicros,
  MICROS_PER_DAY,
  spanMicros,
} from '../../../domain/period.js';
import {
  listSavingsCalls,
  readSavings,
  savingsOpening,
  standardPeriod,
} from '../../../usecases/policies/savings.js';
import { runTableOf } from '../../../usecases/runs/runTables.js';
import { type Endpoint, endpointGroup } from '../../endpoint.js';
import { decodeResultCursor, nextCursor } from '../../paging.js';
import {
  getRunEndpoint,
  listRunsEndpoint,
  type RunResource,
  startRunEndpoint,
} from '../../runs/runEndpoints.js';
import {
  listSavingsCallsQuery,
  listSavingsCallsResponse,
  listSavingsRunsQuery,
  listSavingsRunsResponse,
  presentSavings,
  presentSavingsCalls,
  presentSavingsRun,
  SAVINGS_CALLS_PATH,
  SAVINGS_PATH,
  SAVINGS_RUNS_PATH,
  savingsQuery,
  savingsResponse,
  savingsRunBody,
  savingsRunSchema,
} from './wire.js';

const routes = endpointGroup({
  tag: 'Enforcement',
  access: { scope: 'enforcement:read', workspace: 'refused' },
});

routes.get(SAVINGS_PATH, {
  operationId: 'getEnforcementSavings',
  summary: 'Savings of enforcement rules, prevented and modeled',
  description:
    'prevented_usd is of the calls that wrappers have blocked in the period. preventable_modeled_usd is of the newest savings run: of the last 30 days, or of exactly the period that is named; null where none has been run.',
  query: savingsQuery,
  responses: { 200: { description: 'Both, by rule', schema: savingsResponse } },
  problems: ['invalid_parameter', 'invalid_range'],
  async handle({ query, orgDb }, deps) {
    const period = periodOf(query, deps.nowMicros(), 'query');
    return { status: 200, body: presentSavings(period, await readSavings(orgDb, period)) };
  },
});

routes.get(SAVINGS_CALLS_PATH, {
  operationId: 'listSavingsCalls',
  csv: 'modelled-calls',
  summary: 'The calls that make up what the rules would have saved',
  description:
    'Of the newest result over the last 30 days, or of a run that is named. A cursor goes through one result to its end, also while a newer one comes.',
  query: listSavingsCallsQuery,
  responses: { 200: { description: 'A page of calls', schema: listSavingsCallsResponse } },
  problems: ['invalid_parameter'],
  async handle({ query, orgDb }, deps) {
    const after = decodeResultCursor(query.cursor);
    const { run_id: runId, rule_id: ruleId, limit } = query;
    const asked = { runId, ruleId, after, limit: limit + 1 };
    const { run, calls } = await listSavingsCalls(orgDb, asked, deps.nowMicros());
    const [shown, hasMore] = [calls.slice(0, limit), calls.length > limit];
    const next = nextCursor(shown, hasMore, (call) => [run?.id ?? '', call.timestampMicros, call.eventId]);
    return { status: 200, body: presentSavingsCalls(run, shown, hasMore, next) };
  },
});

export const savingsEndpoints = routes.endpoints;

/** Longest period of one run, days. */
const SAVINGS_DAYS_MAX = 92;

/** The requested period; without bounds the last 30 days. Errors: invalid_parameter or invalid_body, invalid_range. */
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

const RESOURCE: RunResource<SavingsRun, NewSavingsRun> = {
  runs: runTableOf('savings_run'),
  tag: 'Enforcement',
  read: { scope: 'enforcement:read', workspace: 'refused' },
  write: { scope: 'enforcement:write', workspace: 'refused' },
  path: SAVINGS_RUNS_PATH,
  schema: savingsRunSchema,
  present: (runs) => runs.map(presentSavingsRun),
};

export const savingsRunEndpoints: readonly Endpoint[] = [
  startRunEndpoint(RESOURCE, {
    operationId: 'startSavingsRun',
    path: SAVINGS_RUNS_PATH,
    summary: 'Model what the rules would have saved',
    description: `Asynchronous. Of the last 30 days, or of a period of at most ${SAVINGS_DAYS_MAX} days. While a run of the same period is open, it is the answer (existing: true).`,
    body: savingsRunBody,
    isBodyOptional: true,
    problems: ['invalid_range'],
    prepare({ body, caller }, deps) {
      const period = periodOf(body, deps.nowMicros(), 'body');
      if (body.from && body.to && spanMicros(body.from, body.to) > BigInt(SAVINGS_DAYS_MAX) * MICROS_PER_DAY)
        throw invalidField(
          'body',
          'from',
          `must lie at most ${SAVINGS_DAYS_MAX} days before to`,
          'invalid_range',
        );
      return {
        ...savingsOpening(period, caller.keyId),
        audit: ({ id, windowStartMicros, windowEndMicros }) => ({
          action: 'savings_run.started',
          subject: { type: 'savings_run', id: publicId('run', id) },
          details: { from: isoFromMicros(windowStartMicros), to: isoFromMicros(windowEndMicros) },
        }),
      };
    },
  }),
  listRunsEndpoint(RESOURCE, {
    operationId: 'listSavingsRuns',
    summary: 'Savings runs, newest first',
    described: 'A page of runs',
    query: listSavingsRunsQuery,
    response: listSavingsRunsResponse,
    filter: ({ status }) => ({ status }),
  }),
  getRunEndpoint(RESOURCE, {
    operationId: 'getSavingsRun',
    summary: 'One savings run: how far it is, and what it came to',
    described: 'The run',
  }),
];
