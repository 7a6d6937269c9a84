import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PlannedCall } from '../fakes/plannedCall.js';
import { testSeed } from '../fakes/seededRandom.js';
import { startTestApi, type TestApi } from '../support/api.js';
import { CostCalculator, sumUsd } from './costCalculator.js';
import { type ClientCase, otlp, planScope } from './support/clientCase.js';
import { OTEL_OPENAI } from './support/clientFacts.js';
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

/** Instrumentations whose span of a helped stream has neither trace nor response id in common with the SDK's own. */
const UNLINKED_PAIRS = [
  {
    program: 'openInferenceAnthropic.cjs',
    scopes: ['@arizeai/openinference-instrumentation-anthropic', 'com.anthropic.sdk.typescript'],
  },
  {
    program: 'traceloopAnthropic.cjs',
    scopes: ['@traceloop/instrumentation-anthropic', 'com.anthropic.sdk.typescript'],
  },
];
const HELPED_STREAMS = 8;

/** Calls by `messages.stream()`, enough of them to be no coincidence. */
function helpedStreams(from: number): PlannedCall[] {
  const scope = planScope(['messages'], { hasStreamHelper: true });
  return Array.from({ length: HELPED_STREAMS }, (_, index) => drawPlan(from + index, scope))
    .flatMap((plan) => plan.filter((call) => call.isStreamHelper))
    .map((call, index) => ({ ...call, id: `call-${index + 1}`, batch: index }));
}

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
      const { body } = await api.get('/api/v1/usage/summary', organization.adminKey);
      expect(body.total_cost_usd).toBe(Number(sumUsd(events.map((event) => event.usd))));
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

  it(
    'a client library pointed at another host is billed by nobody we know, and still counted',
    async () => {
      const organization = await api.addOrganization('gateway');
      const plan = drawPlan(seed, planScope(['chat']));
      await runClient({
        program: 'otelOpenAi.cjs',
        plan,
        environment: otlp('http/json', 'none')(api.baseUrl, organization.ingestKey),
        openAiHost: 'llm-gateway.example',
      });
      const events = await readEvents(api.baseUrl, organization.adminKey, Date.now());
      const expected = expectedEvents(plan, OTEL_OPENAI, calculator, Date.now());
      expect(events.map(({ billed_by, provider }) => `${provider} ${billed_by}`)).toEqual(
        expected.map(() => 'openai unknown'),
      );
    },
    CLIENT_TIME_MS,
  );

  it.each(UNLINKED_PAIRS)(
    'what only time and tokens link ($program: messages.stream()) is told of by ingest health, not merged',
    async ({ program, scopes }) => {
      const organization = await api.addOrganization(program);
      const plan = helpedStreams(seed);
      await runClient({
        program,
        plan,
        environment: otlp('http/json', 'none')(api.baseUrl, organization.ingestKey),
      });
      const events = await readEvents(api.baseUrl, organization.adminKey, Date.now());
      expect(events).toHaveLength(2 * plan.length);
      const { body } = await api.get('/api/v1/ingest/health', organization.adminKey);
      expect(body.instrumented_twice).toEqual([
        expect.objectContaining({ service: program.replace('.cjs', ''), scopes, calls: plan.length }),
      ]);
    },
    CLIENT_TIME_MS,
  );
});
