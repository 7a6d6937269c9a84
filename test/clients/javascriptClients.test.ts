import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testSeed } from '../fakes/seededRandom.js';
import { startTestApi, type TestApi } from '../support/api.js';
import { CostCalculator } from './costCalculator.js';
import type { ClientCase } from './support/clientCase.js';
import { type ClientOutcome, runClient } from './support/clientRun.js';
import { drawPlan } from './support/drawPlan.js';
import { expectedEvents, refusedCalls } from './support/expectedEvents.js';
import { JAVASCRIPT_CLIENTS, JAVASCRIPT_PAIRS } from './support/javascriptClients.js';
import { expectEvents, readEvents } from './support/observedEvents.js';

const seed = testSeed();
const calculator = new CostCalculator(new URL('../../data/prices.json', import.meta.url));
const CLIENT_TIME_MS = 60_000;

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api?.close());

/** A client makes the calls of a plan and tells a new organization of Trueup about them. */
async function tell(client: ClientCase) {
  const organization = await api.addOrganization(client.name);
  const plan = drawPlan(seed, client.scope);
  const outcome = await runClient({
    program: client.program,
    plan,
    environment: client.environment(api.baseUrl, organization.ingestKey),
  });
  const events = await readEvents(api.baseUrl, organization.adminKey, Date.now());
  return { organization, plan, outcome, events };
}

interface Source {
  service: string;
  scope: string;
  rejected: Record<string, number>;
}

/** What was refused, by reason, as ingest health tells it. */
async function countRejected(adminKey: string): Promise<Record<string, number>> {
  const { body } = await api.get('/api/v1/ingest/health', adminKey);
  const counts: Record<string, number> = {};
  for (const { rejected } of body.sources as Source[]) {
    for (const [reason, count] of Object.entries(rejected)) counts[reason] = (counts[reason] ?? 0) + count;
  }
  return counts;
}

/** A call without a word of its provider, of a model that no list knows, is refused and counted. */
function rejectedAs(calls: number): Record<string, number> {
  return calls === 0 ? {} : { unknown_provider: calls };
}

/** The application saw what was planned: refused calls fail, retried ones do not, left streams are left. */
function expectFates(outcome: ClientOutcome, calls: number): void {
  const answered = new Set(
    outcome.journal.filter((entry) => entry.httpStatus === 200).map((entry) => entry.callId),
  );
  const refused = new Set(outcome.journal.map((entry) => entry.callId));
  for (const id of answered) refused.delete(id);
  expect(answered.size + refused.size).toBe(calls);
  expect(outcome.failures).toBeGreaterThanOrEqual(refused.size);
}

describe(`real JavaScript clients, unmodified (TEST_SEED=${seed})`, () => {
  it.each(JAVASCRIPT_CLIENTS)(
    'each call that $name tells is one event, with its classes and its cost to the last digit',
    async (client) => {
      const { organization, plan, outcome, events } = await tell(client);
      expectFates(outcome, plan.length);
      expectEvents(events, expectedEvents(plan, client.facts, calculator, Date.now()));
      expect(await countRejected(organization.adminKey)).toEqual(
        rejectedAs(refusedCalls(plan, client.facts, calculator, Date.now())),
      );
    },
    CLIENT_TIME_MS,
  );

  it.each(JAVASCRIPT_PAIRS)(
    '$name: two spans of a call are one event, the richer telling counts',
    async (client) => {
      const { plan, outcome, events } = await tell(client);
      expectFates(outcome, plan.length);
      expectEvents(events, expectedEvents(plan, client.facts, calculator, Date.now()));
    },
    CLIENT_TIME_MS,
  );
});
