import { afterAll, beforeAll, expect, it } from 'vitest';
import { shiftDay } from '../../../domain/period.js';
import { readCalls, SAMPLES_MAX } from '../../../usecases/claims/evidenceCalls.js';
import { anEvent, ingestMany } from '../../api/support/requests.js';
import { startTestApi, type TestApi } from '../../support/api.js';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api?.close());

it('samples calls of every disputed model, also behind many days of another one', async () => {
  const org = await api.addOrganization();
  const first = shiftDay(new Date().toISOString().slice(0, 10), -27);
  const days = Array.from({ length: 25 }, (_, at) => shiftDay(first, at));
  const account = { provider: 'openai', provider_account_id: 'org-1' };
  const call = (model: string, day: string, hour: number) =>
    anEvent({ ...account, model, timestamp: `${day}T0${hour}:00:00Z` });
  const events = days.flatMap((day) => [1, 2, 3].map((hour) => call('gpt-4o', day, hour)));
  await ingestMany(api, [...events, call('o3', first, 4), call('o3', first, 5)], org.ingestKey);
  const of = (model: string, day: string) => ({
    ...{ provider: 'openai', accountId: 'org-1', model, models: [model], day, offsetHours: 0 },
  });
  const { samples } = await org.orgDb.transaction((inside) =>
    readCalls(inside, [...days.map((day) => of('gpt-4o', day)), of('o3', first)], false),
  );
  expect(samples).toHaveLength(SAMPLES_MAX);
  expect(samples.filter(({ model }) => model === 'o3')).toHaveLength(1);
  expect(new Set(samples.map(({ day }) => day)).size).toBe(days.length);
});
