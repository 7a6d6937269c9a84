/**
 * The official Python clients themselves, observed by trueup-sdk and not: equal answers, equal requests, and each call
 * one event with its exact cost. Keeps the recordings that the slow suite replays. `npm run test:python-clients`.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startAnthropicFake } from '../../fakes/anthropicFake.js';
import { startOpenAiFake } from '../../fakes/openAiFake.js';
import { testSeed } from '../../fakes/seededRandom.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { CostCalculator } from '../costCalculator.js';
import { startCaptureServer } from '../support/captureServer.js';
import { planScope } from '../support/clientCase.js';
import { drawPlan } from '../support/drawPlan.js';
import { expectEvents, readEvents } from '../support/observedEvents.js';
import { writeRecording } from '../support/recordings.js';
import { SDK_CASES } from '../support/sdkCases.js';
import {
  CLIENT_VERSIONS,
  type ClientKind,
  expectedOfSdkPlan,
  expectSdkEvents,
  installClients,
  runSdkCase,
  runSdkProgram,
} from '../support/sdkRuns.js';

const INSTALL_TIME_MS = 300_000;
const CASE_TIME_MS = 120_000;
const KINDS: readonly ClientKind[] = ['sync', 'async'];
const seed = testSeed();
const calculator = new CostCalculator(new URL('../../../data/prices.json', import.meta.url));
const plan = drawPlan(
  seed,
  planScope(['chat', 'responses', 'embeddings', 'messages'], { hasStreamHelper: true }),
);

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api?.close());

async function runPlan(python: string, environment: Record<string, string>) {
  const [openAi, anthropic] = [await startOpenAiFake(plan), await startAnthropicFake(plan)];
  try {
    const settings = {
      plan,
      openAiBaseUrl: `http://api.openai.com:${openAi.port}/v1`,
      anthropicBaseUrl: `http://api.anthropic.com:${anthropic.port}`,
    };
    return JSON.parse(await runSdkProgram(python, 'trueup_sdk_plan.py', settings, environment));
  } finally {
    await Promise.all([openAi.close(), anthropic.close()]);
  }
}

for (const version of CLIENT_VERSIONS) {
  describe(`the official Python clients ${version.name} in trueup-sdk (TEST_SEED=${seed})`, () => {
    let python: string;
    beforeAll(() => {
      python = installClients(version);
    }, INSTALL_TIME_MS);

    it.each(KINDS)(
      '%s: a drawn plan of calls has the same answers with and without it, and the exact costs',
      async (kind) => {
        const { ingestKey, adminKey } = await api.addOrganization(`plan ${kind}`);
        const capture = await startCaptureServer(api.baseUrl);
        const environment = { TRUEUP_URL: capture.baseUrl, TRUEUP_KEY: ingestKey, KIND: kind };
        const atMillis = Date.now();
        try {
          const plain = await runPlan(python, environment);
          const observed = await runPlan(python, { ...environment, OBSERVED: '1' });
          expect(observed.seen).toEqual(plain.seen);
          expect(plain.seen).toHaveLength(plan.length);
          expect(observed.stats).toMatchObject({ recorded: plan.length, sent: plan.length, dropped: 0 });
        } finally {
          await capture.close();
        }
        const events = await readEvents(api.baseUrl, adminKey, atMillis);
        expectEvents(events, expectedOfSdkPlan(plan, calculator, atMillis));
        if (kind === 'sync' && version === CLIENT_VERSIONS[1]) {
          const recordedAt = new Date(atMillis).toISOString();
          writeRecording('trueup-sdk-plan', { seed, recordedAt, plan, requests: capture.requests });
        }
      },
      CASE_TIME_MS,
    );

    const runs = SDK_CASES.flatMap((one) =>
      KINDS.filter((kind) => kind === 'sync' || !one.isSyncOnly).map((kind) => ({
        name: one.name,
        one,
        kind,
      })),
    );
    it.each(runs)(
      '$name, $kind: equal answers and requests with and without it, and each call is one event',
      async ({ one, kind }) => {
        const { ingestKey, adminKey } = await api.addOrganization(`${one.name} ${kind}`);
        const capture = await startCaptureServer(api.baseUrl);
        const atMillis = Date.now();
        const createdAt = Math.floor(atMillis / 1_000);
        const trueup = { TRUEUP_URL: capture.baseUrl, TRUEUP_KEY: ingestKey };
        try {
          const plain = await runSdkCase(python, one, { kind, isObserved: false, createdAt }, trueup);
          const observed = await runSdkCase(python, one, { kind, isObserved: true, createdAt }, trueup);
          expect(observed.seen).toBe(plain.seen);
          expect(observed.requests).toEqual(plain.requests);
        } finally {
          await capture.close();
        }
        const events = await readEvents(api.baseUrl, adminKey, atMillis);
        expectSdkEvents(events, one, atMillis, calculator);
        if (kind === 'sync' && version === CLIENT_VERSIONS[1]) {
          const recordedAt = new Date(atMillis).toISOString();
          writeRecording(`trueup-sdk-${one.name}`, {
            seed: 0,
            recordedAt,
            plan: [],
            requests: capture.requests,
          });
        }
      },
      CASE_TIME_MS,
    );
  });
}
