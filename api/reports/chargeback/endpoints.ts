import { readChargeback } from '../../../usecases/usage/chargeback.js';
import { endpointGroup } from '../../endpoint.js';
import {
  chargebackDays,
  chargebackQuery,
  chargebackResponse,
  chargebackTable,
  presentChargeback,
  questionOf,
} from './wire.js';

const routes = endpointGroup({ tag: 'Reports', access: { scope: 'reports:read', workspace: 'own' } });

routes.get('/api/v1/reports/chargeback', {
  operationId: 'getChargeback',
  summary: 'Cost by provider, model, team, feature, project, user or key, for booking it',
  description:
    'Buckets, the most expensive first; their cents sum to the total. Closed months stand as they were closed; `as_of` asks otherwise. With an allocation spend that belongs to no bucket is shared out: calls without a value, and billed usage and fees that no call explains.',
  query: chargebackQuery,
  csv: true,
  responses: { 200: { description: 'The buckets and their total', schema: chargebackResponse } },
  problems: ['invalid_range', 'as_of_unanswerable', 'forbidden'],
  async handle({ query, orgDb }, deps) {
    const nowMicros = deps.nowMicros();
    const days = chargebackDays(query, nowMicros);
    const report = await readChargeback(orgDb, questionOf(query, days, nowMicros));
    return {
      status: 200,
      body: presentChargeback(orgDb.orgId, query.dimension, days, report, nowMicros),
      table: chargebackTable(query.dimension, days, report),
    };
  },
});

export const chargebackEndpoints = routes.endpoints;
