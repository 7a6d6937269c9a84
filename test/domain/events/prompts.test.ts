import { describe, expect, it } from 'vitest';
import type { CallRecord, Json } from '../../../domain/events/event.js';
import { mapObservation } from '../../../domain/events/observations/observation.js';
import { promptsOfPayload, promptsOfStored } from '../../../domain/events/prompts.js';
import { mapSdkEvents } from '../../../domain/events/sdkEvents.js';
import { anEvent } from '../../api/support/requests.js';
import { CAPTURED } from './capturedClients.js';
import { type AttributeMap, attributeList, callOf, callWith, context } from './support.js';

/** The prompts of a call, which are found again in its payload as it is stored: as JSON, in another order of keys. */
function promptsOf(call: CallRecord): readonly string[] {
  const prompts = call.prompts();
  const found = promptsOfStored(call.kind, reordered(JSON.parse(JSON.stringify(call.payload))));
  expect([...(found ?? [])].sort()).toEqual([...prompts].sort());
  return prompts;
}

/** In the order in which jsonb returns an object's fields: shorter names first. */
function reordered(value: Json): Json {
  if (Array.isArray(value)) return value.map(reordered);
  if (typeof value !== 'object' || value === null) return value;
  const byLength = Object.entries(value).sort(([a], [b]) => a.length - b.length || (a < b ? -1 : 1));
  return Object.fromEntries(byLength.map(([name, inner]) => [name, reordered(inner)]));
}

const prompts = (attributes: AttributeMap, events?: unknown[]) =>
  promptsOf(callWith(attributes, events ? { events } : {}));

describe('the prompts of a span, each text part on its own and without system instructions', () => {
  it.each([
    [
      'gen_ai.input.messages as JSON text',
      {
        'gen_ai.input.messages': JSON.stringify([
          { role: 'system', parts: [{ type: 'text', content: 'be brief' }] },
          {
            role: 'user',
            parts: [
              { type: 'text', content: 'one' },
              { type: 'text', content: 'two' },
              { type: 'blob', content: 'aGk=' },
            ],
          },
          { role: 'assistant', parts: [{ type: 'tool_call', id: '1', name: 'f', arguments: { a: 'b' } }] },
          { role: 'tool', parts: [{ type: 'tool_call_response', id: '1', response: 'three' }] },
        ]),
      },
      ['one', 'two', 'three'],
    ],
    [
      'gen_ai.input.messages as a structure',
      { 'gen_ai.input.messages': [{ role: 'user', parts: [{ type: 'text', content: 'one' }] }] },
      ['one'],
    ],
    [
      'gen_ai.prompt.N.content',
      {
        'gen_ai.prompt.0.role': 'system',
        'gen_ai.prompt.0.content': 'be brief',
        'gen_ai.prompt.1.role': 'user',
        'gen_ai.prompt.1.content':
          '[{"type":"text","text":"one"},{"type":"image_url","image_url":{"url":"x"}}]',
        'gen_ai.prompt.2.content': 'two',
      },
      ['one', 'two'],
    ],
    [
      'llm.input_messages.N.message',
      {
        'llm.input_messages.0.message.content': 'be brief',
        'llm.input_messages.0.message.role': 'developer',
        'llm.input_messages.1.message.role': 'user',
        'llm.input_messages.1.message.contents.0.message_content.text': 'one',
        'llm.input_messages.1.message.contents.1.message_content.text': 'two',
        'llm.input_messages.10.message.content': 'three',
      },
      ['one', 'two', 'three'],
    ],
    ['input.value as text', { 'input.value': 'tell me' }, ['tell me']],
    [
      'input.value as a request of OpenAI',
      {
        'input.value':
          '{"model":"m","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"one"}]}',
      },
      ['one'],
    ],
    [
      'input.value as a request of Anthropic',
      {
        'input.value':
          '{"system":"be brief","messages":[{"role":"user","content":[{"type":"text","text":"one"},{"type":"tool_result","content":"two"}]}]}',
      },
      ['one', 'two'],
    ],
    [
      'gen_ai.input.messages with a tool’s result',
      {
        'gen_ai.input.messages':
          '[{"role":"tool","parts":[{"type":"tool_call_response","id":"call_1","result":"one"},{"type":"tool_call_response","id":"call_2","response":{"city":"two"}}]}]',
      },
      ['one', 'two'],
    ],
    [
      'input.value as a request of the Responses API',
      {
        'input.value':
          '{"instructions":"be brief","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"one"}]}]}',
      },
      ['one'],
    ],
    ['input.value of an embedding', { 'input.value': '{"input":["one","two"],"model":"m"}' }, ['one', 'two']],
    [
      'input.value as a request of Gemini',
      {
        'input.value':
          '{"systemInstruction":{"parts":[{"text":"be brief"}]},"contents":[{"role":"user","parts":[{"text":"one"}]}]}',
      },
      ['one'],
    ],
    ['input.value of no known shape', { 'input.value': '{"question":"why"}' }, ['{"question":"why"}']],
    [
      'langfuse.observation.input',
      {
        'langfuse.observation.input':
          '[{"role":"system","content":"be brief"},{"role":"user","content":"one"}]',
      },
      ['one'],
    ],
    ['ai.prompt', { 'ai.prompt': '{"system":"be brief","prompt":"one"}' }, ['one']],
    [
      'ai.prompt.messages',
      { 'ai.prompt.messages': '[{"role":"user","content":[{"type":"text","text":"one"}]}]' },
      ['one'],
    ],
    ['gen_ai.prompt', { 'gen_ai.prompt': 'one' }, ['one']],
  ] as [string, AttributeMap, string[]][])('%s', (_, attributes, expected) => {
    expect(prompts(attributes)).toEqual(expected);
  });

  it('come from span events of messages', () => {
    const event = (name: string, attributes: AttributeMap) => ({
      name,
      attributes: attributeList(attributes),
    });
    const events = [
      event('gen_ai.system.message', { content: 'be brief' }),
      event('gen_ai.user.message', { content: 'one' }),
      event('gen_ai.user.message', { 'gen_ai.event.content': '{"content":"two","role":"user"}' }),
      event('gen_ai.choice', { content: 'the answer' }),
      event('gen_ai.content.prompt', { 'gen_ai.prompt': '[{"role":"user","content":"three"}]' }),
      event('exception', { content: 'none' }),
      null,
      { name: 'gen_ai.user.message' },
    ];
    expect(prompts({}, events)).toEqual(['one', 'two', 'three']);
  });

  it('are stripped, also of what JSON escapes bring back, and each text once', () => {
    expect(
      prompts({ 'ai.prompt': '{"prompt":"caf\\u00e9"}', 'input.value': 'caf', 'gen_ai.prompt': '\u00e9' }),
    ).toEqual(['caf']);
  });

  it('are whole, although the payload is too large to keep', () => {
    const long = 'x'.repeat(300_000);
    const call = callWith({ 'gen_ai.prompt': long });
    expect(call.payload).toEqual({ _truncated: true, bytes: long.length + '{"gen_ai.prompt":""}'.length });
    expect(call.prompts().map((prompt) => prompt === long)).toEqual([true]);
  });

  it('do not follow a text that nests without end', () => {
    const deep = `${'{"content":'.repeat(5000)}"x"${'}'.repeat(5000)}`;
    expect(prompts({ 'input.value': deep }).length).toBeLessThanOrEqual(1);
  });
});

describe('the prompts of a call are found again in what is stored of it', () => {
  it.each(CAPTURED.map(({ client, parts }) => [client, parts] as const))('%s', (_, parts) => {
    promptsOf(callOf(parts));
  });

  it('sent by a wrapper, or as an observation', () => {
    const payload = { prompt: 'one', messages: [{ role: 'user', content: 'two' }], other: 1 };
    const [event] = mapSdkEvents([anEvent({ timestamp: '2026-11-20T11:00:00Z', payload })], context).calls;
    expect(promptsOf(event as CallRecord)).toEqual(['one', 'two']);
    const observation = {
      type: 'GENERATION',
      id: 'o1',
      model: 'gpt-4o',
      startTime: '2026-11-20T11:00:00Z',
      usage: { input: 1, output: 1 },
      input: [{ role: 'user', content: 'three' }],
      metadata: { prompt: 'no prompt' },
    };
    const [call] = mapObservation({ type: 'observation-create', body: observation }, context).calls;
    expect(promptsOf(call as CallRecord)).toEqual(['three']);
  });

  it('but not where nothing of it was stored, or only how long it was', () => {
    expect(promptsOfStored('sdk_event', null)).toBeUndefined();
    expect(promptsOfStored('otel_span', { _truncated: true, bytes: 300_000 })).toBeUndefined();
    expect(promptsOfStored('sdk_event', ['no', 'prompt'])).toEqual([]);
  });
});

describe('the prompts of a payload', () => {
  it('are its prompt, its input and the contents of its messages', () => {
    const payload = {
      prompt: 'one',
      input: [{ role: 'user', content: 'two' }],
      messages: [
        { role: 'system', content: 'be brief' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'three' },
            { type: 'text', text: 'four' },
          ],
        },
      ],
      output: 'no',
      tool_input: 'no',
    };
    expect(promptsOfPayload(payload)).toEqual(['one', 'two', 'three', 'four']);
    for (const other of [null, 'text', 7, ['x']]) expect(promptsOfPayload(other)).toEqual([]);
  });
});
