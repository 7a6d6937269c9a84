import { readMonthStatement } from '../../../usecases/reconciliation/monthStatement.js';
import { csvAnswer } from '../../csv.js';
import { endpointGroup } from '../../endpoint.js';
import { assertMonthBegun } from '../../query.js';
import { writeStatementCsv } from './csv.js';
import { presentStatement, statementQuery, statementResponse } from './wire.js';

const routes = endpointGroup({
  tag: 'Reconciliation',
  access: { scope: 'reconciliation:read', workspace: 'refused' },
});

routes.get('/api/v1/reconciliation/statement', {
  operationId: 'getStatement',
  summary: 'The cost of a month, its parts, and their confidence',
  description:
    'By account, by provider and in total: list price, discounts, billed usage, credits and tax up to the invoice; of the billed usage what calls verify, by grade, and what the rest is. Every part sums to its whole. format=csv has the same lines with exact decimals, one amount a row.',
  query: statementQuery,
  responses: {
    200: { description: 'The statement', schema: statementResponse, otherTypes: { 'text/csv': 'text' } },
  },
  problems: ['invalid_parameter', 'missing_parameter'],
  async handle({ query, orgDb }, deps) {
    const nowMicros = deps.nowMicros();
    assertMonthBegun(query.period, nowMicros);
    const agreed = await deps.prices.of(orgDb.orgId);
    const prices = { agreed, list: agreed.list };
    const statement = await readMonthStatement(orgDb, query.period, nowMicros, prices);
    if (query.format === 'csv')
      return csvAnswer(`statement-${statement.period}.csv`, writeStatementCsv(statement));
    return { status: 200, body: presentStatement(statement, nowMicros) };
  },
});

export const statementEndpoints = routes.endpoints;
