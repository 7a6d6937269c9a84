import { afterAll, beforeAll, expect, it } from 'vitest';
import { listObservedSources } from '../../../db/events/observedCalls.js';
import { anEvent, ingest } from '../../api/support/requests.js';
import { startTestApi, type TestApi } from '../../support/api.js';

let api: TestApi;

beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const DAY = '2026-03-01';
const MODEL = 'gpt-4o';

it('counts of each service the calls whose answer names its model, and the attempts that the provider refused', async () => {
  const call = (over: object) =>
    anEvent({
      provider: 'openai',
      model: MODEL,
      timestamp: `${DAY}T10:00:00Z`,
      ...over,
    });
  const failed = { status: 'error', response_model: null };
  await ingest(api, [
    call({ response_model: MODEL }),
    call({ response_model: MODEL }),
    call({ response_model: null }),
    call({ ...failed, http_status: 429 }),
    call({ ...failed, http_status: 200 }),
    call({ ...failed, http_status: null }),
    call({ model: 'gpt-4o-mini', response_model: null }),
  ]);
  const sources = await listObservedSources(api.orgDb, {
    provider: 'openai',
    day: DAY,
  });
  const [models] = [...sources.values()];
  const told = { serviceName: '', callsWithoutCache: 0 };
  expect(models?.get(MODEL)).toEqual([{ ...told, calls: 6, namedByAnswer: 2, refused: 1 }]);
  expect(models?.get('gpt-4o-mini')).toEqual([{ ...told, calls: 1 }]);
});
