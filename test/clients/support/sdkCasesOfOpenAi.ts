/** Calls of OpenAI's Python client, also to Azure and xAI. */
import { asksFor, isStream, isWhole, numbered, type SdkCase } from './sdkCase.js';

const GPT = 'gpt-4o-2024-08-06';
const chatUsage = {
  prompt_tokens: 1_200,
  completion_tokens: 20,
  total_tokens: 1_220,
  prompt_tokens_details: { cached_tokens: 1_000 },
};
const gptTokens = { input: 200, cacheRead: 1_000, output: 20 };
const chat = (id: string, created: number, model = GPT) => ({
  id,
  object: 'chat.completion',
  created,
  model,
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
  usage: chatUsage,
});
const chatChunks = (id: string, created: number, hasUsage: boolean) => {
  const chunk = (content: string, finish: string | null) => ({
    id,
    object: 'chat.completion.chunk',
    created,
    model: GPT,
    choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: finish }],
    usage: null,
  });
  const last = { ...chunk('', null), choices: [], usage: chatUsage };
  return [
    chunk('H', null),
    chunk('ä', null),
    chunk('i', null),
    chunk('', 'stop'),
    ...(hasUsage ? [last] : []),
    '[DONE]',
  ];
};
const gptCall = { provider: 'openai', model: 'gpt-4o', status: 'ok', stop: 'stop' } as const;
const gptOk = { ...gptCall, tokens: gptTokens, pricedAs: GPT } as const;

const openAiChat: SdkCase = {
  name: 'openai_chat',
  answers: (createdAt) => [
    {
      path: '/v1/chat/completions',
      isFor: asksFor('gpt-0-absent'),
      status: 404,
      json: { error: { message: 'no such model', type: 'invalid_request_error', code: 'model_not_found' } },
    },
    numbered(
      '/v1/chat/completions',
      isWhole,
      (index) => ({ json: chat(`chatcmpl-${index}`, createdAt) }),
      // The first call is retried inside the client.
      { failures: { status: 503, times: 1 } },
    ),
    numbered(
      '/v1/chat/completions',
      (body) => body.includes('include_usage'),
      (index) => ({ events: chatChunks(`chatcmpl-s${index}`, createdAt, true) }),
    ),
    numbered('/v1/chat/completions', isStream, (index) => ({
      events: chatChunks(`chatcmpl-p${index}`, createdAt, false),
    })),
  ],
  events: [
    { ...gptOk, feature: 'whole', session: 's-1' },
    ...['stream', 'helper', 'raw', 'lazy', 'lines', 'copy', 'labeled'].map((feature) => ({
      ...gptOk,
      feature,
    })),
    { ...gptOk, feature: 'context', user: 'u-1' },
    { ...gptCall, feature: 'left', status: 'cancelled', stop: 'unknown' },
    { ...gptCall, model: 'gpt-0-absent', feature: 'failed', status: 'error', stop: 'unknown' },
  ],
};

const responseUsage = {
  input_tokens: 1_200,
  input_tokens_details: { cached_tokens: 1_000 },
  output_tokens: 20,
  output_tokens_details: { reasoning_tokens: 5 },
  total_tokens: 1_220,
};
const response = (id: string, createdAt: number, more: object = {}) => ({
  id,
  object: 'response',
  created_at: createdAt,
  status: 'completed',
  background: false,
  error: null,
  incomplete_details: null,
  instructions: null,
  metadata: {},
  model: GPT,
  output: [
    {
      type: 'message',
      id: `msg_${id}`,
      role: 'assistant',
      status: 'completed',
      content: [{ type: 'output_text', text: 'Hi', annotations: [] }],
    },
  ],
  parallel_tool_calls: true,
  temperature: 1,
  tool_choice: 'auto',
  tools: [],
  top_p: 1,
  usage: responseUsage,
  ...more,
});
const responseEvents = (id: string, createdAt: number) => {
  const whole = response(id, createdAt);
  const [item] = whole.output;
  const begun = { ...whole, status: 'in_progress', output: [], usage: null };
  const part = { type: 'output_text', text: '', annotations: [] };
  const place = { item_id: item?.id, output_index: 0, content_index: 0 };
  return [
    { type: 'response.created', sequence_number: 0, response: begun },
    {
      type: 'response.output_item.added',
      sequence_number: 1,
      output_index: 0,
      item: { ...item, status: 'in_progress', content: [] },
    },
    { type: 'response.content_part.added', sequence_number: 2, ...place, part },
    { type: 'response.output_text.delta', sequence_number: 3, ...place, delta: 'Hi', logprobs: [] },
    { type: 'response.completed', sequence_number: 4, response: whole },
  ];
};

const openAiResponses: SdkCase = {
  name: 'openai_responses',
  answers: (createdAt) => [
    {
      path: '/v1/responses',
      isFor: asksFor('"background"'),
      json: response('resp_background', createdAt, {
        background: true,
        status: 'queued',
        usage: null,
        output: [],
      }),
    },
    numbered('/v1/responses', isWhole, (index) => ({ json: response(`resp_${index}`, createdAt) })),
    numbered(
      '/v1/responses',
      isStream,
      (index) => ({ events: responseEvents(`resp_s${index}`, createdAt) }),
      { hasEventNames: true },
    ),
    {
      path: '/v1/responses/resp_background',
      json: response('resp_background', createdAt, { background: true }),
    },
  ],
  events: [
    ...['whole', 'stream', 'helper'].map((feature) => ({ ...gptOk, feature })),
    // Made in the background, and fetched twice.
    { ...gptOk, model: GPT, feature: null },
  ],
};

const openAiMedia: SdkCase = {
  name: 'openai_media',
  answers: (createdAt) => [
    { path: '/v1/audio/speech', text: 'sound', headers: { 'content-type': 'audio/mpeg' } },
    {
      path: '/v1/audio/transcriptions',
      json: {
        text: 'Hi',
        usage: {
          type: 'tokens',
          input_tokens: 14,
          input_token_details: { text_tokens: 0, audio_tokens: 14 },
          output_tokens: 45,
          total_tokens: 59,
        },
      },
    },
    {
      path: '/v1/images/generations',
      json: {
        created: createdAt,
        data: [{ b64_json: 'AA==' }],
        usage: {
          input_tokens: 50,
          input_tokens_details: { text_tokens: 50, image_tokens: 0 },
          output_tokens: 50,
          total_tokens: 100,
        },
      },
    },
    {
      path: '/v1/embeddings',
      json: {
        object: 'list',
        model: 'text-embedding-3-small',
        data: [{ object: 'embedding', index: 0, embedding: [0.5, 1] }],
        usage: { prompt_tokens: 9, total_tokens: 9 },
      },
    },
    {
      path: '/v1/completions',
      json: {
        id: 'cmpl-1',
        object: 'text_completion',
        created: createdAt,
        model: 'gpt-3.5-turbo-instruct',
        choices: [{ index: 0, text: 'Hi', finish_reason: 'length', logprobs: null }],
        usage: { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 },
      },
    },
  ],
  events: [
    { model: 'gpt-4o-mini-tts', feature: null, outputTokens: 0 },
    { model: 'gpt-4o-transcribe', feature: 'minutes', outputTokens: 45 },
    { model: 'gpt-image-1', feature: null, outputTokens: 50 },
    { model: 'text-embedding-3-small', feature: null, tokens: { input: 9 } },
    { model: 'gpt-3.5-turbo-instruct', feature: 'text', stop: 'length', tokens: { input: 9, output: 2 } },
  ].map((one) => ({ provider: 'openai', status: 'ok', stop: 'unknown', ...one })),
};

const openAiBatch: SdkCase = {
  name: 'openai_batch',
  answers(createdAt) {
    const line = (index: number) =>
      JSON.stringify({
        id: `batch_req_${index}`,
        custom_id: `c-${index}`,
        response: {
          status_code: 200,
          request_id: `r-${index}`,
          body: chat(`chatcmpl-b${index}`, createdAt),
        },
        error: null,
      });
    const refused = JSON.stringify({
      id: 'batch_req_9',
      custom_id: 'c-9',
      response: { status_code: 400, request_id: 'r-9', body: { error: { message: 'no' } } },
      error: null,
    });
    return [
      {
        path: '/v1/batches/batch_1',
        json: {
          id: 'batch_1',
          object: 'batch',
          endpoint: '/v1/chat/completions',
          input_file_id: 'file-in',
          completion_window: '24h',
          created_at: createdAt,
          status: 'completed',
          output_file_id: 'file-out',
          completed_at: createdAt,
        },
      },
      { path: '/v1/files/file-out/content', text: `${line(1)}\n${line(2)}\n${refused}\n` },
    ];
  },
  events: [1, 2].map(() => ({ ...gptOk, model: GPT, feature: null, batch: 'batch_1' })),
};

const openAiHosts: SdkCase = {
  name: 'openai_hosts',
  answers: (createdAt) => [
    numbered(
      '/deployments/gpt-4o/chat/completions',
      () => true,
      (index) => ({ json: chat(`chatcmpl-az${index}`, createdAt) }),
    ),
    { path: '/v1/chat/completions', json: chat('chatcmpl-x', createdAt, 'grok-4') },
  ],
  events: [
    { ...gptOk, provider: 'azure_openai', feature: null },
    { ...gptOk, provider: 'azure_openai', feature: null },
    { ...gptOk, provider: 'xai', model: 'grok-4', pricedAs: 'grok-4', feature: null },
  ],
};

export const OPENAI_CASES = [openAiChat, openAiResponses, openAiMedia, openAiBatch, openAiHosts];
