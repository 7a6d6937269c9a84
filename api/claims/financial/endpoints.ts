import { readFinancialSummary } from '../../../usecases/claims/financialSummary.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { windowOf } from '../../query.js';
import { FINANCIAL_SUMMARY_PATH, presentFinancialSummary, summaryQuery, summaryResponse } from './wire.js';

const readSummary = defineEndpoint({
  operationId: 'getFinancialSummary',
  method: 'get',
  path: FINANCIAL_SUMMARY_PATH,
  tag: 'Financial',
  summary: 'What there is to get back and to save, in six numbers that add up',
  description:
    'Of all time unless from or to are given. A finding that spans the window counts with its days in it. Each number is rounded to cents before the total is made.',
  access: { scope: 'financial:read', workspace: 'refused' },
  query: summaryQuery,
  responses: { 200: { description: 'The summary', schema: summaryResponse } },
  problems: ['invalid_range'],
  async handle({ query, orgDb }, deps) {
    const window = windowOf(query.from, query.to, ['from', 'to']);
    const { summary, modeled } = await readFinancialSummary(orgDb, window, deps.nowMicros());
    return { status: 200, body: presentFinancialSummary(summary, window, modeled) };
  },
});

export const financialEndpoints: readonly Endpoint[] = [readSummary];
