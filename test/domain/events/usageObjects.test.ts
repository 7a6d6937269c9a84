import { describe, expect, it } from 'vitest';
import type { InputSemantics, Json } from '../../../domain/events/event.js';
import { normaliseUsage } from '../../../domain/events/usage.js';
import { readUsageObject } from '../../../domain/events/usageObjects.js';

type Classes = [input: number, cacheRead: number, cacheWrite: number, output: number, reasoning: number];

function read(usage: { [key: string]: Json }) {
  const found = readUsageObject(usage, 'usage');
  if (found === undefined) throw new Error('the object was not understood');
  const { usage: classes, flags, semantics } = normaliseUsage(found.reported, found.semantics);
  return { ...found, classes, flags, semantics };
}

/** Usage objects as the providers' APIs answer, with the classes of the counts in their documentation. */
const OBJECTS: [string, { [key: string]: Json }, Classes, InputSemantics][] = [
  [
    'OpenAI chat',
    {
      prompt_tokens: 1200,
      completion_tokens: 300,
      total_tokens: 1500,
      prompt_tokens_details: { cached_tokens: 1000, audio_tokens: 0 },
      completion_tokens_details: {
        reasoning_tokens: 100,
        audio_tokens: 0,
        accepted_prediction_tokens: 0,
        rejected_prediction_tokens: 0,
      },
    },
    [200, 1000, 0, 300, 100],
    'inclusive',
  ],
  [
    'OpenAI Responses',
    {
      input_tokens: 1200,
      input_tokens_details: { cached_tokens: 1000 },
      output_tokens: 300,
      output_tokens_details: { reasoning_tokens: 100 },
      total_tokens: 1500,
    },
    [200, 1000, 0, 300, 100],
    'inclusive',
  ],
  ['OpenAI embeddings', { prompt_tokens: 8, total_tokens: 8 }, [8, 0, 0, 0, 0], 'inclusive'],
  [
    'Anthropic messages',
    {
      input_tokens: 50,
      cache_creation_input_tokens: 200,
      cache_read_input_tokens: 1000,
      cache_creation: { ephemeral_5m_input_tokens: 150, ephemeral_1h_input_tokens: 50 },
      output_tokens: 300,
      service_tier: 'standard',
      server_tool_use: { web_search_requests: 2 },
    },
    [50, 1000, 200, 300, 0],
    'exclusive',
  ],
  [
    'Gemini',
    {
      promptTokenCount: 1200,
      cachedContentTokenCount: 1000,
      candidatesTokenCount: 200,
      thoughtsTokenCount: 100,
      toolUsePromptTokenCount: 30,
      totalTokenCount: 1530,
    },
    [230, 1000, 0, 300, 100],
    'inclusive',
  ],
  [
    'Gemini from Python',
    { prompt_token_count: 10, candidates_token_count: 5, total_token_count: 15 },
    [10, 0, 0, 5, 0],
    'inclusive',
  ],
  [
    'Bedrock Converse',
    {
      inputTokens: 50,
      outputTokens: 300,
      totalTokens: 1550,
      cacheReadInputTokens: 1000,
      cacheWriteInputTokens: 200,
      cacheDetails: [
        { ttl: '5m', inputTokens: 120 },
        { ttl: '1h', inputTokens: 80 },
      ],
    },
    [50, 1000, 200, 300, 0],
    'exclusive',
  ],
  [
    'Bedrock without a cache',
    { inputTokens: 50, outputTokens: 30, totalTokens: 80 },
    [50, 0, 0, 30, 0],
    'inclusive',
  ],
  ['Mistral', { prompt_tokens: 16, completion_tokens: 34, total_tokens: 50 }, [16, 0, 0, 34, 0], 'inclusive'],
  [
    'Mistral from JavaScript',
    { promptTokens: 16, completionTokens: 34, totalTokens: 50 },
    [16, 0, 0, 34, 0],
    'inclusive',
  ],
  [
    'Cohere, by what it bills',
    {
      billed_units: { input_tokens: 5, output_tokens: 418 },
      tokens: { input_tokens: 71, output_tokens: 418 },
    },
    [5, 0, 0, 418, 0],
    'inclusive',
  ],
  [
    'xAI, whose reasoning stands beside the completion',
    {
      prompt_tokens: 32,
      completion_tokens: 9,
      total_tokens: 135,
      prompt_tokens_details: { text_tokens: 32, audio_tokens: 0, image_tokens: 0, cached_tokens: 6 },
      completion_tokens_details: { reasoning_tokens: 94, audio_tokens: 0 },
    },
    [26, 6, 0, 103, 94],
    'inclusive',
  ],
  [
    'DeepSeek',
    {
      prompt_tokens: 100,
      completion_tokens: 10,
      prompt_cache_hit_tokens: 64,
      prompt_cache_miss_tokens: 36,
      total_tokens: 110,
    },
    [36, 64, 0, 10, 0],
    'inclusive',
  ],
  [
    'the AI SDK up to 5',
    {
      inputTokens: 1200,
      outputTokens: 300,
      totalTokens: 1500,
      cachedInputTokens: 1000,
      reasoningTokens: 100,
    },
    [200, 1000, 0, 300, 100],
    'inclusive',
  ],
  [
    'the AI SDK from 6',
    {
      inputTokens: 1250,
      inputTokenDetails: { noCacheTokens: 50, cacheReadTokens: 1000, cacheWriteTokens: 200 },
      outputTokens: 300,
      outputTokenDetails: { textTokens: 200, reasoningTokens: 100 },
      totalTokens: 1550,
    },
    [50, 1000, 200, 300, 100],
    'inclusive',
  ],
  [
    'Langfuse from JavaScript',
    { input: 200, output: 200, total: 1500, input_cached_tokens: 1000, output_reasoning_tokens: 100 },
    [200, 1000, 0, 300, 100],
    'disjoint',
  ],
  [
    'Langfuse from Python, in the words of OpenAI',
    {
      prompt_tokens: 1200,
      completion_tokens: 300,
      total_tokens: 1500,
      'prompt_tokens_details.cached_tokens': 1000,
      'completion_tokens_details.reasoning_tokens': 100,
    },
    [200, 1000, 0, 300, 100],
    'inclusive',
  ],
  [
    'Langfuse from Python, in the words of the Responses API',
    {
      input_tokens: 1200,
      output_tokens: 300,
      total_tokens: 1500,
      input_tokens_details: { cached_tokens: 1000 },
      output_tokens_details: { reasoning_tokens: 100 },
    },
    [200, 1000, 0, 300, 100],
    'inclusive',
  ],
  ['Langfuse from Python, an embedding', { input: 8 }, [8, 0, 0, 0, 0], 'disjoint'],
  [
    'Langfuse by hand for Anthropic',
    { input: 50, output: 300, cache_read_input_tokens: 1000, cache_creation_input_tokens: 200 },
    [50, 1000, 200, 300, 0],
    'exclusive',
  ],
  [
    'Langfuse through LangChain',
    {
      input: 50,
      output: 250,
      total: 1550,
      input_cache_read: 1000,
      input_cache_creation: 200,
      output_reasoning: 50,
    },
    [50, 1000, 200, 300, 50],
    'disjoint',
  ],
  [
    'Langfuse by hand with parts left inside, as its total shows',
    { input: 1200, output: 300, total: 1500, input_cached_tokens: 1000, output_reasoning_tokens: 100 },
    [200, 1000, 0, 300, 100],
    'inclusive',
  ],
  [
    'Langfuse before version 3',
    { input: 12, output: 3, total: 15, unit: 'TOKENS', inputCost: 0.5, totalCost: 1.5 },
    [12, 0, 0, 3, 0],
    'disjoint',
  ],
  ['counts as text', { prompt_tokens: '12', completion_tokens: '3' }, [12, 0, 0, 3, 0], 'inclusive'],
];

describe('a usage object is reported from its own keys', () => {
  it.each(OBJECTS)('%s', (_, usage, classes, semantics) => {
    const found = read(usage);
    const { input, cacheRead, cacheCreation, output, reasoning } = found.classes;
    expect([input, cacheRead, cacheCreation, output, reasoning]).toEqual(classes);
    expect([found.semantics, found.flags]).toEqual([semantics, []]);
  });

  it('with the lifetimes of cache writes', () => {
    const anthropic = OBJECTS.find(([name]) => name === 'Anthropic messages')?.[1] ?? {};
    const bedrock = OBJECTS.find(([name]) => name === 'Bedrock Converse')?.[1] ?? {};
    expect(read(anthropic).classes).toMatchObject({ cacheCreation5m: 150, cacheCreation1h: 50 });
    expect(read(bedrock).classes).toMatchObject({ cacheCreation5m: 120, cacheCreation1h: 80 });
  });

  it('with audio apart from text', () => {
    const gemini = {
      promptTokenCount: 1000,
      cachedContentTokenCount: 300,
      candidatesTokenCount: 60,
      totalTokenCount: 1060,
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: 400 },
        { modality: 'AUDIO', tokenCount: 600 },
      ],
      cacheTokensDetails: [{ modality: 'AUDIO', tokenCount: 200 }],
      candidatesTokensDetails: [{ modality: 'AUDIO', tokenCount: 40 }],
    };
    expect(read(gemini).classes).toMatchObject({
      input: 300,
      inputAudio: 400,
      cacheRead: 300,
      output: 20,
      outputAudio: 40,
    });
    const realtime = {
      total_tokens: 253,
      input_tokens: 132,
      output_tokens: 121,
      input_token_details: {
        text_tokens: 119,
        audio_tokens: 13,
        cached_tokens: 64,
        cached_tokens_details: { text_tokens: 60, audio_tokens: 4 },
      },
      output_token_details: { text_tokens: 30, audio_tokens: 91 },
    };
    expect(read(realtime).classes).toMatchObject({
      input: 59,
      inputAudio: 9,
      cacheRead: 64,
      output: 30,
      outputAudio: 91,
    });
  });

  it('names batch calls and the service tier where it contains them', () => {
    expect(read({ input_tokens: 1, output_tokens: 1, service_tier: 'batch' })).toMatchObject({
      isBatch: true,
      serviceTier: 'batch',
    });
    expect(read({ input_tokens: 1, output_tokens: 1, service_tier: 'priority' })).toMatchObject({
      isBatch: false,
      serviceTier: 'priority',
    });
  });

  it.each([
    [{}],
    [{ search_units: 3 }],
    [{ cost: 0.5 }],
    [{ input: null, output: null }],
    [{ nested: { deep: { deeper: { x: 1 } } } }],
  ])('%j holds no count, which is not zero', (usage) => {
    expect(readUsageObject(usage as { [key: string]: Json }, 'usage')).toBeUndefined();
  });

  it.each([
    [{ prompt_tokens: -1 }],
    [{ prompt_tokens: 1.5 }],
    [{ input: 'NaN' }],
    [{ promptTokenCount: JSON.parse('1e400') }],
  ])('%j is a fault that names its field', (usage) => {
    expect(() => readUsageObject(usage as { [key: string]: Json }, 'usage')).toThrow(/^usage\.\w+: /);
  });
});
