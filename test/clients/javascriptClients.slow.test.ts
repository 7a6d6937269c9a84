import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadPriceBook } from '../../db/pricing/prices.js';
import { sweepTraces } from '../../usecases/events/traceSweep.js';
import { isAnswered, type PlannedCall } from '../fakes/plannedCall.js';
import { testSeed } from '../fakes/seededRandom.js';
import { startTestApi, type TestApi } from '../support/api.js';
import { untilNothingHoldsBack } from '../support/horizon.js';
import { CostCalculator, sumUsd } from './costCalculator.js';
import { type ClientCase, otlp, planScope } from './support/clientCase.js';
import { ANTHROPIC_SDK, OTEL_OPENAI } from './support/clientFacts.js';
import { type ClientOutcome, runClient } from './support/clientRun.js';
import { drawPlan } from './support/drawPlan.js';
import { expectedEvents, refusedCalls, responseIdOf } from './support/expectedEvents.js';
import { expectExplained } from './support/explainedCosts.js';
import { JAVASCRIPT_CLIENTS, JAVASCRIPT_PAIRS } from './support/javascriptClients.js';
import { expectEvents, type ObservedEvent, readEvents } from './support/observedEvents.js';

const seed = testSeed();
const calculator = new CostCalculator(new URL('../../data/prices.json', import.meta.url));
const CLIENT_TIME_MS = 180_000;

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api?.close());

/** Instrumentations whose span of a helped stream shares neither trace nor response id with the SDK's span. */
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

/** Sweeps until every span was visited: an exporter may send the spans of a call in two requests. */
async function sweepAll(): Promise<void> {
  const { database, superuser } = api.database;
  const prices = await loadPriceBook(database);
  await untilNothingHoldsBack(superuser);
  while ((await sweepTraces(database, { of: async () => prices })).more);
}

/** Calls by `messages.stream()`, several of them. */
function helpedStreams(from: number): PlannedCall[] {
  const scope = planScope(['messages'], { hasStreamHelper: true });
  return Array.from({ length: HELPED_STREAMS }, (_, index) => drawPlan(from + index, scope))
    .flatMap((plan) => plan.filter((call) => call.isStreamHelper))
    .map((call, index) => ({ ...call, id: `call-${index + 1}`, batch: index }));
}

/** A client makes the calls of a plan and reports them to a new organization of Trueup. */
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
  calls: number;
  unmetered: number;
  rejected: Record<string, number>;
}

/** Ingest health and totals agree with the events of a client's traffic. */
async function expectTotals(
  adminKey: string,
  events: readonly ObservedEvent[],
  due: { calls: number; unmetered: number; refused: number },
): Promise<void> {
  const health = await api.get('/api/v1/ingest/health', adminKey);
  const seen = { calls: 0, unmetered: 0, refused: 0 };
  for (const { calls, unmetered, rejected } of health.body.sources as Source[]) {
    seen.calls += calls;
    seen.unmetered += unmetered;
    expect(Object.keys(rejected).filter((reason) => reason !== 'unknown_provider')).toEqual([]);
    seen.refused += rejected.unknown_provider ?? 0;
  }
  expect(seen).toEqual(due);
  const summary = await api.get('/api/v1/usage/summary', adminKey);
  expect(summary.body.total_cost_usd).toBe(Number(sumUsd(events.map((event) => event.usd))));
}

/** The other report of each answered call is kept, out of the list, and names the event that counts. */
async function expectSuperseded(
  adminKey: string,
  events: readonly ObservedEvent[],
  plan: readonly PlannedCall[],
): Promise<void> {
  const all = await api.get('/api/v1/events?limit=1000&include_superseded=true', adminKey);
  const superseded = (all.body.events as ObservedEvent[]).filter((event) => event.superseded_by !== null);
  const answered = new Set(plan.filter(isAnswered).map(responseIdOf));
  const standing = events.filter((event) => answered.has(event.request_id)).map((event) => event.id);
  const replaced = new Set(superseded.map((event) => event.superseded_by));
  expect(standing.filter((id) => !replaced.has(id))).toEqual([]);
}

/**
 * Checks that the application saw the planned fates: refused calls fail, retried ones do not, aborted streams are
 * aborted.
 */
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
    'each call that $name reports is one event, with its classes and its cost to the last digit',
    async (client) => {
      const { organization, plan, outcome, events } = await tell(client);
      expectFates(outcome, plan.length);
      // The clients of Langfuse report there what the service refuses.
      expect(outcome.stderr).not.toContain('[Langfuse SDK]');
      const expected = expectedEvents(plan, client.facts, calculator, Date.now());
      expectEvents(events, expected);
      await expectTotals(organization.adminKey, events, {
        calls: expected.length,
        unmetered: expected.filter((event) => event.telling === 'unmetered').length,
        refused: refusedCalls(plan, client.facts, calculator, Date.now()),
      });
      await expectExplained(api, organization.adminKey, events);
    },
    CLIENT_TIME_MS,
  );

  it.each(JAVASCRIPT_PAIRS)(
    '$name: two spans of a call are one event, and the richer report counts',
    async (client) => {
      const { organization, plan, outcome, events } = await tell(client);
      expectFates(outcome, plan.length);
      const expected = expectedEvents(plan, client.facts, calculator, Date.now());
      expectEvents(events, expected);
      await expectTotals(organization.adminKey, events, {
        calls: expected.length,
        unmetered: 0,
        refused: 0,
      });
      await expectSuperseded(organization.adminKey, events, plan);
    },
    CLIENT_TIME_MS,
  );

  it(
    'a client library pointed at another host has an unknown biller, and is still counted',
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
    'calls that only process, time and tokens link ($program: messages.stream()) are paired, each one event',
    async ({ program, scopes }) => {
      const organization = await api.addOrganization(program);
      const plan = helpedStreams(seed);
      await runClient({
        program,
        plan,
        environment: {
          ...otlp('http/json', 'none')(api.baseUrl, organization.ingestKey),
          OTEL_RESOURCE_ATTRIBUTES: 'service.instance.id=one',
        },
      });
      await sweepAll();
      const events = await readEvents(api.baseUrl, organization.adminKey, Date.now());
      expectEvents(events, expectedEvents(plan, ANTHROPIC_SDK, calculator, Date.now()));
      const { body } = await api.get('/api/v1/ingest/health', organization.adminKey);
      expect(body.instrumented_twice).toEqual([]);
      expect(body.paired_reports).toEqual([
        expect.objectContaining({
          service: program.replace('.cjs', ''),
          scopes: [...scopes].reverse(),
          pairs: plan.length,
          leftovers: 0,
        }),
      ]);
    },
    CLIENT_TIME_MS,
  );
});
