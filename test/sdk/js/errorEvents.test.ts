import { Anthropic } from '@anthropic-ai/sdk';
import { OpenAI } from 'openai';
import { describe, expect, it } from 'vitest';
import { EventService } from '../../fakes/eventService.js';

const MODEL = 'large';
const messages = [{ role: 'user' as const, content: 'Hello' }];
const chunk = {
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  created: 1_790_000_000,
  model: MODEL,
  choices: [{ index: 0, delta: { role: 'assistant', content: 'H' }, finish_reason: null }],
};
const response = { id: 'resp_1', object: 'response', model: MODEL, status: 'in_progress', output: [] };
const created = { type: 'response.created', response };
const message = { id: 'msg_1', type: 'message', model: MODEL, content: [], usage: { input_tokens: 9 } };
const overloaded = { type: 'overloaded_error', message: 'Overloaded' };

type Stream = AsyncIterable<{ type?: string }>;
type Open = (
  fetchAnswer: typeof fetch,
  observe: <Client extends object>(client: Client) => Client,
) => Promise<Stream>;

const openChat: Open = (fetchAnswer, observe) =>
  observe(new OpenAI({ apiKey: 'key', fetch: fetchAnswer })).chat.completions.create({
    model: MODEL,
    messages,
    stream: true,
  }) as Promise<unknown> as Promise<Stream>;
const openResponse: Open = (fetchAnswer, observe) =>
  observe(new OpenAI({ apiKey: 'key', fetch: fetchAnswer })).responses.create({
    model: MODEL,
    input: 'Hello',
    stream: true,
  });
const openMessage: Open = (fetchAnswer, observe) =>
  observe(new Anthropic({ apiKey: 'key', fetch: fetchAnswer })).messages.create({
    model: MODEL,
    max_tokens: 9,
    messages,
    stream: true,
  });

const STREAMS: readonly (readonly [name: string, open: Open, events: readonly object[]])[] = [
  [
    'chat of OpenAI',
    openChat,
    [chunk, { error: { message: 'The server had an error', type: 'server_error' } }],
  ],
  ['chat of OpenAI, at once', openChat, [{ error: { message: 'Rate limit', code: '429' } }]],
  [
    'responses of OpenAI',
    openResponse,
    [created, { type: 'error', code: 'server_error', message: 'The server had an error', param: null }],
  ],
  [
    'responses of OpenAI, with the error in a field',
    openResponse,
    [created, { type: 'error', error: { code: 'server_error', message: 'The server had an error' } }],
  ],
  [
    'a failed response of OpenAI',
    openResponse,
    [created, { type: 'response.failed', response: { ...response, status: 'failed' } }],
  ],
  [
    'messages of Anthropic',
    openMessage,
    [
      { type: 'message_start', message },
      { type: 'error', error: overloaded },
    ],
  ],
];

/** The answer of these events. */
function answerOf(events: readonly object[], { staysOpen }: { staysOpen: boolean }): Response {
  const lines = events.map((event) => {
    const { type } = event as { type?: string };
    return `${type === undefined ? '' : `event: ${type}\n`}data: ${JSON.stringify(event)}\n\n`;
  });
  const body = new ReadableStream({
    start(controller) {
      for (const line of lines) controller.enqueue(new TextEncoder().encode(line));
      if (!staysOpen) controller.close();
    },
  });
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

/** Reads the stream as an application does that stops at an error, and returns the event of the call. */
async function readToError(open: Open, events: readonly object[], staysOpen: boolean) {
  const service = new EventService();
  const trueup = service.connect();
  const stream = await open(
    async () => answerOf(events, { staysOpen }),
    (client) => trueup.observe(client),
  );
  try {
    for await (const event of stream) if (event.type === 'error' || event.type === 'response.failed') break;
  } catch (error) {
    expect(error).toBeInstanceOf(Error);
  }
  expect(await trueup.close()).toBe(true);
  expect(service.events).toHaveLength(1);
  return service.events[0];
}

describe('a stream that ends in an error event', () => {
  it.each(STREAMS)('is an error, and no call that its reader cancels (%s)', async (_, open, events) => {
    for (const staysOpen of [false, true])
      expect(await readToError(open, events, staysOpen)).toMatchObject({ status: 'error', model: MODEL });
  });

  it.each(STREAMS)('is cancelled where its reader leaves before that event (%s)', async (_, open, events) => {
    const service = new EventService();
    const trueup = service.connect();
    const [first = {}] = events;
    const before = events.length === 1 ? [chunk, first] : events;
    const stream = await open(
      async () => answerOf(before, { staysOpen: false }),
      (client) => trueup.observe(client),
    );
    for await (const _ of stream) break;
    expect(await trueup.close()).toBe(true);
    expect(service.events).toMatchObject([{ status: 'cancelled' }]);
  });
});
