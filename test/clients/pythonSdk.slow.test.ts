import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.js';
import { CostCalculator } from './costCalculator.js';
import { sendCaptured } from './support/captureServer.js';
import { expectEvents, readEvents } from './support/observedEvents.js';
import { readRecording } from './support/recordings.js';
import { SDK_CASES } from './support/sdkCases.js';
import { expectedOfSdkPlan, expectSdkEvents } from './support/sdkRuns.js';

const calculator = new CostCalculator(new URL('../../data/prices.json', import.meta.url));

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api?.close());

async function replay(recording: string) {
  const { requests, recordedAt, plan } = readRecording(recording);
  const { ingestKey, adminKey } = await api.addOrganization(recording);
  expect(requests.length).toBeGreaterThan(0);
  for (const request of [...requests, ...requests]) {
    const answer = await sendCaptured(api.baseUrl, request, `Bearer ${ingestKey}`);
    expect(answer.status).toBe(202);
    await answer.arrayBuffer();
  }
  const atMillis = Date.parse(recordedAt);
  return { events: await readEvents(api.baseUrl, adminKey, atMillis), plan, atMillis };
}

describe('recorded reports of the Python package, replayed', () => {
  it.each(SDK_CASES)(
    '$name: each call is one event with its exact cost, however often it is sent',
    async (one) => {
      const { events, atMillis } = await replay(`trueup-sdk-${one.name}`);
      expectSdkEvents(events, one, atMillis, calculator);
    },
  );

  it('a drawn plan of calls: each one is one event with its exact cost, however often it is sent', async () => {
    const { events, plan, atMillis } = await replay('trueup-sdk-plan');
    expect(plan.length).toBeGreaterThan(20);
    expectEvents(events, expectedOfSdkPlan(plan, calculator, atMillis));
  });
});
