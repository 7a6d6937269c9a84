import type { Client } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { microsOfDay } from '../../domain/period.js';
import { dueMicrosOf, periodFrom } from '../../domain/reports/schedule.js';
import { openMissedReports } from '../../usecases/reports/reportSchedules.js';
import { reportScheduleId } from '../../workflows/contract.js';
import { send } from '../api/support/requests.js';
import { startTestApi, type TestApi, type TestOrganization } from '../support/api.js';
import { startTestEngine, type TestEngine, until } from '../support/engine.js';
import { REPORTS_PATH } from '../support/reports.js';
import { connectClient } from './recording.js';

let api: TestApi;
let engine: TestEngine;
let client: Client;
let disconnect: () => Promise<void>;

beforeAll(async () => {
  api = await startTestApi({
    temporalStatus: async () => 'up',
    kickDispatcher: () => engine.dispatcher.kick(),
  });
  engine = await startTestEngine(api.database.database);
  await engine.startWorker();
  const connected = await connectClient();
  ({ client } = connected);
  disconnect = () => connected.connection.close();
}, 300_000);
afterAll(async () => {
  await disconnect?.();
  await engine?.close();
  await api?.close();
});

const put = (cadence: string, json: object, key: string) =>
  send(api, {
    ...{ method: 'PUT', path: `${REPORTS_PATH}/schedules/${cadence}`, key },
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(json),
  });

const scheduleOf = ({ orgId }: TestOrganization, cadence: 'weekly' | 'monthly') =>
  client.schedule.getHandle(reportScheduleId({ orgId, cadence }));

/** The schedule, once the dispatcher has made it. */
const described = (of: TestOrganization, cadence: 'weekly' | 'monthly') =>
  until(
    'the schedule',
    () =>
      scheduleOf(of, cadence)
        .describe()
        .catch(() => undefined),
    (found) => found !== undefined,
  );

/** As if the schedule had been made long ago. */
const dueSince = (of: TestOrganization, cadence: string, day: string) =>
  api.database.superuser.query(
    'update report_schedules set due_from = $3 where org_id = $1 and cadence = $2',
    [of.orgId, cadence, day],
  );

interface Listed {
  period_from: string;
  status: string;
  cadence: string | null;
}

/** Periods of scheduled reports, oldest first, once all of them have ended. */
async function madePeriods({ adminKey }: TestOrganization, count: number): Promise<string[]> {
  const runs = await until(
    `${count} reports`,
    async () => (await api.get(`${REPORTS_PATH}/runs`, adminKey)).body.runs as Listed[],
    (found) => found.length >= count && found.every(({ status }) => status === 'succeeded'),
  );
  return runs.map(({ period_from: from }) => from).sort();
}

describe('a management report', () => {
  it('is made by its workflow while the request waits', async () => {
    const answer = await send(api, {
      ...{ method: 'POST', path: `${REPORTS_PATH}/management` },
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ from: '2026-03-01', to: '2026-03-31' }),
    });
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'application/pdf']);
    const id = String(answer.headers['x-report-id']).replace('rpt_', '');
    const uuid = `${id.slice(0, 8)}-${id.slice(8, 12)}-${id.slice(12, 16)}-${id.slice(16, 20)}-${id.slice(20)}`;
    const { type } = await until(
      'the end of the workflow',
      () => client.workflow.getHandle(`report:${api.orgId}:${uuid}`).describe(),
      ({ status }) => status.name === 'COMPLETED',
    );
    expect(type).toBe('managementReport');
  });
});

describe('a schedule of reports', () => {
  it('fires when the reports of its next periods are due, across changes of the clock', async () => {
    const organization = await api.addOrganization();
    for (const [cadence, zone] of [
      ['monthly', 'Europe/Berlin'],
      ['weekly', 'Pacific/Auckland'],
    ] as const) {
      const { status, body } = await put(cadence, { time_zone: zone }, organization.adminKey);
      expect([status, body.time_zone]).toEqual([200, zone]);
      const { info, memo, policies } = (await described(organization, cadence)) ?? {};
      expect([memo?.taskQueue, policies?.overlap]).toEqual([engine.taskQueue, 'BUFFER_ONE']);
      let period = periodFrom(cadence, body.next.period_from);
      for (const at of info?.nextActionTimes ?? []) {
        const late = at.getTime() - Number(dueMicrosOf(period, zone) / 1_000n);
        expect(late).toBeGreaterThanOrEqual(0);
        expect(late).toBeLessThanOrEqual(600_000);
        const [year = 0, month = 0, day = 0] = period.toDay.split('-').map(Number);
        period = periodFrom(cadence, new Date(Date.UTC(year, month - 1, day + 1)).toISOString().slice(0, 10));
      }
      expect(info?.nextActionTimes.length).toBeGreaterThanOrEqual(5);
    }
  });

  it('makes each period once, however often a time is filled in again', async () => {
    const organization = await api.addOrganization();
    await put('monthly', { time_zone: 'America/New_York', sections: ['summary'] }, organization.adminKey);
    await described(organization, 'monthly');
    await dueSince(organization, 'monthly', '2026-01-01');
    const fill = () =>
      scheduleOf(organization, 'monthly').backfill({
        start: new Date('2026-01-15T00:00:00Z'),
        end: new Date('2026-04-15T00:00:00Z'),
        overlap: 'BUFFER_ALL',
      });
    await fill();
    const months = ['2026-01-01', '2026-02-01', '2026-03-01'];
    expect(await madePeriods(organization, 3)).toEqual(months);
    await fill();
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    expect(await madePeriods(organization, 3)).toEqual(months);
  });

  it('makes what an outage longer than its catch-up window has missed, each period once', async () => {
    const organization = await api.addOrganization();
    await put('weekly', { sections: ['summary'] }, organization.adminKey);
    await dueSince(organization, 'weekly', '2026-06-29');
    const nowMicros = () => microsOfDay('2026-07-31');
    const deps = { database: api.database.database, nowMicros };
    await Promise.all([openMissedReports(deps), openMissedReports(deps)]);
    await openMissedReports(deps);
    engine.dispatcher.kick();
    expect(await madePeriods(organization, 4)).toEqual([
      '2026-06-29',
      '2026-07-06',
      '2026-07-13',
      '2026-07-20',
    ]);
  });

  it('tries a report that failed again, and not for ever', async () => {
    const organization = await api.addOrganization();
    await put('weekly', { sections: ['summary'] }, organization.adminKey);
    await dueSince(organization, 'weekly', '2026-06-29');
    const deps = { database: api.database.database, nowMicros: () => microsOfDay('2026-07-07') };
    const countAll = async () =>
      Number(
        (
          await api.database.superuser.query('select count(*) from reports where org_id = $1', [
            organization.orgId,
          ])
        ).rows[0].count,
      );
    for (let attempt = 1; attempt <= 4; attempt += 1) {
      await openMissedReports(deps);
      await api.database.superuser.query(
        `update reports set status = 'failed', finished_at = now(), error_code = 'internal_error', blob_key = null,
           size_bytes = null, generated_at = null, expires_at = null where org_id = $1`,
        [organization.orgId],
      );
      await api.database.superuser.query(`delete from outbox where org_id = $1 and kind = 'report.start'`, [
        organization.orgId,
      ]);
      expect(await countAll()).toBe(Math.min(attempt, 3));
    }
  });

  it('comes back where the engine has lost it, and goes when it is ended', async () => {
    const organization = await api.addOrganization();
    await put('monthly', {}, organization.adminKey);
    await described(organization, 'monthly');
    await scheduleOf(organization, 'monthly').delete();
    await engine.schedules.reconcile();
    await described(organization, 'monthly');
    const gone = await send(api, {
      ...{ method: 'DELETE', path: `${REPORTS_PATH}/schedules/monthly`, key: organization.adminKey },
    });
    expect(gone.status).toBe(204);
    await until(
      'the end of the schedule',
      () =>
        scheduleOf(organization, 'monthly')
          .describe()
          .then(
            () => false,
            () => true,
          ),
      Boolean,
    );
    expect((await api.get(`${REPORTS_PATH}/schedules/monthly`, organization.adminKey)).status).toBe(404);
  });
});
