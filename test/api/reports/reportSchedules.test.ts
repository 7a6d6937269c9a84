import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApi, type TestApi } from '../../support/api.js';
import { REPORTS_PATH } from '../../support/reports.js';
import { sendJson } from '../support/requests.js';

let api: TestApi;
/** Without a mail server. */
let mailless: TestApi;
beforeAll(async () => {
  api = await startTestApi({ deliverMail: () => Promise.reject(new Error('no mail is sent here')) });
  mailless = await startTestApi({ database: api.database });
}, 300_000);
afterAll(async () => {
  await mailless?.close();
  await api?.close();
});

const put = (cadence: string, json: object, key = api.adminKey) =>
  sendJson(api, { method: 'PUT', path: `${REPORTS_PATH}/schedules/${cadence}`, key, json });

it('keeps a schedule as it was put, with the organization’s time zone where none is named', async () => {
  const { adminKey } = await api.addOrganization();
  await sendJson(api, {
    ...{ method: 'PATCH', path: '/api/v1/organization/settings', key: adminKey },
    json: { time_zone: 'Europe/Oslo' },
  });
  const deliveries = [{ type: 'webhook' }, { type: 'email', to: 'finance@example.com' }];
  const made = await put('weekly', { sections: ['spend'], deliveries }, adminKey);
  expect(made.status).toBe(200);
  expect(made.body).toMatchObject({
    ...{ cadence: 'weekly', sections: ['spend'], time_zone: 'Europe/Oslo', deliveries },
    next: { period_from: expect.any(String), due_at: expect.any(String) },
  });
  const read = (await api.get(`${REPORTS_PATH}/schedules/weekly`, adminKey)).body;
  expect(read).toEqual(made.body);
  const changed = await put('weekly', { time_zone: 'Asia/Tokyo' }, adminKey);
  expect(changed.body).toMatchObject({ time_zone: 'Asia/Tokyo', deliveries: [] });
  expect(changed.body.sections).toHaveLength(5);
  expect(changed.body.next.period_from).toBe(read.next.period_from);
  expect((await api.get(`${REPORTS_PATH}/schedules/monthly`, adminKey)).body.code).toBe('not_found');
});

it('refuses mail where the service has no mail server, and names the setting', async () => {
  const json = { deliveries: [{ type: 'email', to: 'finance@example.com' }] };
  const path = `${REPORTS_PATH}/schedules/weekly`;
  const { status, body } = await sendJson(mailless, { method: 'PUT', path, key: mailless.adminKey, json });
  expect([status, body.code]).toEqual([409, 'mail_not_configured']);
  expect(body.detail).toContain('SMTP_URL');
});

it.each([
  ['another cadence', 'daily', {}, 'invalid_parameter'],
  ['a zone that there is not', 'weekly', { time_zone: 'Mars/Olympus' }, 'invalid_body'],
  ['no section', 'weekly', { sections: [] }, 'invalid_body'],
  ['mail to nobody', 'weekly', { deliveries: [{ type: 'email' }] }, 'invalid_body'],
  ['mail to no address', 'weekly', { deliveries: [{ type: 'email', to: 'a b' }] }, 'invalid_body'],
  ['another way', 'weekly', { deliveries: [{ type: 'fax' }] }, 'invalid_body'],
])('refuses %s', async (_name, cadence, body, code) => {
  expect((await put(cadence, body)).body).toMatchObject({ status: 400, code });
});
