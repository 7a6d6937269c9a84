/** Calls of the official Python clients, observed by trueup-sdk: the answers of the providers and the expected events. */
import type { ScriptedAnswer } from '../../fakes/scriptedApi.js';
import type { PricedTokens } from '../costCalculator.js';

/** An event that Trueup must have; what is absent is not compared. */
export interface SdkEvent {
  provider: string;
  model: string;
  status: 'ok' | 'error' | 'cancelled';
  stop: string;
  feature: string | null;
  /** By which the cost is computed. Absent: the event has no cost. */
  tokens?: Partial<PricedTokens>;
  /** The model whose price counts, where it is not `model`. */
  pricedAs?: string;
  batch?: string;
  /** Of media, whose cost the table of prices leaves open. */
  outputTokens?: number;
  session?: string;
  user?: string;
}

export interface SdkCase {
  /** The function of `trueup_sdk_cases.py`, and the recording. */
  name: string;
  /** Called for each run, so that ids begin anew. */
  answers(createdAt: number, origin: () => string): readonly ScriptedAnswer[];
  events: readonly SdkEvent[];
  /** The client has no async form. */
  isSyncOnly?: true;
}

const isStream = (body: string) => /"stream":\s*true/.test(body);
const isWhole = (body: string) => !isStream(body);
const asksFor = (text: string) => (body: string) => body.includes(text);

/** An answer that is made anew for each request, with a number for its id: two reports of one id are one call. */
function numbered(
  path: string,
  isFor: (body: string) => boolean,
  make: (index: number) => Pick<ScriptedAnswer, 'json' | 'events' | 'frames' | 'text'>,
  more: Partial<ScriptedAnswer> = {},
): ScriptedAnswer {
  let index = 0;
  let made: ReturnType<typeof make> = {};
  return {
    ...more,
    path,
    isFor(body) {
      if (!isFor(body)) return false;
      index += 1;
      made = make(index);
      return true;
    },
    get json() {
      return made.json;
    },
    get events() {
      return made.events as ScriptedAnswer['events'];
    },
    get frames() {
      return made.frames as ScriptedAnswer['frames'];
    },
    get text() {
      return made.text as string;
    },
  } as ScriptedAnswer;
}

// OpenAI

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
  ],
  events: [
    { model: 'gpt-4o-mini-tts', feature: null, outputTokens: 0 },
    { model: 'gpt-4o-transcribe', feature: 'minutes', outputTokens: 45 },
    { model: 'gpt-image-1', feature: null, outputTokens: 50 },
    { model: 'text-embedding-3-small', feature: null, tokens: { input: 9 } },
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

// Anthropic

const HAIKU = 'claude-haiku-4-5-20251001';
const claudeUsage = {
  input_tokens: 100,
  cache_creation_input_tokens: 30,
  cache_read_input_tokens: 50,
  cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 },
  output_tokens: 20,
  service_tier: 'standard',
};
const claudeTokens = { input: 100, cacheRead: 50, cacheWrite5m: 10, cacheWrite1h: 20, output: 20 };
const message = (id: string, more: object = {}) => ({
  id,
  type: 'message',
  role: 'assistant',
  model: HAIKU,
  content: [{ type: 'text', text: 'Hi' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: claudeUsage,
  ...more,
});
const messageEvents = (id: string) => [
  {
    type: 'message_start',
    message: message(id, { content: [], stop_reason: null, usage: { ...claudeUsage, output_tokens: 1 } }),
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'H' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'i' } },
  { type: 'content_block_stop', index: 0 },
  {
    type: 'message_delta',
    delta: { stop_reason: 'tool_use', stop_sequence: null },
    usage: { output_tokens: 20 },
  },
  { type: 'message_stop' },
];
const claudeOk = {
  provider: 'anthropic',
  model: 'claude-haiku-4-5',
  status: 'ok',
  stop: 'end_turn',
  tokens: claudeTokens,
  pricedAs: HAIKU,
} as const;

const anthropicMessages: SdkCase = {
  name: 'anthropic_messages',
  answers(createdAt, origin) {
    const result = (index: number) =>
      JSON.stringify({
        custom_id: `c-${index}`,
        result:
          index === 3
            ? { type: 'errored', error: { type: 'error', error: { type: 'api_error', message: 'no' } } }
            : {
                type: 'succeeded',
                message: message(`msg_b${index}`, { usage: { ...claudeUsage, service_tier: 'batch' } }),
              },
      });
    const time = new Date(createdAt * 1_000).toISOString();
    return [
      {
        path: '/v1/messages',
        isFor: asksFor('claude-absent'),
        status: 404,
        json: { type: 'error', error: { type: 'not_found_error', message: 'no such model' } },
      },
      numbered('/v1/messages', isWhole, (index) => ({ json: message(`msg_${index}`) }), {
        failures: { status: 529, times: 1 },
      }),
      numbered('/v1/messages', isStream, (index) => ({ events: messageEvents(`msg_s${index}`) }), {
        hasEventNames: true,
      }),
      {
        path: '/v1/messages/batches/msgbatch_1/results',
        text: [1, 2, 3].map((index) => `${result(index)}\n`).join(''),
      },
      {
        path: '/v1/messages/batches/msgbatch_1',
        get json() {
          return {
            id: 'msgbatch_1',
            type: 'message_batch',
            processing_status: 'ended',
            request_counts: { processing: 0, succeeded: 2, errored: 1, canceled: 0, expired: 0 },
            created_at: time,
            expires_at: time,
            ended_at: time,
            archived_at: null,
            cancel_initiated_at: null,
            results_url: `${origin()}/v1/messages/batches/msgbatch_1/results`,
          };
        },
      },
    ];
  },
  events: [
    ...['whole', 'raw', 'lazy', 'beta'].map((feature) => ({ ...claudeOk, feature })),
    ...['stream', 'helper'].map((feature) => ({ ...claudeOk, feature, stop: 'tool_use' })),
    {
      ...claudeOk,
      feature: 'left',
      status: 'cancelled',
      stop: 'unknown',
      tokens: { ...claudeTokens, output: 1 },
    },
    {
      provider: 'anthropic',
      model: 'claude-absent',
      feature: 'failed',
      status: 'error',
      stop: 'unknown',
    },
    ...[1, 2].map(() => ({ ...claudeOk, model: HAIKU, feature: null, batch: 'msgbatch_1' })),
  ],
};

const BEDROCK_HAIKU = 'anthropic.claude-haiku-4-5-20251001-v1:0';
const frame = (event: object) =>
  ['chunk', { bytes: Buffer.from(JSON.stringify(event)).toString('base64') }] as const;
const clouds = [
  { provider: 'aws_bedrock', model: BEDROCK_HAIKU, pricedAs: BEDROCK_HAIKU },
  { provider: 'google', model: 'claude-haiku-4-5@20251001', pricedAs: 'claude-haiku-4-5@20251001' },
];

const anthropicClouds: SdkCase = {
  name: 'anthropic_clouds',
  answers: () => [
    { path: `/model/${BEDROCK_HAIKU}/invoke`, json: message('msg_bdrk_1') },
    numbered(
      `/model/${BEDROCK_HAIKU}/invoke-with-response-stream`,
      () => true,
      (index) => ({ frames: messageEvents(`msg_bdrk_s${index}`).map(frame) }),
    ),
    { path: ':rawPredict', json: message('msg_vrtx_1') },
    numbered(
      ':streamRawPredict',
      () => true,
      (index) => ({ events: messageEvents(`msg_vrtx_s${index}`) }),
      { hasEventNames: true },
    ),
  ],
  events: clouds.flatMap((cloud) =>
    ['end_turn', 'tool_use', 'tool_use'].map((stop) => ({ ...claudeOk, ...cloud, stop, feature: null })),
  ),
};

// Google, Mistral, Cohere, AWS

const GEMINI = 'gemini-2.5-flash';
const geminiUsage = {
  promptTokenCount: 1_200,
  cachedContentTokenCount: 1_000,
  candidatesTokenCount: 40,
  thoughtsTokenCount: 25,
  totalTokenCount: 1_265,
};
const gemini = (id: string, parts: object[], finishReason?: string, usageMetadata?: object) => ({
  candidates: [
    { content: { role: 'model', parts }, index: 0, ...(finishReason ? { finishReason } : {}) },
  ],
  ...(usageMetadata ? { usageMetadata } : {}),
  modelVersion: GEMINI,
  responseId: id,
});
const geminiOk = {
  provider: 'google',
  model: GEMINI,
  status: 'ok',
  stop: 'STOP',
  tokens: { input: 200, cacheRead: 1_000, output: 65 },
} as const;

const googleGenAi: SdkCase = {
  name: 'google_genai',
  answers(createdAt) {
    const time = new Date(createdAt * 1_000).toISOString();
    const answer = gemini('gem-b1', [{ text: 'Hi' }], 'STOP', geminiUsage);
    return [
      { path: `models/${GEMINI}:generateContent`, json: gemini('gem-1', [{ text: 'Hi' }], 'STOP', geminiUsage) },
      numbered(
        `models/${GEMINI}:streamGenerateContent`,
        () => true,
        (index) => ({
          events: [
            gemini(`gem-s${index}`, [{ text: 'A' }], undefined, {
              promptTokenCount: 1_200,
              totalTokenCount: 1_200,
            }),
            gemini(`gem-s${index}`, [{ functionCall: { name: 'f', args: {} } }]),
            gemini(`gem-s${index}`, [{ text: '' }], 'STOP', geminiUsage),
          ],
        }),
      ),
      {
        path: 'models/gemini-2.5-flash-lite:generateContent',
        json: {
          ...gemini('gem-2', [{ text: 'Hi' }], 'STOP', geminiUsage),
          modelVersion: 'gemini-2.5-flash-lite',
        },
      },
      { path: ':batchEmbedContents', json: { embeddings: [{ values: [0.5, 1] }] } },
      { path: ':embedContent', json: { embedding: { values: [0.5, 1] } } },
      {
        path: 'models/gemini-absent:generateContent',
        status: 404,
        json: { error: { code: 404, message: 'no such model', status: 'NOT_FOUND' } },
      },
      {
        path: '/batches/b1',
        json: {
          name: 'batches/b1',
          metadata: {
            model: `models/${GEMINI}`,
            state: 'BATCH_STATE_SUCCEEDED',
            createTime: time,
            endTime: time,
            output: {
              inlinedResponses: {
                inlinedResponses: [{ response: answer }, { error: { code: 3, message: 'no' } }],
              },
            },
          },
          done: true,
        },
      },
    ];
  },
  events: [
    { ...geminiOk, feature: 'whole' },
    { ...geminiOk, feature: 'stream', stop: 'tool_calls' },
    { ...geminiOk, feature: null, model: 'gemini-2.5-flash-lite' },
    { ...geminiOk, feature: 'left', status: 'cancelled', stop: 'unknown', tokens: { input: 1_200 } },
    {
      provider: 'google',
      model: 'gemini-embedding-001',
      status: 'ok',
      stop: 'unknown',
      feature: null,
    },
    { provider: 'google', model: 'gemini-absent', status: 'error', stop: 'unknown', feature: null },
    { ...geminiOk, feature: null, batch: 'batches/b1' },
  ],
};

const MISTRAL = 'mistral-large-latest';
const mistralUsage = { prompt_tokens: 30, completion_tokens: 12, total_tokens: 42 };
const mistralOk = {
  provider: 'mistral',
  model: MISTRAL,
  status: 'ok',
  stop: 'stop',
  tokens: { input: 30, output: 12 },
} as const;

const mistralChat: SdkCase = {
  name: 'mistral_chat',
  answers(createdAt) {
    const choice = {
      index: 0,
      message: { role: 'assistant', content: 'Hi', tool_calls: null },
      finish_reason: 'stop',
    };
    const chunk = (id: string, content: string, finish: string | null, more: object = {}) => ({
      id,
      object: 'chat.completion.chunk',
      created: createdAt,
      model: MISTRAL,
      choices: [{ index: 0, delta: { role: 'assistant', content }, finish_reason: finish }],
      ...more,
    });
    return [
      {
        path: '/v1/chat/completions',
        isFor: asksFor('mistral-absent'),
        status: 404,
        json: { object: 'error', message: 'no such model', type: 'invalid_model', code: '1500' },
      },
      {
        path: '/v1/chat/completions',
        isFor: isWhole,
        json: {
          id: 'cmpl-1',
          object: 'chat.completion',
          created: createdAt,
          model: MISTRAL,
          choices: [choice],
          usage: mistralUsage,
        },
      },
      numbered('/v1/chat/completions', isStream, (index) => ({
        events: [
          chunk(`cmpl-s${index}`, 'H', null),
          chunk(`cmpl-s${index}`, 'i', null),
          chunk(`cmpl-s${index}`, '', 'tool_calls', { usage: mistralUsage }),
          '[DONE]',
        ],
      })),
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
    ];
  },
  events: [
    { ...mistralOk, feature: 'whole' },
    { ...mistralOk, feature: 'stream', stop: 'tool_calls' },
    { provider: 'mistral', model: MISTRAL, status: 'cancelled', stop: 'unknown', feature: 'left' },
    { ...mistralOk, model: 'mistral-embed', stop: 'unknown', feature: null, tokens: { input: 9 } },
    { provider: 'mistral', model: 'mistral-absent', status: 'error', stop: 'unknown', feature: null },
  ],
};

const COMMAND = 'command-a-03-2025';
const cohereUsage = {
  billed_units: { input_tokens: 20, output_tokens: 7 },
  tokens: { input_tokens: 90, output_tokens: 8 },
};
const cohereOk = {
  provider: 'cohere',
  model: COMMAND,
  status: 'ok',
  stop: 'COMPLETE',
  tokens: { input: 20, output: 7 },
} as const;

const cohereChat: SdkCase = {
  name: 'cohere_chat',
  answers: () => [
    { path: '/v2/chat', isFor: asksFor('command-absent'), status: 404, json: { message: 'no such model' } },
    {
      path: '/v2/chat',
      isFor: isWhole,
      json: {
        id: 'c-1',
        finish_reason: 'COMPLETE',
        message: { role: 'assistant', content: [{ type: 'text', text: 'Hi' }] },
        usage: cohereUsage,
      },
    },
    {
      path: '/v2/chat',
      events: [
        { id: 'c-2', type: 'message-start', delta: { message: { role: 'assistant' } } },
        { type: 'content-delta', index: 0, delta: { message: { content: { text: 'Hi' } } } },
        { type: 'message-end', delta: { finish_reason: 'TOOL_CALL', usage: cohereUsage } },
      ],
      hasEventNames: true,
    },
    {
      path: '/v1/chat',
      isFor: isWhole,
      json: { text: 'Hi', generation_id: 'g-1', finish_reason: 'COMPLETE', meta: cohereUsage },
    },
    {
      path: '/v1/chat',
      text: [
        { event_type: 'stream-start', generation_id: 'g-2', is_finished: false },
        { event_type: 'text-generation', text: 'Hi', is_finished: false },
        {
          event_type: 'stream-end',
          is_finished: true,
          finish_reason: 'COMPLETE',
          response: { text: 'Hi', generation_id: 'g-2', finish_reason: 'COMPLETE', meta: cohereUsage },
        },
      ]
        .map((event) => `${JSON.stringify(event)}\n`)
        .join(''),
      headers: { 'content-type': 'application/stream+json' },
    },
    {
      path: '/v1/embed',
      json: {
        response_type: 'embeddings_floats',
        id: 'e-1',
        texts: ['Hello'],
        embeddings: [[0.5, 1]],
        meta: { api_version: { version: '1' }, billed_units: { input_tokens: 3 } },
      },
    },
    {
      path: '/v2/rerank',
      json: {
        id: 'rerank-1',
        results: [{ index: 0, relevance_score: 0.9 }],
        meta: { api_version: { version: '2' }, billed_units: { search_units: 1 } },
      },
    },
  ],
  events: [
    { ...cohereOk, feature: 'whole' },
    { ...cohereOk, feature: 'stream', stop: 'tool_calls' },
    { ...cohereOk, feature: 'older' },
    { ...cohereOk, feature: 'lines' },
    { ...cohereOk, model: 'embed-v4.0', feature: 'threads', stop: 'unknown', tokens: { input: 3 } },
    { provider: 'cohere', model: 'rerank-v3.5', status: 'ok', stop: 'unknown', feature: null },
    { provider: 'cohere', model: 'command-absent', status: 'error', stop: 'unknown', feature: null },
  ],
};

const NOVA = 'amazon.nova-lite-v1:0';
const converseUsage = {
  inputTokens: 15,
  outputTokens: 6,
  totalTokens: 121,
  cacheReadInputTokens: 100,
  cacheWriteInputTokens: 0,
};
const invokeUsage = {
  input_tokens: 15,
  output_tokens: 6,
  cache_read_input_tokens: 100,
  cache_creation_input_tokens: 0,
};
const bedrockOk = {
  provider: 'aws_bedrock',
  model: NOVA,
  status: 'ok',
  stop: 'end_turn',
  tokens: { input: 15, cacheRead: 100, output: 6 },
} as const;

const bedrockRuntime: SdkCase = {
  name: 'bedrock_runtime',
  isSyncOnly: true,
  answers: () => [
    { path: '/model/absent/converse', status: 404, json: { message: 'no such model' } },
    {
      path: `/model/${NOVA}/converse`,
      json: {
        output: { message: { role: 'assistant', content: [{ text: 'Hi' }] } },
        stopReason: 'end_turn',
        usage: converseUsage,
        metrics: { latencyMs: 5 },
      },
      failures: { status: 503, times: 1 },
    },
    {
      path: `/model/${NOVA}/converse-stream`,
      frames: [
        ['messageStart', { role: 'assistant' }],
        ['contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Hi' } }],
        ['messageStop', { stopReason: 'tool_use' }],
        ['metadata', { usage: converseUsage, metrics: { latencyMs: 5 } }],
      ],
    },
    {
      path: `/model/${BEDROCK_HAIKU}/invoke`,
      json: { id: 'msg_bdrk_1', model: HAIKU, stop_reason: 'end_turn', usage: invokeUsage },
    },
    {
      path: `/model/${BEDROCK_HAIKU}/invoke-with-response-stream`,
      frames: [
        frame({
          type: 'message_start',
          message: { id: 'msg_bdrk_2', usage: { ...invokeUsage, output_tokens: 1 } },
        }),
        frame({ type: 'content_block_delta', delta: { text: 'Hi' } }),
        frame({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 6 } }),
        frame({ type: 'message_stop', 'amazon-bedrock-invocationMetrics': { inputTokenCount: 15 } }),
      ],
    },
  ],
  events: [
    { ...bedrockOk, feature: 'whole' },
    { ...bedrockOk, feature: 'stream', stop: 'tool_use' },
    { provider: 'aws_bedrock', model: NOVA, status: 'cancelled', stop: 'unknown', feature: 'left' },
    { ...bedrockOk, model: BEDROCK_HAIKU, feature: 'whole' },
    { ...bedrockOk, model: BEDROCK_HAIKU, feature: 'lines' },
    { ...bedrockOk, model: BEDROCK_HAIKU, feature: 'stream' },
    { provider: 'aws_bedrock', model: 'absent', status: 'error', stop: 'unknown', feature: null },
  ],
};

export const SDK_CASES: readonly SdkCase[] = [
  openAiChat,
  openAiResponses,
  openAiMedia,
  openAiBatch,
  openAiHosts,
  anthropicMessages,
  anthropicClouds,
  googleGenAi,
  mistralChat,
  cohereChat,
  bedrockRuntime,
];
