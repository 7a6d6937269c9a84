import { listReportSchedules } from '../../../db/reports/reportSchedules.js';
import { newUuid } from '../../../domain/ids.js';
import { sectionsOf } from '../../../domain/reports/report.js';
import {
  getReportSchedule,
  putReportSchedule,
  removeReportSchedule,
} from '../../../usecases/reports/reportSchedules.js';
import { type Endpoint, endpointGroup } from '../../endpoint.js';
import { REPORT_READ, REPORT_TAG, REPORT_WRITE } from '../reports/wire.js';
import {
  listSchedulesResponse,
  presentSchedule,
  SCHEDULE_PATH,
  SCHEDULES_PATH,
  scheduleBody,
  scheduleParams,
  scheduleSchema,
} from './wire.js';

const routes = endpointGroup({ tag: REPORT_TAG, access: { read: REPORT_READ, write: REPORT_WRITE } });

routes.get(SCHEDULES_PATH, {
  operationId: 'listReportSchedules',
  csv: 'report-schedules',
  summary: 'The schedules of reports',
  responses: { 200: { description: 'The schedules that there are', schema: listSchedulesResponse } },
  async handle({ orgDb }) {
    const schedules = (await listReportSchedules(orgDb)).map(presentSchedule);
    return { status: 200, body: { schedules, count: schedules.length } };
  },
});

routes.get(SCHEDULE_PATH, {
  operationId: 'getReportSchedule',
  summary: 'The weekly or monthly schedule of reports',
  params: scheduleParams,
  responses: { 200: { description: 'The schedule', schema: scheduleSchema } },
  problems: ['not_found', 'invalid_parameter'],
  async handle({ params, orgDb }) {
    return { status: 200, body: presentSchedule(await getReportSchedule(orgDb, params.cadence)) };
  },
});

routes.put(SCHEDULE_PATH, {
  operationId: 'putReportSchedule',
  summary: 'Make or replace the weekly or monthly schedule of reports',
  description:
    'Weekly: on Mondays, over the week before. Monthly: on the first, over the month before. At 06:00 in the time zone, or later where the last UTC day is not over then. Each period is reported once, also after an outage.',
  params: scheduleParams,
  body: scheduleBody,
  isBodyOptional: true,
  responses: { 200: { description: 'The schedule', schema: scheduleSchema } },
  problems: ['invalid_parameter', 'mail_not_configured'],
  async handle(request, deps) {
    const { params, body, orgDb, afterCommit } = request;
    const nowMicros = deps.nowMicros();
    const wanted = {
      cadence: params.cadence,
      sections: sectionsOf(body.sections ?? undefined),
      timeZone: body.time_zone ?? undefined,
      deliveries: body.deliveries.map((delivery) => ({ id: newUuid(nowMicros), ...delivery })),
    };
    const options = { nowMicros, canMail: deps.deliverMail !== undefined };
    const schedule = await putReportSchedule(orgDb, wanted, request, options);
    afterCommit(() => deps.kickDispatcher());
    return { status: 200, body: presentSchedule(schedule) };
  },
});

routes.delete(SCHEDULE_PATH, {
  operationId: 'deleteReportSchedule',
  summary: 'End the weekly or monthly schedule of reports',
  description: 'Reports that it made stay until they expire.',
  params: scheduleParams,
  responses: { 204: { description: 'Ended' } },
  problems: ['not_found', 'invalid_parameter'],
  async handle(request, deps) {
    await removeReportSchedule(request.orgDb, request.params.cadence, request);
    request.afterCommit(() => deps.kickDispatcher());
    return { status: 204 };
  },
});

export const reportScheduleEndpoints: readonly Endpoint[] = routes.endpoints;
