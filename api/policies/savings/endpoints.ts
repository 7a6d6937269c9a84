import { listSavingsCalls, readSavings } from '../../../usecases/policies/savings.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { decodeResultCursor, nextCursor } from '../../paging.js';
import { periodOf } from '../savingsRuns/endpoints.js';
import {
  listSavingsCallsQuery,
  listSavingsCallsResponse,
  presentSavings,
  presentSavingsCalls,
  SAVINGS_CALLS_PATH,
  SAVINGS_PATH,
  savingsQuery,
  savingsResponse,
} from './wire.js';

const TAG = 'Enforcement';
const READ = { scope: 'enforcement:read', workspace: 'refused' } as const;

const readSavingsEndpoint = defineEndpoint({
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
    return { status: 200, body: presentSavings(period, await readSavings(orgDb, period)) };
  },
});

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
    const { run_id: runId, rule_id: ruleId, limit } = query;
    const asked = { runId, ruleId, after, limit: limit + 1 };
    const { run, calls } = await listSavingsCalls(orgDb, asked, deps.nowMicros());
    const [shown, hasMore] = [calls.slice(0, limit), calls.length > limit];
    const next = nextCursor(shown, hasMore, (call) => [run?.id ?? '', call.timestampMicros, call.eventId]);
    return { status: 200, body: presentSavingsCalls(run, shown, hasMore, next) };
  },
});

export const savingsEndpoints: readonly Endpoint[] = [readSavingsEndpoint, listCalls];
