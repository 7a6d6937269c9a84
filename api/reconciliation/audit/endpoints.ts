import { auditBills } from '../../../usecases/reconciliation/billAudit.js';
import { csvAnswer } from '../../csv.js';
import { endpointGroup } from '../../endpoint.js';
import { auditFilename, writeAuditCsv } from './csv.js';
import { auditQuery, auditResponse, presentAudit } from './wire.js';

const routes = endpointGroup({
  tag: 'Reconciliation',
  access: { scope: 'reconciliation:read', workspace: 'refused' },
});

routes.get('/api/v1/reconciliation/audit', {
  operationId: 'getAudit',
  summary: 'The rates that a provider charged, against list and contract',
  description:
    'From the bills alone: no call has to be observed. Charges at another than the agreed rate, as one line while the ratio stays the same, charges as agreed, and charges that the bill alone cannot prove. The command ./trueup audit prints the same.',
  query: auditQuery,
  responses: { 200: { description: 'The audit', schema: auditResponse, otherTypes: { 'text/csv': 'text' } } },
  problems: ['invalid_parameter', 'missing_parameter', 'invalid_range'],
  async handle({ query, orgDb, signal }, deps) {
    const agreed = await deps.prices.of(orgDb.orgId);
    const nowMicros = deps.nowMicros();
    const request = {
      provider: query.provider,
      fromDay: query.from ?? null,
      toDay: query.to ?? null,
      nowMicros,
    };
    const report = await auditBills(orgDb, request, { agreed, list: agreed.list }, signal);
    if (query.format === 'csv') return csvAnswer(auditFilename(report), writeAuditCsv(report));
    return { status: 200, body: presentAudit(report, agreed.versionAt(nowMicros)) };
  },
});

export const auditEndpoints = routes.endpoints;
