import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApi, type TestApi } from '../../support/api.js';
import { send } from '../support/requests.js';

const RUNS = '/api/v1/enforcement/savings/runs';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

it('A savings run of the last 30 days is asked for without a body as with an empty one, and is the same run', async () => {
  const { adminKey: key } = await api.addOrganization();
  const bare = await send(api, { method: 'POST', path: RUNS, key });
  expect(bare.status).toBe(202);
  expect(bare.body).toMatchObject({ kind: 'savings_run', status: 'queued', standard: true });
  const again = await api.post(RUNS, {}, key);
  expect([again.status, again.body.id, again.body.existing]).toEqual([202, bare.body.id, true]);
});

it('A status that no run can have is refused with those that it can', async () => {
  const { status, body } = await api.get(`${RUNS}?status=done`, api.adminKey);
  expect([status, body.detail]).toEqual([
    400,
    'status: must be one of queued, running, succeeded, partial, failed, cancelled',
  ]);
});
