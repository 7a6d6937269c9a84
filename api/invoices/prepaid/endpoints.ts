import { dayOf } from '../../../domain/period.js';
import { readPrepaidLedgers } from '../../../usecases/invoices/prepaid.js';
import { defineEndpoint, type Endpoint } from '../../endpoint.js';
import { providerFilter } from '../../query.js';
import { prepaidQuery, prepaidResponse, presentLedger } from './wire.js';

const getPrepaid = defineEndpoint({
  operationId: 'getPrepaidLedger',
  csv: 'prepaid',
  method: 'get',
  path: '/api/v1/reconciliation/prepaid',
  tag: 'Invoices',
  summary: 'Credit bought ahead: bought, used, expired and left',
  description:
    'By provider account, from the purchases on uploaded invoices and what the bills say was used; the oldest purchase is used first. bought = used + expired + left.',
  access: { scope: 'billing:read', workspace: 'refused' },
  query: prepaidQuery,
  responses: { 200: { description: 'The ledgers', schema: prepaidResponse } },
  problems: ['invalid_parameter'],
  async handle({ query, orgDb }, deps) {
    const today = dayOf(deps.nowMicros());
    const ledgers = await readPrepaidLedgers(orgDb, providerFilter(query.provider) ?? null, today);
    return { status: 200, body: { as_of: today, accounts: ledgers.map(presentLedger) } };
  },
});

export const prepaidEndpoints: readonly Endpoint[] = [getPrepaid];
