import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApi, type TestApi } from '../../support/api.js';
import { anEndpoint, sendMessages } from '../../support/webhooks.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api?.close());

const metric = async (name: string): Promise<number> => {
  const text = await (await fetch(`${api.baseUrl}/metrics`)).text();
  const line = text.split('\n').find((found) => found.startsWith(`${name} `));
  return Number(line?.slice(name.length));
};
const perHour = (answer: string) => metric(`trueup_webhook_attempts_per_hour{answer="${answer}"}`);

it('show what is still to be delivered, how late it is, and what receivers have answered in the last hour', async () => {
  expect(await metric('trueup_webhook_deliveries_pending')).toBe(0);
  expect(await metric('trueup_webhook_overdue_seconds')).toBe(0);
  await anEndpoint(api, 'https://hooks.example.com/');
  await sendMessages(api, 3);
  const { superuser } = api.database;
  await superuser.query(`update webhook_deliveries set next_attempt_at = now() - interval '5 minutes'`);
  const attempts: [number | null, string, number | null][] = [
    [204, '1 minute', 20],
    [410, '1 minute', 20],
    [308, '1 minute', 20],
    [404, '1 minute', 20],
    [500, '1 minute', 20],
    [null, '1 minute', 15_000],
    [null, '2 minutes', 15_000],
    // Not counted: one that is in progress, and one that ended long ago.
    [null, '1 second', null],
    [204, '2 hours', 20],
  ];
  for (const [number, [status, ago, durationMs]] of attempts.entries())
    await superuser.query(
      `insert into webhook_attempts (org_id, delivery_id, number, started_at, http_status, duration_ms)
       select org_id, id, $1, now() - $2::interval, $3, $4 from webhook_deliveries order by id limit 1`,
      [number + 1, ago, status, durationMs],
    );
  expect(await metric('trueup_webhook_deliveries_pending')).toBe(3);
  expect(await metric('trueup_webhook_overdue_seconds')).toBeGreaterThanOrEqual(300);
  const answers = ['delivered', 'gone', 'redirected', 'rejected', 'failed', 'unanswered'];
  expect(await Promise.all(answers.map(perHour))).toEqual([1, 1, 1, 1, 1, 2]);
});
