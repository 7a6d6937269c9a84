import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, beforeEach, expect, inject, it } from 'vitest';
import { reportScheduleId } from '../../workflows/contract.js';
import { startTestApi, type TestApi, type TestOrganization } from '../support/api.js';
import { testBlobs } from '../support/blobs.js';
import { until } from '../support/engine.js';
import { type MailServer, type ReceivedMail, startMailServer } from '../support/mailServer.js';
import { TEST_NAMESPACE } from '../support/temporal.js';
import { startWebhookPlace, type WebhookPlace } from '../support/webhookPlace.js';

const REPORTS = '/api/v1/reports';
/** The week from Monday 5 January 2026 is over at 00:00 UTC of the 12th, and its report is due at 06:00. */
const DUE = { start: new Date('2026-01-12T00:00:00Z'), end: new Date('2026-01-13T00:00:00Z') };
const FILE = 'report-2026-01-05-2026-01-11.pdf';

let mails: MailServer;
let place: WebhookPlace;
let api: TestApi;
let client: Client;
let connection: Connection;
let org: TestOrganization;
beforeAll(async () => {
  const blobs = testBlobs();
  mails = await startMailServer();
  place = await startWebhookPlace({ engine: { deliverMail: mails.mailer(), blobs } });
  api = await startTestApi({
    ...{ database: place.database, outbound: place.outbound, deliverMail: mails.mailer(), blobs },
    kickDispatcher: () => place.engine.dispatcher.kick(),
  });
  await place.engine.startWorker();
  connection = await Connection.connect({ address: inject('temporalAddress') });
  client = new Client({ connection, namespace: TEST_NAMESPACE });
});
beforeEach(async () => {
  mails.refuseWith(undefined);
  mails.received.length = 0;
  org = await api.addOrganization();
});
afterAll(async () => {
  await connection?.close();
  await api?.close();
  await place?.close();
  await mails?.close();
});

/** Puts a weekly schedule with one address and has Temporal fire it for one Monday. */
async function fireWeekly(): Promise<void> {
  const put = await fetch(`${api.baseUrl}${REPORTS}/schedules/weekly`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${org.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      time_zone: 'UTC',
      deliveries: [{ type: 'email', to: 'finance@example.com' }],
    }),
  });
  expect([put.status, await put.json()]).toMatchObject([200, { time_zone: 'UTC' }]);
  place.engine.dispatcher.kick();
  const schedule = client.schedule.getHandle(reportScheduleId({ orgId: org.orgId, cadence: 'weekly' }));
  await until(
    'the schedule',
    () => schedule.describe().catch(() => undefined),
    (found) => found !== undefined,
  );
  // As if the schedule had been made before that week.
  await api.database.superuser.query('update report_schedules set due_from = $2 where org_id = $1', [
    org.orgId,
    '2026-01-05',
  ]);
  await schedule.backfill({ ...DUE, overlap: 'BUFFER_ALL' });
}

const deliveries = async (): Promise<{ status: string; attempts: number }[]> =>
  (
    await api.database.superuser.query('select status, attempts from webhook_deliveries where org_id = $1', [
      org.orgId,
    ])
  ).rows;

const deliveryOf = (status: string) =>
  until(`a ${status} delivery`, deliveries, ([first]) => first?.status === status);

const mailsOnce = (): Promise<ReceivedMail[]> =>
  until(
    'the mail',
    async () => mails.received,
    (all) => all.length > 0,
  );

it('a weekly schedule that fires has its report mailed once, as the PDF that the API serves', async () => {
  await fireWeekly();
  const [mail] = await mailsOnce();
  expect(mail?.to).toEqual(['finance@example.com']);
  expect(mail?.headers.subject).toBe('Trueup: The weekly report for 2026-01-05 to 2026-01-11 is ready.');
  expect(mail?.raw).toContain(`filename=${FILE}`);
  const { body } = await api.get(REPORTS, org.adminKey);
  expect(body.reports).toHaveLength(1);
  const served = await fetch(`${api.baseUrl}${REPORTS}/${body.reports[0].id}`, {
    headers: { authorization: `Bearer ${org.adminKey}` },
  });
  const pdf = Buffer.from(await served.arrayBuffer());
  expect(pdf.subarray(0, 5).toString()).toBe('%PDF-');
  expect(mail?.raw.replaceAll('\r\n', '')).toContain(pdf.toString('base64'));
  await deliveryOf('delivered');
  expect(mails.received).toHaveLength(1);
});

it('a mail server that is busy for a time gets the scheduled report later, once', async () => {
  mails.refuseWith({ code: 450, text: 'try again later' });
  await fireWeekly();
  await until('a refused attempt', deliveries, ([first]) => (first?.attempts ?? 0) >= 1);
  expect(mails.received).toEqual([]);
  mails.refuseWith(undefined);
  const [mail] = await mailsOnce();
  expect(mail?.raw).toContain(`filename=${FILE}`);
  await deliveryOf('delivered');
  expect(mails.received).toHaveLength(1);
});

it('an address that is refused fails the delivery of a scheduled report, which stays in the list', async () => {
  mails.refuseWith({ code: 550, text: 'no such user' });
  await fireWeekly();
  await deliveryOf('failed');
  expect(mails.received).toEqual([]);
  expect((await api.get(REPORTS, org.adminKey)).body.reports).toHaveLength(1);
});
