import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ScriptedAnswer } from '../../../fakes/scriptedApi.js';
import { startTestApi, type TestApi } from '../../../support/api.js';
import { compareRuns, type ObservedCalls } from './compareRuns.js';
import type { LoadClients, OfficialClients } from './officialClients.js';

let api: TestApi;
let clients: OfficialClients;

const MODEL = 'gpt-4o-mini';
const CLAUDE = 'claude-haiku-4-5';
const messages = [{ role: 'user' as const, content: 'Hello' }];
const usage = { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 };

const chat = (message: object, finish: string) => ({
  id: `chatcmpl-${finish}`,
  object: 'chat.completion',
  created: 1_790_000_000,
  model: MODEL,
  choices: [{ index: 0, message: { role: 'assistant', content: null, ...message }, finish_reason: finish }],
  usage,
});
const chunk = (delta: object, finish: string | null, more: object = {}) => ({
  id: 'chatcmpl-stream',
  object: 'chat.completion.chunk',
  created: 1_790_000_000,
  model: MODEL,
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
});
const call = { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Oslo"}' } };
const isStream = (body: string) => JSON.parse(body).stream === true;

const OPENAI: readonly ScriptedAnswer[] = [
  {
    path: '/chat/completions',
    isFor: isStream,
    events: [
      chunk({ role: 'assistant', content: '{"ok"' }, null),
      chunk({ content: ':true}' }, 'stop'),
      { ...chunk({}, null), choices: [], usage },
      '[DONE]',
    ],
  },
  {
    path: '/chat/completions',
    isFor: (body) => body.includes('"tools"') && !body.includes('tool_call_id'),
    json: chat({ tool_calls: [call] }, 'tool_calls'),
  },
  { path: '/chat/completions', json: chat({ content: '{"ok":true}' }, 'stop') },
  {
    path: '/responses',
    json: {
      id: 'resp_1',
      object: 'response',
      created_at: 1_790_000_000,
      model: MODEL,
      status: 'completed',
      output: [
        {
          type: 'message',
          id: 'msg_1',
          role: 'assistant',
          status: 'completed',
          content: [{ type: 'output_text', text: '{"ok":true}', annotations: [] }],
        },
      ],
      usage: { input_tokens: 100, output_tokens: 20, total_tokens: 120 },
    },
  },
];

const message = (content: object[], stop: string | null, tokens: number) => ({
  id: `msg_${stop}`,
  type: 'message',
  role: 'assistant',
  model: CLAUDE,
  content,
  stop_reason: stop,
  stop_sequence: null,
  usage: { input_tokens: 100, output_tokens: tokens },
});
const CLAUDE_EVENTS: readonly { type: string; [field: string]: unknown }[] = [
  { type: 'message_start', message: message([], null, 1) },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } },
  { type: 'content_block_stop', index: 0 },
  {
    type: 'message_delta',
    delta: { stop_reason: 'end_turn', stop_sequence: null },
    usage: { output_tokens: 20 },
  },
  { type: 'message_stop' },
];
const ANTHROPIC: readonly ScriptedAnswer[] = [
  {
    path: '/v1/messages',
    isFor: isStream,
    text: CLAUDE_EVENTS.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''),
    headers: { 'content-type': 'text/event-stream' },
  },
  {
    path: '/v1/messages',
    isFor: (body) => body.includes('"tools"') && !body.includes('tool_result'),
    json: message(
      [{ type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Oslo' } }],
      'tool_use',
      20,
    ),
  },
  { path: '/v1/messages', json: message([{ type: 'text', text: 'Hi' }], 'end_turn', 20) },
];

async function textOf(stream: ReadableStream): Promise<string> {
  return new Response(stream).text();
}

async function itemsOf(stream: AsyncIterable<unknown>): Promise<unknown[]> {
  const items: unknown[] = [];
  for await (const item of stream) items.push(item);
  return items;
}

// biome-ignore lint/suspicious/noExplicitAny: versions differ in types and not in these methods
type Client = any;

const chatBody = { model: MODEL, messages };
const streamBody = { ...chatBody, stream: true, stream_options: { include_usage: true } };
const schema = { name: 'answer', strict: true, schema: { type: 'object', properties: {} } };
const response_format = { type: 'json_schema', json_schema: schema };
const weather = async () => 'sunny';
const parameters = { type: 'object', properties: { city: { type: 'string' } } };

/** Ways to read the answers of OpenAI's client; each is one call, or as many as its number says. */
const OPENAI_WAYS: Record<string, readonly [(client: Client) => Promise<unknown>, calls?: number]> = {
  'withResponse()': [
    async (client) => {
      const { data, response, request_id } = await client.chat.completions.create(chatBody).withResponse();
      return [data, response.status, response.headers.get('content-type'), request_id];
    },
  ],
  'withResponse() of a stream': [
    async (client) => {
      const { data, response } = await client.chat.completions.create(streamBody).withResponse();
      return [await itemsOf(data), response.status];
    },
  ],
  'asResponse() and json()': [
    async (client) => (await client.chat.completions.create(chatBody).asResponse()).json(),
  ],
  'asResponse() and its body': [
    async (client) => textOf((await client.chat.completions.create(streamBody).asResponse()).body),
  ],
  'asResponse() and bytes': [
    async (client) => {
      const response = await client.chat.completions.create(chatBody).asResponse();
      return new TextDecoder().decode(await (response.bytes ?? response.arrayBuffer).call(response));
    },
  ],
  'asResponse() and a clone of it': [
    async (client) => {
      const response = await client.chat.completions.create(chatBody).asResponse();
      const copy = response.clone();
      return [await copy.json(), await response.text(), copy.status];
    },
  ],
  'asResponse() and its clone alone': [
    async (client) => (await client.chat.completions.create(chatBody).asResponse()).clone().json(),
  ],
  'parse()': [async (client) => client.chat.completions.parse({ ...chatBody, response_format })],
  'parse() of Responses': [
    async (client) =>
      client.responses.parse({
        model: MODEL,
        input: 'Hello',
        text: { format: { ...schema, type: 'json_schema' } },
      }),
  ],
  'stream()': [
    async (client) =>
      client.chat.completions
        .stream({ ...chatBody, stream_options: { include_usage: true } })
        .finalChatCompletion(),
  ],
  'runTools()': [
    async (client) =>
      client.chat.completions
        .runTools({
          ...chatBody,
          tools: [
            {
              type: 'function',
              function: { name: 'weather', function: weather, parameters, parse: JSON.parse },
            },
          ],
        })
        .finalContent(),
    2,
  ],
  'tee()': [
    async (client) => {
      const [left, right] = (await client.chat.completions.create(streamBody)).tee();
      return Promise.all([itemsOf(left), itemsOf(right)]);
    },
  ],
  'toReadableStream()': [
    async (client) => textOf((await client.chat.completions.create(streamBody)).toReadableStream()),
  ],
};

const claudeBody = { model: CLAUDE, max_tokens: 64, messages };
const ANTHROPIC_WAYS: typeof OPENAI_WAYS = {
  'withResponse()': [
    async (client) => {
      const { data, response } = await client.messages.create(claudeBody).withResponse();
      return [data, response.status];
    },
  ],
  'asResponse()': [async (client) => (await client.messages.create(claudeBody).asResponse()).text()],
  'stream()': [async (client) => client.messages.stream(claudeBody).finalMessage()],
  'stream() and withResponse()': [
    async (client) => {
      const { data, response } = await client.messages.stream(claudeBody).withResponse();
      return [await data.finalText(), response.status];
    },
  ],
  'tee()': [
    async (client) => {
      const [left, right] = (await client.messages.create({ ...claudeBody, stream: true })).tee();
      return Promise.all([itemsOf(left), itemsOf(right)]);
    },
  ],
  'toReadableStream()': [
    async (client) =>
      textOf((await client.messages.create({ ...claudeBody, stream: true })).toReadableStream()),
  ],
  'toReadableStream() of stream()': [
    async (client) => textOf(client.messages.stream(claudeBody).toReadableStream()),
  ],
  'toolRunner()': [
    async (client) =>
      client.beta.messages.toolRunner({
        ...claudeBody,
        tools: [
          {
            name: 'weather',
            description: 'The weather',
            input_schema: parameters,
            run: weather,
            parse: (input: unknown) => input,
          },
        ],
      }),
    2,
  ],
};

/** Collects garbage until finalizers have run. */
async function collectGarbage(): Promise<void> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let round = 0; round < 10; round += 1) {
    collect();
    await sleep(20);
  }
}

/** Every way to read an answer of the clients of OpenAI and Anthropic, with and without the package. */
export function testWaysOfReading(versions: string, load: LoadClients): void {
  describe(`an answer of the clients of OpenAI and Anthropic (${versions}) is the same and is one report`, () => {
    beforeAll(async () => {
      api = await startTestApi();
      clients = await load();
    });
    afterAll(() => api?.close());

    const observe = (
      answers: readonly ScriptedAnswer[],
      calls: ObservedCalls,
      settle?: () => Promise<void>,
    ) => compareRuns(api, answers, calls, settle);
    const outcome = (events: { status: string; input_tokens: number; output_tokens: number }[]) =>
      events.map(({ status, input_tokens, output_tokens }) => [status, input_tokens, output_tokens]);

    it.each(Object.entries(OPENAI_WAYS))('by %s of OpenAI', async (_, [way, calls = 1]) => {
      const events = await observe(OPENAI, (fetchTo, observed) =>
        way(observed(new clients.OpenAI({ apiKey: 'key', fetch: fetchTo }))),
      );
      expect(outcome(events)).toEqual(Array(calls).fill(['ok', 100, 20]));
    });

    it.each(Object.entries(ANTHROPIC_WAYS))('by %s of Anthropic', async (_, [way, calls = 1]) => {
      const events = await observe(ANTHROPIC, (fetchTo, observed) =>
        way(observed(new clients.Anthropic({ apiKey: 'key', fetch: fetchTo }))),
      );
      expect(outcome(events)).toEqual(Array(calls).fill(['ok', 100, 20]));
    });

    it('also where nobody reads it: the call is cancelled once the answer is dropped', async () => {
      const events = await observe(
        OPENAI,
        async (fetchTo, observed) => {
          const client = observed(new clients.OpenAI({ apiKey: 'key', fetch: fetchTo }));
          return (await client.chat.completions.create(chatBody).asResponse()).status;
        },
        collectGarbage,
      );
      expect(outcome(events)).toEqual([['cancelled', 0, 0]]);
    });

    it('also where its reader keeps nothing else and garbage is collected meanwhile', async () => {
      const events = await observe(OPENAI, async (fetchTo, observed) => {
        const client = observed(new clients.OpenAI({ apiKey: 'key', fetch: fetchTo }));
        const { body } = await client.chat.completions
          .create({ ...chatBody, stream: true, stream_options: { include_usage: true } })
          .asResponse();
        const reader = (body as ReadableStream<Uint8Array>).getReader();
        const decoder = new TextDecoder();
        let text = '';
        for (;;) {
          await collectGarbage();
          const { done, value } = await reader.read();
          if (done) return text;
          text += decoder.decode(value, { stream: true });
        }
      });
      expect(outcome(events)).toEqual([['ok', 100, 20]]);
    });
  });
}
