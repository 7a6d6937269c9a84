import { describe, expect, it } from 'vitest';
import { type MappedBatch, TOKENS_MAX } from '../../../domain/events/event.js';
import { mapObservation } from '../../../domain/events/observations/observation.js';
import { mapOtlpRequest } from '../../../domain/events/otlpSpans.js';
import { mapSdkEvents } from '../../../domain/events/sdkEvents.js';
import { isoFromMicros } from '../../../domain/period.js';
import { aRequest, context, NOW } from './support.js';

const START = isoFromMicros(NOW - 3_600_000_000n);

/** Values that are not a count of tokens. */
const NO_COUNT: readonly [string, unknown][] = [
  ['a word', 'x'],
  ['a word with digits', '12x'],
  ['a fraction', 1.5],
  ['the text of a fraction', '1.5'],
  ['a negative number', -1],
  ['a negative number as text', '-1'],
  ['the text NaN', 'NaN'],
  ['the text Infinity', 'Infinity'],
  ['an exponent as text', '1e3'],
  ['a hexadecimal text', '0x10'],
  ['more than 10^12', TOKENS_MAX + 1],
  ['more than 10^12 as text', String(TOKENS_MAX + 1)],
  ['true', true],
  ['false', false],
  ['a list', [1]],
  ['an empty list', []],
  ['an object', { value: 1 }],
  ['an empty object', {}],
];
/** Values that are neither an amount nor a duration. */
const NO_MEASURE: readonly [string, unknown][] = [
  ['a word', 'x'],
  ['a word with digits', '12x'],
  ['a negative number', -1],
  ['the text NaN', 'NaN'],
  ['the text Infinity', 'Infinity'],
  ['a hexadecimal text', '0x10'],
  ['too much', 1e12],
  ['true', true],
  ['a list', [1]],
  ['an empty list', []],
  ['an object', { value: 1 }],
];

type Map = (value: unknown) => MappedBatch;

const event = (fields: object) =>
  mapSdkEvents([{ provider: 'openai', model: 'gpt-4o', timestamp: START, ...fields }], context);
const observation = (fields: object) =>
  mapObservation(
    {
      type: 'observation-create',
      body: { id: 'obs', type: 'GENERATION', model: 'gpt-4o', startTime: START, ...fields },
    },
    context,
  );
const span = (attributes: object) =>
  mapOtlpRequest(
    aRequest({ attributes: { 'gen_ai.system': 'openai', 'gen_ai.request.model': 'gpt-4o', ...attributes } }),
    context,
  );

/** Usage objects as providers and clients write them, whole and sound. */
const USAGES: Record<string, object> = {
  'chat completions': {
    prompt_tokens: 10,
    completion_tokens: 5,
    total_tokens: 15,
    prompt_tokens_details: { cached_tokens: 2, audio_tokens: 1 },
    completion_tokens_details: { reasoning_tokens: 1, audio_tokens: 1 },
  },
  responses: {
    input_tokens: 10,
    output_tokens: 5,
    total_tokens: 15,
    input_tokens_details: { cached_tokens: 2 },
    output_tokens_details: { reasoning_tokens: 1 },
  },
  messages: {
    input_tokens: 10,
    output_tokens: 5,
    cache_read_input_tokens: 2,
    cache_creation_input_tokens: 3,
    cache_creation: { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 1 },
  },
  'generate content': {
    promptTokenCount: 10,
    candidatesTokenCount: 5,
    totalTokenCount: 16,
    cachedContentTokenCount: 2,
    thoughtsTokenCount: 1,
    toolUsePromptTokenCount: 0,
  },
  chat: { billed_units: { input_tokens: 10, output_tokens: 5 } },
  'plain counts': { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
  buckets: {
    input: 10,
    output: 5,
    total: 18,
    input_cached_tokens: 1,
    output_reasoning_tokens: 1,
    cache_write_tokens: 1,
  },
};

/** The paths of the numbers in an object, and the object with another value at one of them. */
function numbersIn(value: object, path: readonly string[] = []): string[][] {
  return Object.entries(value).flatMap(([name, inner]) =>
    typeof inner === 'number' ? [[...path, name]] : numbersIn(inner as object, [...path, name]),
  );
}
function withValue(value: object, [name = '', ...rest]: readonly string[], other: unknown): object {
  const inner = (value as Record<string, unknown>)[name];
  return { ...value, [name]: rest.length === 0 ? other : withValue(inner as object, rest, other) };
}

/** Fields with a count, by path of ingest. */
const COUNT_FIELDS: [string, Map][] = [
  ...[
    'input_tokens',
    'output_tokens',
    'cache_read',
    'cache_creation',
    'cache_creation_5m',
    'cache_creation_1h',
    'input_audio',
    'output_audio',
    'reasoning_tok',
  ].map((name): [string, Map] => [
    `events ${name}`,
    (value) => event({ input_tokens: 10, output_tokens: 5, [name]: value }),
  ]),
  ...Object.entries(USAGES).flatMap(([name, usage]) =>
    numbersIn(usage).flatMap((path): [string, Map][] => {
      const field = `${name} ${path.join('.')}`;
      return [
        [`events usage of ${field}`, (value) => event({ usage: withValue(usage, path, value) })],
        [`observability usage of ${field}`, (value) => observation({ usage: withValue(usage, path, value) })],
        [
          `observability usageDetails of ${field}`,
          (value) => observation({ usageDetails: withValue(usage, path, value) }),
        ],
        [
          `trace langfuse.observation.usage_details of ${field}`,
          (value) =>
            span({ 'langfuse.observation.usage_details': JSON.stringify(withValue(usage, path, value)) }),
        ],
      ];
    }),
  ),
  ...[
    'gen_ai.usage.input_tokens',
    'gen_ai.usage.output_tokens',
    'gen_ai.usage.cache_read.input_tokens',
    'gen_ai.usage.cache_creation.input_tokens',
    'anthropic.usage.cache_creation.ephemeral_5m_input_tokens',
    'anthropic.usage.cache_creation.ephemeral_1h_input_tokens',
    'gen_ai.usage.reasoning.output_tokens',
    'gen_ai.usage.total_tokens',
    'llm.token_count.prompt',
    'ai.usage.cachedInputTokens',
  ].map((name): [string, Map] => [
    `trace ${name}`,
    (value) => span({ 'gen_ai.usage.output_tokens': 5, [name]: value }),
  ]),
  [
    'trace ai.response.providerMetadata',
    (value) =>
      span({
        'ai.usage.inputTokens': 10,
        'ai.usage.outputTokens': 5,
        'ai.response.providerMetadata': JSON.stringify({ anthropic: { cacheCreationInputTokens: value } }),
      }),
  ],
];

const MEASURE_FIELDS: [string, Map][] = [
  ['events cost_usd', (value) => event({ cost_usd: value })],
  ['events prevented_usd', (value) => event({ status: 'blocked', prevented_usd: value })],
  ['events duration_ms', (value) => event({ duration_ms: value })],
  ['observability latency', (value) => observation({ latency: value })],
  ['observability metadata.cost_usd', (value) => observation({ metadata: { cost_usd: value } })],
  ...['gen_ai.response.cost_usd', 'gen_ai.usage.cost', 'cost_usd'].map((name): [string, Map] => [
    `trace ${name}`,
    (value) => span({ 'gen_ai.usage.input_tokens': 1, [name]: value }),
  ]),
  [
    'trace langfuse.observation.cost_details',
    (value) =>
      span({
        'gen_ai.usage.input_tokens': 1,
        'langfuse.observation.cost_details': JSON.stringify({ total: value }),
      }),
  ],
];

function expectRejected({ calls, rejections }: MappedBatch): void {
  expect([calls.length, rejections.map(({ reason }) => reason)]).toEqual([0, ['invalid_number']]);
}

describe.each(COUNT_FIELDS)('%s', (_, map) => {
  it('takes a count, as a number and as its text', () => {
    for (const count of [0, 1, '1'])
      expect(map(count).rejections.filter(({ message }) => !/more than the tokens/.test(message))).toEqual(
        [],
      );
  });

  it.each(NO_COUNT)('rejects %s', (_name, value) => {
    expectRejected(map(value));
  });
});

describe.each(MEASURE_FIELDS)('%s', (_, map) => {
  it('takes a number and its text', () => {
    for (const value of [0, 0.5, '0.5', '1e1']) expect(map(value).rejections).toEqual([]);
  });

  it.each(NO_MEASURE)('rejects %s', (_name, value) => {
    expectRejected(map(value));
  });
});

describe('counts that add up to more than 10^12', () => {
  it.each([
    ['buckets', { input: TOKENS_MAX, input_text: 1, output: 1 }],
    ['parts that are added', { promptTokenCount: TOKENS_MAX, toolUsePromptTokenCount: 1 }],
    ['reasoning beside the output', { input: 1, output: TOKENS_MAX, output_reasoning_tokens: 1 }],
    [
      'lifetimes',
      {
        input_tokens: 1,
        cache_creation: { ephemeral_5m_input_tokens: TOKENS_MAX, ephemeral_1h_input_tokens: 1 },
      },
    ],
  ])('in %s reject their item, which Postgres would refuse with its whole batch', (_, usage) => {
    expectRejected(event({ usage }));
    expectRejected(observation({ usage }));
  });
});

describe('an item whose number is invalid', () => {
  it('costs the other items of its request nothing', () => {
    const good = { provider: 'openai', model: 'gpt-4o', timestamp: START, input_tokens: 1 };
    const { calls, rejections } = mapSdkEvents(
      [good, { ...good, usage: { prompt_tokens: 'x', completion_tokens: 5 } }, good],
      context,
    );
    expect([calls.length, rejections.map(({ index, message }) => [index, message])]).toEqual([
      2,
      [[1, `usage.prompt_tokens: x is not a whole number from 0 to ${TOKENS_MAX}`]],
    ]);
  });

  it('is rejected for its own counts also where a usage object holds', () => {
    expectRejected(event({ usage: USAGES.responses, input_tokens: 'x' }));
  });

  it('is one for an HTTP status that is no number', () => {
    for (const status of [[200], '0xC8', true, 'x'])
      expect(event({ http_status: status }).rejections.map(({ reason }) => reason)).toEqual([
        'invalid_field',
      ]);
    expect(event({ http_status: '200' }).rejections).toEqual([]);
  });
});

describe('the fields of a usage object beside its counts', () => {
  it.each([
    ['a service tier', { service_tier: 'default' }],
    ['a unit', { unit: 'TOKENS' }],
    ['a description of its input', { input: 1, input_type: 'text' }],
    [
      'lifetimes of a cache write beside buckets',
      { input: 1, cache_creation: { ephemeral_5m_input_tokens: 1 } },
    ],
    ['null for a count', { output_tokens: null, completion_tokens: null }],
  ])('may be text: %s', (_, more) => {
    expect(event({ usage: { prompt_tokens: 1, ...more } }).rejections).toEqual([]);
  });
});
