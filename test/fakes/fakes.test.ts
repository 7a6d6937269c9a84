/**
 * The fakes obey the contract of the real providers: the official clients read their answers, and get the planned
 * content.
 */
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { afterEach, describe, expect, it } from 'vitest';
import { startAnthropicFake } from './anthropicFake.js';
import type { FakeProvider } from './fakeProvider.js';
import { startOpenAiFake } from './openAiFake.js';
import type { PlannedCall } from './plannedCall.js';

const CALL: PlannedCall = {
  id: 'call-1',
  api: 'chat',
  model: 'gpt-4o',
  responseModel: 'gpt-4o-2024-08-06',
  isStream: false,
  isStreamHelper: false,
  asksForUsage: true,
  fate: 'ok',
  batch: 0,
  usage: { uncachedInput: 7, cacheRead: 1000, cacheWrite5m: 200, cacheWrite1h: 0, output: 30, reasoning: 10 },
};
const MESSAGE: PlannedCall = {
  ...CALL,
  api: 'messages',
  model: 'claude-haiku-4-5',
  responseModel: 'claude-haiku-4-5-20251001',
  usage: { ...CALL.usage, cacheWrite1h: 50 },
};
const messages = [{ role: 'user' as const, content: 'Please do call-1' }];

let fake: FakeProvider | undefined;
afterEach(async () => {
  await fake?.close();
  fake = undefined;
});

async function openAi(plan: PlannedCall[]): Promise<OpenAI> {
  fake = await startOpenAiFake(plan);
  return new OpenAI({ apiKey: 'sk-test', baseURL: `${fake.origin}/v1` });
}

async function anthropic(plan: PlannedCall[]): Promise<Anthropic> {
  fake = await startAnthropicFake(plan);
  return new Anthropic({ apiKey: 'sk-ant-test', baseURL: fake.origin });
}

describe('the OpenAI fake', () => {
  it('returns usage with the cached tokens inside the prompt, plain and streamed', async () => {
    const client = await openAi([CALL]);
    const plain = await client.chat.completions.create({ model: 'gpt-4o', messages });
    expect(plain.model).toBe('gpt-4o-2024-08-06');
    expect(plain.usage).toMatchObject({
      prompt_tokens: 1207,
      completion_tokens: 30,
      total_tokens: 1237,
      prompt_tokens_details: { cached_tokens: 1000, cache_write_tokens: 200 },
      completion_tokens_details: { reasoning_tokens: 10 },
    });
    const usages: unknown[] = [];
    let text = '';
    const stream = await client.chat.completions.create({
      model: 'gpt-4o',
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      if (chunk.usage) usages.push(chunk.usage);
    }
    expect(text).toBe('It is done.');
    expect(usages).toEqual([plain.usage]);
  });

  it('keeps the usage of a stream to itself unless it is asked for', async () => {
    const client = await openAi([CALL]);
    const stream = await client.chat.completions.create({ model: 'gpt-4o', messages, stream: true });
    for await (const chunk of stream) expect(chunk.usage ?? null).toBeNull();
  });

  it('answers the Responses API, plain and streamed, with one usage', async () => {
    const client = await openAi([{ ...CALL, api: 'responses' }]);
    const plain = await client.responses.create({ model: 'gpt-4o', input: 'Please do call-1' });
    expect(plain.output_text).toBe('It is done.');
    expect(plain.usage).toEqual({
      input_tokens: 1207,
      input_tokens_details: { cached_tokens: 1000, cache_write_tokens: 200 },
      output_tokens: 30,
      output_tokens_details: { reasoning_tokens: 10 },
      total_tokens: 1237,
    });
    const stream = client.responses.stream({ model: 'gpt-4o', input: 'Please do call-1' });
    const streamed = await stream.finalResponse();
    expect({ id: streamed.id, usage: streamed.usage }).toEqual({ id: plain.id, usage: plain.usage });
  });

  it('answers embeddings in the encoding that the client asks for', async () => {
    const client = await openAi([{ ...CALL, api: 'embeddings' }]);
    const answer = await client.embeddings.create({ model: 'text-embedding-3-small', input: 'call-1' });
    expect(answer.data[0]?.embedding).toEqual([0.25, -0.5, 0.125]);
    expect(answer.usage).toEqual({ prompt_tokens: 1207, total_tokens: 1207 });
  });

  it.each([
    ['retry429', 429],
    ['retry500', 500],
  ] as const)('fails a call to be retried (%s) once, and the client asks again', async (fate, status) => {
    const client = await openAi([{ ...CALL, fate }]);
    await client.chat.completions.create({ model: 'gpt-4o', messages });
    expect(fake?.journal.map((entry) => [entry.attempt, entry.httpStatus, entry.usage])).toEqual([
      [1, status, null],
      [2, 200, CALL.usage],
    ]);
  });

  it.each([
    ['fail400', OpenAI.BadRequestError, 1],
    ['fail429', OpenAI.RateLimitError, 3],
  ] as const)('refuses a call (%s) in the form that the client expects', async (fate, error, attempts) => {
    const client = await openAi([{ ...CALL, fate }]);
    const made = client.chat.completions.create({ model: 'gpt-4o', messages });
    await expect(made).rejects.toBeInstanceOf(error);
    expect(fake?.journal).toHaveLength(attempts);
  });

  it('notices a client that leaves a stream', async () => {
    const client = await openAi([{ ...CALL, fate: 'abort' }]);
    const stream = await client.chat.completions.create({ model: 'gpt-4o', messages, stream: true });
    for await (const _chunk of stream) stream.controller.abort();
    await expect.poll(() => fake?.journal[0]?.wasAborted).toBe(true);
  });

  it('refuses an unplanned call, so that no call is uncounted', async () => {
    const client = await openAi([CALL]);
    const other = [{ role: 'user' as const, content: 'call-2' }];
    await expect(client.chat.completions.create({ model: 'gpt-4o', messages: other })).rejects.toBeInstanceOf(
      OpenAI.NotFoundError,
    );
  });
});

describe('the Anthropic fake', () => {
  const usage = {
    input_tokens: 7,
    cache_read_input_tokens: 1000,
    cache_creation_input_tokens: 250,
    cache_creation: { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 50 },
    output_tokens: 30,
    output_tokens_details: { thinking_tokens: 10 },
  };
  const body = { model: 'claude-haiku-4-5', max_tokens: 64, messages };

  it('returns input without what came from the cache or went to it, plain and streamed', async () => {
    const client = await anthropic([MESSAGE]);
    const plain = await client.messages.create(body);
    expect(plain).toMatchObject({ model: 'claude-haiku-4-5-20251001', stop_reason: 'end_turn', usage });
    const helped = await client.messages.stream(body).finalMessage();
    expect(helped).toMatchObject({ id: plain.id, stop_reason: 'end_turn', usage });
    const outputs: number[] = [];
    for await (const event of await client.messages.create({ ...body, stream: true })) {
      if (event.type === 'message_start') outputs.push(event.message.usage.output_tokens);
      if (event.type === 'message_delta') outputs.push(event.usage.output_tokens);
    }
    expect(outputs).toEqual([1, 30]);
  });

  it('fails and refuses in the form that the client expects', async () => {
    const client = await anthropic([
      { ...MESSAGE, fate: 'retry429' },
      { ...MESSAGE, id: 'call-2', fate: 'fail400' },
    ]);
    await client.messages.create(body);
    const refused = [{ role: 'user' as const, content: 'call-2' }];
    await expect(client.messages.create({ ...body, messages: refused })).rejects.toBeInstanceOf(
      Anthropic.BadRequestError,
    );
    expect(fake?.journal.map((entry) => [entry.callId, entry.httpStatus])).toEqual([
      ['call-1', 429],
      ['call-1', 200],
      ['call-2', 400],
    ]);
  });

  it('notices a client that leaves a stream', async () => {
    const client = await anthropic([{ ...MESSAGE, fate: 'abort' }]);
    for await (const _event of await client.messages.create({ ...body, stream: true })) break;
    await expect.poll(() => fake?.journal[0]?.wasAborted).toBe(true);
  });
});
