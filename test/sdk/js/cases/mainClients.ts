import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Trueup } from '../../../../sdk/js/src/node.js';
import { CostCalculator } from '../../../clients/costCalculator.js';
import { planScope } from '../../../clients/support/clientCase.js';
import { TRUEUP_SDK_ANTHROPIC, TRUEUP_SDK_OPENAI } from '../../../clients/support/clientFacts.js';
import { drawPlan } from '../../../clients/support/drawPlan.js';
import { expectedEvents } from '../../../clients/support/expectedEvents.js';
import { expectEvents, readEvents } from '../../../clients/support/observedEvents.js';
import { startAnthropicFake } from '../../../fakes/anthropicFake.js';
import type { FakeProvider } from '../../../fakes/fakeProvider.js';
import { startOpenAiFake } from '../../../fakes/openAiFake.js';
import type { PlannedCall } from '../../../fakes/plannedCall.js';
import { testSeed } from '../../../fakes/seededRandom.js';
import { startTestApi, type TestApi } from '../../../support/api.js';
import type { Anthropic, LoadClients, OfficialClients, OpenAI } from './officialClients.js';

const seed = testSeed();
const calculator = new CostCalculator(new URL('../../../../data/prices.json', import.meta.url));
const plan = drawPlan(
  seed,
  planScope(['chat', 'responses', 'embeddings', 'messages'], { hasStreamHelper: true }),
);

let api: TestApi;
let clients: OfficialClients;

/** Sends requests for the provider's own host to the fake, as a name server would. */
function fetchTo(fake: FakeProvider): typeof fetch {
  return (input, init) => {
    const { pathname, search } = new URL(String(input));
    return fetch(`${fake.origin}${pathname}${search}`, init);
  };
}

/** An application's view of its calls: answers, chunks of streams, errors. */
async function makeCalls(openAi: OpenAI, anthropic: Anthropic): Promise<string[]> {
  const seen: string[] = [];
  for (const call of plan) {
    try {
      seen.push(JSON.stringify(await answerOf(call, openAi, anthropic)));
    } catch (error) {
      seen.push(`${(error as Error).constructor.name} ${(error as { status?: number }).status}`);
    }
  }
  return seen;
}

async function answerOf(call: PlannedCall, openAi: OpenAI, anthropic: Anthropic): Promise<unknown> {
  const { model, isStream } = call;
  const content = `Please do ${call.id}`;
  const messages = [{ role: 'user' as const, content }];
  switch (call.api) {
    case 'embeddings':
      return openAi.embeddings.create({ model, input: content });
    case 'chat': {
      const usage = call.asksForUsage ? { stream_options: { include_usage: true } } : {};
      if (!isStream) return openAi.chat.completions.create({ model, messages });
      return chunksOf(
        await openAi.chat.completions.create({ model, messages, stream: true, ...usage }),
        call,
      );
    }
    case 'responses':
      if (!isStream) return openAi.responses.create({ model, input: content });
      return chunksOf(await openAi.responses.create({ model, input: content, stream: true }), call);
    case 'messages': {
      const body = { model, max_tokens: 64, messages };
      if (call.isStreamHelper) {
        const stream = anthropic.messages.stream(body);
        return call.fate === 'abort' ? chunksOf(stream, call) : stream.finalMessage();
      }
      if (!isStream) return anthropic.messages.create(body);
      return chunksOf(await anthropic.messages.create({ ...body, stream: true }), call);
    }
  }
}

async function chunksOf(
  stream: AsyncIterable<unknown> & { controller: AbortController },
  call: PlannedCall,
): Promise<unknown[]> {
  const chunks: unknown[] = [];
  for await (const chunk of stream) {
    chunks.push(chunk);
    if (call.fate === 'abort' && chunks.length === 2) {
      stream.controller.abort();
      break;
    }
  }
  return chunks;
}

async function withFakes<T>(work: (openAi: OpenAI, anthropic: Anthropic) => Promise<T>): Promise<T> {
  const fakes = [await startOpenAiFake(plan), await startAnthropicFake(plan)] as const;
  try {
    return await work(
      new clients.OpenAI({ apiKey: 'sk-test', fetch: fetchTo(fakes[0]) }),
      new clients.Anthropic({ apiKey: 'sk-ant-test', fetch: fetchTo(fakes[1]) }),
    );
  } finally {
    await Promise.all(fakes.map((fake) => fake.close()));
  }
}

/** The calls of a drawn plan by the clients of OpenAI and Anthropic, with and without the package. */
export function testMainClients(versions: string, load: LoadClients): void {
  describe(`the clients of OpenAI and Anthropic (${versions}) in the JavaScript package (TEST_SEED=${seed})`, () => {
    beforeAll(async () => {
      api = await startTestApi();
      clients = await load();
    });
    afterAll(() => api?.close());

    it('give the same answers with and without it, and each call is one event with its exact cost', async () => {
      const plain = await withFakes(makeCalls);
      const trueup = new Trueup({ url: api.baseUrl, apiKey: api.ingestKey, flushAtExit: false });
      const observed = await withFakes((openAi, anthropic) =>
        makeCalls(trueup.observe(openAi), trueup.observe(anthropic)),
      );
      expect(observed).toEqual(plain);
      expect(await trueup.close()).toBe(true);
      expect(trueup.stats).toMatchObject({
        recorded: plan.length,
        sent: plan.length,
        refused: 0,
        dropped: 0,
      });
      const events = await readEvents(api.baseUrl, api.adminKey, Date.now());
      const isAnthropic = ({ api: ofApi }: PlannedCall) => ofApi === 'messages';
      const openAiCalls = plan.filter((call) => !isAnthropic(call));
      expectEvents(events, [
        ...expectedEvents(openAiCalls, TRUEUP_SDK_OPENAI, calculator, Date.now()),
        ...expectedEvents(plan.filter(isAnthropic), TRUEUP_SDK_ANTHROPIC, calculator, Date.now()),
      ]);
    });
  });
}
