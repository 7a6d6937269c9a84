import { Readable } from 'node:stream';
import { streamFocusRecords } from '../../../usecases/billing/focusExport.js';
import { readAhead } from '../../csv.js';
import { endpointGroup } from '../../endpoint.js';
import { assertMonthBegun } from '../../query.js';
import { writeFocusCsv } from './csv.js';
import { focusExportQuery } from './wire.js';

const routes = endpointGroup({
  tag: 'Reconciliation',
  access: { scope: 'reconciliation:read', workspace: 'refused' },
});

routes.get('/api/v1/reconciliation/focus', {
  operationId: 'exportFocus',
  summary: 'The bills of a month as FOCUS, with what calls say of them',
  description:
    'CSV of the FOCUS specification (Cost and Usage), streamed day by day: a row for each charge that a provider has billed, and one at zero for use that was observed and not billed. BilledCost sums to the statement’s invoice. Our own columns begin with x_; amounts are exact decimals. A transfer that ends without its last chunk is broken: fetch it again.',
  limit: 'export',
  query: focusExportQuery,
  responses: { 200: { description: 'The export', contentType: 'text/csv' } },
  problems: ['invalid_parameter', 'missing_parameter'],
  async handle({ query, orgDb, signal }, deps) {
    const { period, version } = query;
    assertMonthBegun(period, deps.nowMicros());
    const agreed = await deps.prices.of(orgDb.orgId);
    const days = await readAhead(streamFocusRecords(orgDb, period, { agreed, list: agreed.list }));
    const filename = `focus-${version}-${period.slice(0, 7)}.csv`;
    const data = Readable.from(writeFocusCsv(version, days, signal));
    return {
      status: 200,
      headers: { 'Content-Disposition': `attachment; filename="${filename}"` },
      content: { type: 'text/csv; charset=utf-8; header=present', data },
    };
  },
});

export const focusExportEndpoints = routes.endpoints;
