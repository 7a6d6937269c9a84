import { publicId } from '../../../../domain/ids.js';
import type { TestOrganization } from '../../../support/api.js';
import { storeReport } from '../../../support/reports.js';
import { type Operation, type OperationRequest, type OperationsPlace, unknownId } from './operation.js';

const READ = { scope: 'reports:read', workspace: 'refused' } as const;
const WRITE = { scope: 'reports:write', workspace: 'refused' } as const;
const REPORTS = '/api/v1/reports';

const ofReport =
  (params: (id: string) => Record<string, string>) =>
  async (_place: OperationsPlace, owner: TestOrganization): Promise<OperationRequest> => ({
    params: params(await storeReport(owner.orgDb)),
  });
const none = ofReport(() => ({}));

/** Management reports and their runs. */
export const REPORT_OPERATIONS: Record<string, Operation> = {
  createManagementReport: {
    method: 'POST',
    path: `${REPORTS}/management`,
    access: WRITE,
    status: 200,
    request: async () => ({ json: { from: '2026-02-01', to: '2026-02-02', sections: ['summary'] } }),
  },
  listReports: { method: 'GET', path: REPORTS, access: READ, status: 200, request: none },
  getReport: {
    method: 'GET',
    path: `${REPORTS}/{report_id}`,
    access: READ,
    status: 200,
    ids: { report_id: unknownId('rpt') },
    request: ofReport((id) => ({ report_id: publicId('rpt', id) })),
  },
  listReportRuns: { method: 'GET', path: `${REPORTS}/runs`, access: READ, status: 200, request: none },
  getReportRun: {
    method: 'GET',
    path: `${REPORTS}/runs/{id}`,
    access: READ,
    status: 200,
    ids: { id: unknownId('run') },
    request: ofReport((id) => ({ id: publicId('run', id) })),
  },
};
