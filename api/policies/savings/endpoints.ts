import type { OrgDb } from '../../../db/orgDb.js';
import { listModeledCalls, listModeledRules } from '../../../db/policies/modeledSavings.js';
import { sumPreventedSpend } from '../../../db/policies/preventedSpend.js';
import {
  findOpenSavingsRun,
  findSavingsResult,
  findSavingsRun,
  type SavingsPeriod,
  type SavingsRun,
} from '../../../db/policies/savingsRuns.js';
import { invalidField } from '../../../domain/errors.js';
import { findUuid, publicId } from '../../../domain/ids.js';
import { standardPeriod } from '../../../usecases/policies/openSavingsRun.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { decodeResultCursor, nextCursor } from '../../paging.js';
import { periodOf } from '../savingsRuns/endpoints.js';
import {
  listSavingsCallsQuery,
  listSavingsCallsResponse,
  type ModeledResult,
  presentModeledCall,
  presentSavings,
  SAVINGS_CALLS_PATH,
  SAVINGS_PATH,
  savingsQuery,
  savingsResponse,
} from './wire.js';

const TAG = 'Enforcement';
const READ = { scope: 'enforcement:read', workspace: 'refused' } as const;

async function findResult(orgDb: OrgDb, period: SavingsPeriod): Promise<ModeledResult | undefined> {
  const run = await findSavingsResult(orgDb, period);
  return run && { run, rules: await listModeledRules(orgDb, run.id) };
}

const readSavings = defineEndpoint({
  operationId: 'getEnforcementSavings',
  method: 'get',
  path: SAVINGS_PATH,
  tag: TAG,
  summary: 'What enforcement rules have prevented, and what they would have saved',
  description:
    'prevented_usd is of the calls that wrappers have blocked in the period. preventable_modeled_usd is of the newest savings run: of the last 30 days, or of exactly the period that is named; null where none has been run.',
  access: READ,
  query: savingsQuery,
  responses: { 200: { description: 'Both, by rule', schema: savingsResponse } },
  problems: ['invalid_parameter', 'invalid_range'],
  async handle({ query, orgDb }, deps) {
    const period = periodOf(query, deps.nowMicros(), 'query');
    const window = { fromMicros: period.windowStartMicros, toMicros: period.windowEndMicros };
    const prevented = await sumPreventedSpend(orgDb, window);
    // One state of both: a result that gives way between the two reads would be shown without its rules.
    const { result, open } = await orgDb.transaction(
      async (inside) => ({
        result: await findResult(inside, period),
        open: await findOpenSavingsRun(inside, period),
      }),
      'repeatable read',
    );
    return { status: 200, body: presentSavings(window, prevented, result, open) };
  },
});

/** The run whose calls are listed; undefined where nothing was modeled yet. Error invalid_parameter. */
async function runOfCalls(
  orgDb: OrgDb,
  named: string | undefined,
  cursorRunId: string | undefined,
  nowMicros: bigint,
): Promise<SavingsRun | undefined> {
  if (cursorRunId !== undefined) {
    const run = await findSavingsRun(orgDb, cursorRunId);
    const isSame = named === undefined || named === publicId('run', cursorRunId);
    if (run?.totals && run.emptiedAtMicros === null && isSame) return run;
    const remedy = 'the result that it goes through has given way to a newer one; begin again without it';
    throw invalidField('query', 'cursor', remedy);
  }
  if (named === undefined) return findSavingsResult(orgDb, standardPeriod(nowMicros));
  const uuid = findUuid('run', named);
  const run = uuid === undefined ? undefined : await findSavingsRun(orgDb, uuid);
  if (run?.totals && run.emptiedAtMicros === null) return run;
  const why = run?.totals
    ? 'its calls gave way to newer results'
    : 'is not the id of a savings run with a result';
  throw invalidField('query', 'run_id', why);
}

const listCalls = defineEndpoint({
  operationId: 'listSavingsCalls',
  method: 'get',
  path: SAVINGS_CALLS_PATH,
  tag: TAG,
  summary: 'The calls that make up what the rules would have saved',
  description:
    'Of the newest result over the last 30 days, or of a run that is named. A cursor goes through one result to its end, also while a newer one comes.',
  access: READ,
  query: listSavingsCallsQuery,
  responses: { 200: { description: 'A page of calls', schema: listSavingsCallsResponse } },
  problems: ['invalid_parameter'],
  async handle({ query, orgDb }, deps) {
    const after = decodeResultCursor(query.cursor);
    const ruleId = query.rule_id === undefined ? undefined : findUuid('rul', query.rule_id);
    if (query.rule_id !== undefined && ruleId === undefined)
      throw invalidField('query', 'rule_id', 'is not the id of a rule');
    const run = await runOfCalls(orgDb, query.run_id, after?.runId, deps.nowMicros());
    const found = run ? await listModeledCalls(orgDb, run.id, { ruleId, after, limit: query.limit + 1 }) : [];
    const shown = found.slice(0, query.limit);
    const hasMore = found.length > query.limit;
    return {
      status: 200,
      body: {
        run_id: run ? publicId('run', run.id) : null,
        calls: shown.map(presentModeledCall),
        count: shown.length,
        has_more: hasMore,
        next_cursor: nextCursor(shown, hasMore, (call) => [
          run?.id ?? '',
          call.timestampMicros,
          call.eventId,
        ]),
      },
    };
  },
});

export const savingsEndpoints: readonly Endpoint[] = [readSavings, listCalls];
