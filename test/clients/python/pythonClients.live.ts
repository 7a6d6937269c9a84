/**
 * Runs the Python clients themselves, through a server that records what they send, against a running Trueup; checks
 * the events and keeps the recordings that the suite replays. `npm run test:python-clients`; needs python3.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { testSeed } from '../../fakes/seededRandom.js';
import { startTestApi, type TestApi } from '../../support/api.js';
import { CostCalculator } from '../costCalculator.js';
import { startCaptureServer } from '../support/captureServer.js';
import { runClient } from '../support/clientRun.js';
import { drawPlan } from '../support/drawPlan.js';
import { expectedOfPython } from '../support/expectedOfPython.js';
import { expectEvents, readEvents } from '../support/observedEvents.js';
import { PYTHON_CLIENTS } from '../support/pythonClients.js';
import { writeRecording } from '../support/recordings.js';

const FOLDER = fileURLToPath(new URL('.', import.meta.url));
/** Environments of versions that exclude each other, with their packages. */
const VENVS = { '.venv': 'requirements.txt', '.venv-legacy': 'requirements-legacy.txt' };
const INSTALL_TIME_MS = 600_000;
const CLIENT_TIME_MS = 60_000;
const seed = testSeed();
const calculator = new CostCalculator(new URL('../../../data/prices.json', import.meta.url));

let api: TestApi;
beforeAll(async () => {
  for (const [venv, file] of Object.entries(VENVS)) {
    if (!existsSync(`${FOLDER}${venv}/bin/pip`)) execFileSync('python3', ['-m', 'venv', `${FOLDER}${venv}`]);
    const requirements = ['install', '--quiet', '--requirement', `${FOLDER}${file}`];
    execFileSync(`${FOLDER}${venv}/bin/pip`, requirements, { stdio: 'inherit' });
  }
  mkdirSync(`${FOLDER}fixtures`, { recursive: true });
  api = await startTestApi();
}, INSTALL_TIME_MS);
afterAll(() => api?.close());

describe(`real Python clients, unmodified (TEST_SEED=${seed})`, () => {
  it.each(PYTHON_CLIENTS)(
    'each call that $name reports is one event, with its classes and its cost to the last digit',
    async (client) => {
      const { ingestKey, adminKey } = await api.addOrganization(client.name);
      const plan = drawPlan(seed, client.scope);
      const capture = await startCaptureServer(api.baseUrl);
      const atMillis = Date.now();
      try {
        await runClient({
          program: client.program,
          venv: client.isLegacy ? '.venv-legacy' : undefined,
          plan,
          environment: client.environment(capture.baseUrl, ingestKey),
        });
      } finally {
        await capture.close();
      }
      const recordedAt = new Date(atMillis).toISOString();
      writeRecording(client.recording, { seed, recordedAt, plan, requests: capture.requests });
      const events = await readEvents(api.baseUrl, adminKey, atMillis);
      expectEvents(events, expectedOfPython(client, plan, calculator, atMillis));
    },
    CLIENT_TIME_MS,
  );
});
