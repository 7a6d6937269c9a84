import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Trueup } from '../../../../sdk/js/src/node.js';
import { CostCalculator, type PricedTokens } from '../../../clients/costCalculator.js';
import { type ObservedEvent, readEvents } from '../../../clients/support/observedEvents.js';
import { type ScriptedAnswer, startScriptedApi } from '../../../fakes/scriptedApi.js';
import { startTestApi, type TestApi } from '../../../support/api.js';
import type { LoadClients, OfficialClients } from './officialClients.js';

const calculator = new CostCalculator(new URL('../../../../data/prices.json', import.meta.url));

let api: TestApi;
let clients: OfficialClients;

type Observe = <Client extends object>(client: Client) => Client;

interface ExpectedCall {
  provider: string;
  model: string;
  tokens: Partial<PricedTokens>;
  stop: string;
}

async function itemsOf(stream: AsyncIterable<unknown> | readonly unknown[]): Promise<unknown[]> {
  const items: unknown[] = [];
  for await (const item of stream) items.push(item);
  return items;
}

const NO_TOKENS = { input: 0, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 0 };

function usdOf({ provider, model, tokens }: ExpectedCall): string {
  const cost = calculator.cost({
    provider,
    model,
    atMillis: Date.now(),
    tokens: { ...NO_TOKENS, ...tokens },
  });
  expect(cost.isPriced, model).toBe(true);
  return cost.usd;
}

/** Makes the calls with and without the package, and compares answers and events. */
async function compare(
  answers: readonly ScriptedAnswer[],
  calls: (origin: string, observe: Observe) => Promise<unknown[]>,
  expected: readonly ExpectedCall[],
): Promise<ObservedEvent[]> {
  const run = async (observe: Observe) => {
    const provider = await startScriptedApi(answers);
    try {
      return JSON.stringify(await calls(provider.origin, observe)).replaceAll(provider.origin, '');
    } finally {
      await provider.close();
    }
  };
  const organization = await api.addOrganization();
  const plain = await run((client) => client);
  const trueup = new Trueup({ url: api.baseUrl, apiKey: organization.ingestKey, flushAtExit: false });
  const observed = await run((client) => trueup.observe(client, { team: 'growth' }));
  expect(observed).toBe(plain);
  await trueup.close();
  const events = await readEvents(api.baseUrl, organization.adminKey, Date.now());
  const shape = (event: ObservedEvent) => ({
    provider: event.provider,
    model: event.model,
    usd: event.usd,
    stop: (event as ObservedEvent & { stop_reason: string }).stop_reason,
    team: (event as ObservedEvent & { team_id: string }).team_id,
  });
  const lines = (all: object[]) => all.map((one) => JSON.stringify(one)).sort();
  expect(lines(events.map(shape))).toEqual(
    lines(
      expected.map((call) => ({
        provider: call.provider,
        model: call.model,
        usd: usdOf(call),
        stop: call.stop,
        team: 'growth',
      })),
    ),
  );
  return events;
}

const GEMINI = 'gemini-2.5-flash';
const geminiUsage = {
  promptTokenCount: 1_200,
  cachedContentTokenCount: 1_000,
  candidatesTokenCount: 40,
  thoughtsTokenCount: 25,
  totalTokenCount: 1_265,
};
const gemini = (text: string, finishReason?: string, usageMetadata?: object) => ({
  candidates: [
    { content: { role: 'model', parts: [{ text }] }, index: 0, ...(finishReason ? { finishReason } : {}) },
  ],
  ...(usageMetadata ? { usageMetadata } : {}),
  modelVersion: GEMINI,
  responseId: `resp-${text}`,
});

/** Calls by the clients of Google, Mistral, Cohere and AWS, with and without the package. */
export function testOtherClients(versions: string, load: LoadClients): void {
  describe(`the other official clients (${versions}) in the JavaScript package`, () => {
    beforeAll(async () => {
      api = await startTestApi();
      clients = await load();
    });
    afterAll(() => api?.close());

    it('Google GenAI: answers, streams, chats and calls for tools', async () => {
      const tokens = { input: 200, cacheRead: 1_000, output: 65 };
      await compare(
        [
          {
            path: `models/${GEMINI}:generateContent`,
            json: gemini('Hello', 'STOP', geminiUsage),
          },
          {
            path: `models/${GEMINI}:streamGenerateContent`,
            events: [
              gemini('A', undefined, { promptTokenCount: 1_200, totalTokenCount: 1_200 }),
              gemini('B', 'STOP', geminiUsage),
            ],
          },
          {
            path: `models/gemini-2.5-flash-lite:generateContent`,
            json: {
              ...gemini('tool', 'STOP', geminiUsage),
              candidates: [
                { content: { parts: [{ functionCall: { name: 'f', args: {} } }] }, finishReason: 'STOP' },
              ],
              modelVersion: 'gemini-2.5-flash-lite',
            },
          },
        ],
        async (origin, observe) => {
          const ai = observe(new clients.GoogleGenAI({ apiKey: 'key', httpOptions: { baseUrl: origin } }));
          const whole = await ai.models.generateContent({ model: GEMINI, contents: 'Hello?' });
          const stream = await itemsOf(
            await ai.models.generateContentStream({ model: GEMINI, contents: 'A?' }),
          );
          const chat = ai.chats.create({ model: 'gemini-2.5-flash-lite' });
          const said = await chat.sendMessage({ message: 'x' });
          return [whole, stream, said.functionCalls];
        },
        [
          { provider: 'google', model: GEMINI, tokens, stop: 'STOP' },
          { provider: 'google', model: GEMINI, tokens, stop: 'STOP' },
          { provider: 'google', model: 'gemini-2.5-flash-lite', tokens, stop: 'tool_calls' },
        ],
      );
    });

    it('Mistral: answers, streams and embeddings', async () => {
      const model = 'mistral-large-latest';
      const usage = { prompt_tokens: 30, completion_tokens: 12, total_tokens: 42 };
      const chunk = (content: string, more: object) => ({
        id: 'cmpl-stream',
        object: 'chat.completion.chunk',
        created: 1_790_000_000,
        model,
        choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: null }],
        ...more,
      });
      const choice = {
        index: 0,
        message: { role: 'assistant', content: 'Hi', tool_calls: null },
        finish_reason: 'stop',
      };
      const ended = [{ index: 0, delta: { content: '' }, finish_reason: 'tool_calls' }];
      await compare(
        [
          {
            path: '/v1/chat/completions',
            json: { id: 'cmpl-1', object: 'chat.completion', created: 1, model, choices: [choice], usage },
            isFor: (body) => !body.includes('"stream":true'),
          },
          {
            path: '/v1/chat/completions',
            events: [chunk('H', {}), chunk('i', {}), chunk('', { choices: ended, usage }), '[DONE]'],
          },
          {
            path: '/v1/embeddings',
            json: {
              id: 'emb-1',
              object: 'list',
              model: 'mistral-embed',
              data: [{ object: 'embedding', embedding: [0.5, 1], index: 0 }],
              usage: { prompt_tokens: 9, completion_tokens: 0, total_tokens: 9 },
            },
          },
        ],
        async (origin, observe) => {
          const client = observe(new clients.Mistral({ apiKey: 'key', serverURL: origin }));
          const messages = [{ role: 'user' as const, content: 'Hello' }];
          return [
            await client.chat.complete({ model, messages }),
            await itemsOf(await client.chat.stream({ model, messages })),
            await client.embeddings.create({ model: 'mistral-embed', inputs: ['Hello'] }),
          ];
        },
        [
          { provider: 'mistral', model, tokens: { input: 30, output: 12 }, stop: 'stop' },
          { provider: 'mistral', model, tokens: { input: 30, output: 12 }, stop: 'tool_calls' },
          { provider: 'mistral', model: 'mistral-embed', tokens: { input: 9 }, stop: 'unknown' },
        ],
      );
    });

    it('Cohere: both versions of its API, answers and streams', async () => {
      const model = 'command-a-03-2025';
      const usage = {
        billed_units: { input_tokens: 20, output_tokens: 7 },
        tokens: { input_tokens: 90, output_tokens: 8 },
      };
      const message = { role: 'assistant', content: [{ type: 'text', text: 'Hi' }] };
      await compare(
        [
          {
            path: '/v2/chat',
            json: { id: 'c-1', finish_reason: 'COMPLETE', message, usage },
            isFor: (body) => !body.includes('"stream":true'),
          },
          {
            path: '/v2/chat',
            events: [
              { id: 'c-2', type: 'message-start', delta: { message: { role: 'assistant' } } },
              { type: 'content-delta', index: 0, delta: { message: { content: { text: 'Hi' } } } },
              { type: 'message-end', delta: { finish_reason: 'TOOL_CALL', usage } },
            ],
          },
          {
            path: '/v1/chat',
            json: { text: 'Hi', generation_id: 'g-1', finish_reason: 'COMPLETE', meta: usage },
          },
        ],
        async (origin, observe) => {
          const newer = observe(new clients.CohereClientV2({ token: 'key', environment: origin }));
          const older = observe(new clients.CohereClient({ token: 'key', environment: origin }));
          const messages = [{ role: 'user' as const, content: 'Hello' }];
          return [
            await newer.chat({ model, messages }),
            await itemsOf(await newer.chatStream({ model, messages })),
            await older.chat({ model, message: 'Hello' }),
          ];
        },
        ['COMPLETE', 'tool_calls', 'COMPLETE'].map((stop) => ({
          provider: 'cohere',
          model,
          tokens: { input: 20, output: 7 },
          stop,
        })),
      );
    });

    it('Bedrock: Converse and InvokeModel, answers and streams', async () => {
      const nova = 'amazon.nova-lite-v1:0';
      const claude = 'anthropic.claude-haiku-4-5-20251001-v1:0';
      const converse = {
        inputTokens: 15,
        outputTokens: 6,
        totalTokens: 121,
        cacheReadInputTokens: 100,
        cacheWriteInputTokens: 0,
      };
      const anthropic = {
        input_tokens: 15,
        output_tokens: 6,
        cache_read_input_tokens: 100,
        cache_creation_input_tokens: 0,
      };
      const text = { role: 'assistant', content: [{ text: 'Hi' }] };
      const chunk = (event: object) =>
        ['chunk', { bytes: Buffer.from(JSON.stringify(event)).toString('base64') }] as const;
      const tokens = { input: 15, cacheRead: 100, output: 6 };
      await compare(
        [
          {
            path: `/model/${nova}/converse`,
            json: {
              output: { message: text },
              stopReason: 'end_turn',
              usage: converse,
              metrics: { latencyMs: 5 },
            },
            failures: { status: 503, times: 1 },
          },
          {
            path: `/model/${nova}/converse-stream`,
            frames: [
              ['messageStart', { role: 'assistant' }],
              ['contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Hi' } }],
              ['messageStop', { stopReason: 'tool_use' }],
              ['metadata', { usage: converse, metrics: { latencyMs: 5 } }],
            ],
          },
          {
            path: `/model/${claude}/invoke`,
            json: {
              id: 'msg_bdrk_1',
              model: 'claude-haiku-4-5-20251001',
              stop_reason: 'end_turn',
              usage: anthropic,
            },
          },
          {
            path: `/model/${claude}/invoke-with-response-stream`,
            frames: [
              chunk({
                type: 'message_start',
                message: { id: 'msg_bdrk_2', usage: { ...anthropic, output_tokens: 1 } },
              }),
              chunk({ type: 'content_block_delta', delta: { text: 'Hi' } }),
              chunk({
                type: 'message_delta',
                delta: { stop_reason: 'end_turn' },
                usage: { output_tokens: 6 },
              }),
              chunk({ type: 'message_stop', 'amazon-bedrock-invocationMetrics': { inputTokenCount: 15 } }),
            ],
          },
        ],
        async (origin, observe) => {
          const client = observe(
            new clients.BedrockRuntimeClient({
              region: 'us-east-1',
              endpoint: origin,
              // Its own default speaks HTTP/2, which the fake does not.
              requestHandler: new clients.NodeHttpHandler(),
              credentials: { accessKeyId: 'id', secretAccessKey: 'secret' },
            }),
          );
          const messages = [{ role: 'user' as const, content: [{ text: 'Hello' }] }];
          const body = JSON.stringify({ max_tokens: 9, messages: [{ role: 'user', content: 'Hello' }] });
          const first = await client.send(new clients.ConverseCommand({ modelId: nova, messages }));
          const second = await client.send(new clients.ConverseStreamCommand({ modelId: nova, messages }));
          const events = await itemsOf(second.stream ?? []);
          const third = await client.send(new clients.InvokeModelCommand({ modelId: claude, body }));
          const fourth = await client.send(
            new clients.InvokeModelWithResponseStreamCommand({ modelId: claude, body }),
          );
          const chunks = await itemsOf(fourth.body ?? []);
          return [first.output, first.usage, events, third.body.transformToString(), chunks];
        },
        [
          { provider: 'aws_bedrock', model: nova, tokens, stop: 'end_turn' },
          { provider: 'aws_bedrock', model: nova, tokens, stop: 'tool_use' },
          { provider: 'aws_bedrock', model: claude, tokens, stop: 'end_turn' },
          { provider: 'aws_bedrock', model: claude, tokens, stop: 'end_turn' },
        ],
      );
    });
  });
}
