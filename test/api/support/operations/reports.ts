import { publicId } from '../../../../domain/ids.js';
import type { TestOrganization } from '../../../support/api.js';
import { storeReport, storeSchedule } from '../../../support/reports.js';
import {
  markerOf,
  type Operation,
  type OperationRequest,
  type OperationsPlace,
  randomName,
  unknownId,
} from './operation.js';

const READ = { scope: 'reports:read', workspace: 'refused' } as const;
const WRITE = { scope: 'reports:write', workspace: 'refused' } as const;
const REPORTS = '/api/v1/reports';

const ofReport =
  (params: (id: string) => Record<string, string>) =>
  async (_place: OperationsPlace, owner: TestOrganization): Promise<OperationRequest> => ({
    params: params(await storeReport(owner.orgDb)),
  });
/** A request about the weekly schedule. */
const ofSchedule = (
  method: Operation['method'],
  access: Operation['access'],
  status: number,
  json?: object,
): Operation => ({
  ...{ method, access, status, path: `${REPORTS}/schedules/{cadence}` },
  request: async (_place, owner) => {
    await storeSchedule(owner.orgDb);
    return { params: { cadence: 'weekly' }, ...(json ? { json } : {}) };
  },
});
const none = ofReport(() => ({}));

const BRANDING = '/api/v1/reports/branding';

const LOGO =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><rect width="1" height="1" fill="#123"/></svg>';

function form(owner: TestOrganization) {
  const boundary = `----${randomName()}`;
  const part = (head: string, value: string) =>
    `--${boundary}\r\ncontent-disposition: form-data; ${head}\r\n\r\n${value}\r\n`;
  const parts = [part('name="org_name"', markerOf(owner)), part('name="logo"; filename="logo.svg"', LOGO)];
  return { type: `multipart/form-data; boundary=${boundary}`, data: `${parts.join('')}--${boundary}--\r\n` };
}

async function brand({ api }: OperationsPlace, owner: TestOrganization): Promise<void> {
  const { type, data } = form(owner);
  const { status } = await fetch(api.baseUrl + BRANDING, {
    method: 'POST',
    headers: { authorization: `Bearer ${owner.adminKey}`, 'content-type': type },
    body: data,
  });
  if (status !== 200) throw new Error(`the branding answered ${status}`);
}

const read = (path: string): Operation => ({
  method: 'GET',
  path,
  access: READ,
  status: 200,
  request: async (place, owner) => {
    await brand(place, owner);
    return {};
  },
});

/** Management reports, their runs and their look. */
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
  listReportSchedules: {
    method: 'GET',
    path: `${REPORTS}/schedules`,
    access: READ,
    status: 200,
    request: async (_place, owner) => {
      await storeSchedule(owner.orgDb);
      // In place of a row that a test has filled by the types of its columns.
      await storeSchedule(owner.orgDb, 'finance', 'monthly');
      return {};
    },
  },
  getReportSchedule: ofSchedule('GET', READ, 200),
  putReportSchedule: ofSchedule('PUT', WRITE, 200, {
    ...{ sections: ['spend'], time_zone: 'Europe/Berlin' },
    deliveries: [{ type: 'webhook' }],
  }),
  deleteReportSchedule: ofSchedule('DELETE', WRITE, 204),
  listReportRuns: { method: 'GET', path: `${REPORTS}/runs`, access: READ, status: 200, request: none },
  getReportRun: {
    method: 'GET',
    path: `${REPORTS}/runs/{id}`,
    access: READ,
    status: 200,
    ids: { id: unknownId('run') },
    request: ofReport((id) => ({ id: publicId('run', id) })),
  },
  getBranding: read(BRANDING),
  getBrandingLogo: read(`${BRANDING}/logo`),
  updateBranding: {
    method: 'POST',
    path: BRANDING,
    access: WRITE,
    status: 200,
    request: async (_place, owner) => ({ body: form(owner) }),
  },
};
