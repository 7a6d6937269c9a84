import type { OrgDb } from '../../../db/orgDb.js';
import { listReports, type NewReport, type Report } from '../../../db/reports/reports.js';
import { publicId } from '../../../domain/ids.js';
import { sectionsOf } from '../../../domain/reports/report.js';
import { openReport } from '../../../usecases/reports/reportFiles.js';
import { awaitReport, requestReport } from '../../../usecases/reports/requestReport.js';
import { runTableOf } from '../../../usecases/runs/runTables.js';
import type { ApiDeps } from '../../deps.js';
import { type Endpoint, type EndpointRequest, type EndpointResponse, endpointGroup } from '../../endpoint.js';
import { pageOf } from '../../paging.js';
import { LocatedError } from '../../problem.js';
import { getRunEndpoint, listRunsEndpoint, type RunResource } from '../../runs/runEndpoints.js';
import { acceptedResponse, acceptedRun } from '../../runs/runWire.js';
import {
  documentHeaders,
  listReportRunsQuery,
  listReportRunsResponse,
  listReportsQuery,
  listReportsResponse,
  periodOfBody,
  prefersAsync,
  presentReport,
  presentReportRun,
  REPORT_READ,
  REPORT_RUNS_PATH,
  REPORT_TAG,
  REPORT_WRITE,
  REPORTS_PATH,
  reportBody,
  reportParams,
  reportRunSchema,
  reportRunUrl,
} from './wire.js';

/** The time after which a report that took too long may be ready. */
const DELAYED_RETRY_SECONDS = 10;

const routes = endpointGroup({ tag: REPORT_TAG, access: { read: REPORT_READ, write: REPORT_WRITE } });

const PDF_HEADERS = {
  'X-Report-Id': 'The id by which the report can be downloaded again',
  'Content-Disposition': 'attachment, with a name of the period',
};

routes.post(`${REPORTS_PATH}/management`, {
  operationId: 'createManagementReport',
  summary: 'Make a management report and download it',
  description:
    'A PDF over the UTC days from `from` to `to`, at most 366. The request waits up to 60 seconds; a report that takes longer goes on, and Location names its run. With `Prefer: respond-async` the answer is its run at once. The same Idempotency-Key gives the same report, for as long as it is kept.',
  body: reportBody,
  limit: 'report',
  idempotency: 'own',
  responses: {
    200: { description: 'The report', contentType: 'application/pdf', headers: PDF_HEADERS },
    ...acceptedResponse(reportRunSchema),
  },
  problems: [
    'invalid_range',
    'invalid_parameter',
    'invalid_idempotency_key',
    'idempotency_key_reused',
    'document_failed',
    'report_delayed',
    'report_not_found',
  ],
  async handle(request, deps) {
    const { body, orgDb, runLimit: limit, header } = request;
    const wanted = {
      period: periodOfBody(body),
      sections: sectionsOf(body.sections ?? undefined),
      idempotencyKey: header('idempotency-key'),
    };
    const options = { limit, nowMicros: deps.nowMicros() };
    const { report, existing } = await requestReport(orgDb, wanted, request, options);
    if (!existing) deps.kickDispatcher();
    return prefersAsync(header('prefer'))
      ? acceptAsync(report, existing)
      : answerWith(report, existing, request, deps);
  },
});

function acceptAsync(report: Report, existing: boolean): EndpointResponse {
  const accepted = acceptedRun(presentReportRun(report), existing);
  return { ...accepted, headers: { ...accepted.headers, 'Preference-Applied': 'respond-async' } };
}

/** The document once it is there. Errors: report_delayed, and those with which it failed. */
async function answerWith(
  { id }: Report,
  existing: boolean,
  { orgDb, signal }: Pick<EndpointRequest<unknown, unknown, unknown>, 'orgDb' | 'signal'>,
  deps: ApiDeps,
): Promise<EndpointResponse> {
  const waitDeps = { ...deps, baseUrl: deps.settings.baseUrl };
  const made = await awaitReport(waitDeps, orgDb, id, { signal, waitMs: deps.settings.reportWaitMs });
  if (!made)
    throw new LocatedError(
      'report_delayed',
      'the report takes longer than a request may wait; it goes on, and Location says where to ask for it',
      reportRunUrl(id),
      DELAYED_RETRY_SECONDS,
    );
  const answer = await downloadOf(orgDb, publicId('rpt', id), deps);
  return existing ? { ...answer, headers: { ...answer.headers, 'Idempotency-Replayed': 'true' } } : answer;
}

async function downloadOf(orgDb: OrgDb, id: string, deps: ApiDeps): Promise<EndpointResponse> {
  const { report, sizeBytes, stream } = await openReport(deps, orgDb, id);
  return {
    status: 200,
    headers: documentHeaders(report, sizeBytes),
    content: { type: 'application/pdf', data: stream },
  };
}

routes.get(REPORTS_PATH, {
  operationId: 'listReports',
  csv: 'reports',
  summary: 'Reports of the last 90 days, newest first',
  query: listReportsQuery,
  responses: { 200: { description: 'A page of reports', schema: listReportsResponse } },
  async handle({ query, orgDb }) {
    const { limit, offset } = query;
    const { shown, page } = pageOf(await listReports(orgDb, { limit: limit + 1, offset }), query);
    return { status: 200, body: { reports: shown.map(presentReport), ...page } };
  },
});

routes.get(`${REPORTS_PATH}/{report_id}`, {
  operationId: 'getReport',
  summary: 'Download a report again',
  params: reportParams,
  responses: { 200: { description: 'The report', contentType: 'application/pdf', headers: PDF_HEADERS } },
  problems: ['report_not_found'],
  handle: ({ params, orgDb }, deps) => downloadOf(orgDb, params.report_id, deps),
});

const RESOURCE: RunResource<Report, NewReport> = {
  runs: runTableOf('report'),
  tag: REPORT_TAG,
  read: REPORT_READ,
  write: REPORT_WRITE,
  path: REPORT_RUNS_PATH,
  schema: reportRunSchema,
  present: (runs) => runs.map(presentReportRun),
};

export const reportEndpoints: readonly Endpoint[] = [
  ...routes.endpoints,
  listRunsEndpoint(RESOURCE, {
    operationId: 'listReportRuns',
    summary: 'Runs of reports, newest first',
    described: 'A page of runs',
    query: listReportRunsQuery,
    response: listReportRunsResponse,
    filter: ({ status }) => ({ status }),
  }),
  getRunEndpoint(RESOURCE, {
    operationId: 'getReportRun',
    summary: 'The run of a report: whether it is made',
    described: 'The run',
  }),
];
