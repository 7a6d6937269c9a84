import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestApi, type TestApi } from '../support/api.js';
import { CostCalculator } from './costCalculator.js';
import { sendCaptured } from './support/captureServer.js';
import { expectedOfPython } from './support/expectedOfPython.js';
import { expectEvents, readEvents } from './support/observedEvents.js';
import { PYTHON_CLIENTS } from './support/pythonClients.js';
import { readRecording } from './support/recordings.js';

const calculator = new CostCalculator(new URL('../../data/prices.json', import.meta.url));

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api?.close());

/** Bearer as exporters send it, Basic on Langfuse's path. */
function authorization(path: string, ingestKey: string): string {
  if (!path.startsWith('/api/public/')) return `Bearer ${ingestKey}`;
  return `Basic ${Buffer.from(`pk-lf-any:${ingestKey}`).toString('base64')}`;
}

describe('recorded requests of real Python clients, replayed', () => {
  it.each(PYTHON_CLIENTS)(
    'each call that $name reports is one event, with its classes and its cost, however often it is sent',
    async (client) => {
      const { plan, requests, recordedAt } = readRecording(client.recording);
      const { ingestKey, adminKey } = await api.addOrganization(client.name);
      const atMillis = Date.parse(recordedAt);
      const accepted: number[] = [];
      for (const request of [...requests, ...requests]) {
        const answer = await sendCaptured(api.baseUrl, request, authorization(request.path, ingestKey));
        accepted.push(answer.status);
        await answer.arrayBuffer();
      }
      expect(new Set(accepted)).toEqual(new Set([client.isLegacy ? 207 : 202]));
      const events = await readEvents(api.baseUrl, adminKey, atMillis);
      expectEvents(events, expectedOfPython(client, plan, calculator, atMillis));
    },
  );
});
