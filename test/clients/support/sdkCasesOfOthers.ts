/** Calls of the Python clients of Google, Mistral and Cohere. */
import { asksFor, isStream, isWhole, numbered, type SdkCase } from './sdkCase.js';

const GEMINI = 'gemini-2.5-flash';
const geminiUsage = {
  promptTokenCount: 1_200,
  cachedContentTokenCount: 1_000,
  candidatesTokenCount: 40,
  thoughtsTokenCount: 25,
  totalTokenCount: 1_265,
};
const gemini = (id: string, parts: object[], finishReason?: string, usageMetadata?: object) => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...(finishReason ? { finishReason } : {}) }],
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
      {
        path: `models/${GEMINI}:generateContent`,
        json: gemini('gem-1', [{ text: 'Hi' }], 'STOP', geminiUsage),
      },
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

const googleBatchFile: SdkCase = {
  name: 'google_batch_file',
  answers(createdAt) {
    const time = new Date(createdAt * 1_000).toISOString();
    const { responseId: _, ...unnamed } = gemini('', [{ text: 'Hi' }], 'STOP', geminiUsage);
    const lines = [
      { key: 'a', response: gemini('gem-f1', [{ text: 'Hi' }], 'STOP', geminiUsage) },
      { key: 'b', response: unnamed },
      { key: 'c', error: { code: 3, message: 'no' } },
    ];
    return [
      {
        path: '/batches/b2',
        json: {
          name: 'batches/b2',
          metadata: {
            model: `models/${GEMINI}`,
            state: 'BATCH_STATE_SUCCEEDED',
            createTime: time,
            endTime: time,
            output: { responsesFile: 'files/results-b2' },
          },
          done: true,
        },
      },
      {
        path: '/files/results-b2:download',
        text: lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
      },
      { path: '/files/film:download', text: `film\n${JSON.stringify(lines[0])}\n` },
    ];
  },
  events: [1, 2].map(() => ({ ...geminiOk, feature: null, batch: 'batches/b2' })),
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
        path: '/v1/fim/completions',
        json: {
          id: 'fim-1',
          object: 'chat.completion',
          created: createdAt,
          model: 'codestral-latest',
          choices: [choice],
          usage: mistralUsage,
        },
      },
      {
        path: '/v1/agents/completions',
        json: {
          id: 'agent-1',
          object: 'chat.completion',
          created: createdAt,
          model: MISTRAL,
          choices: [choice],
          usage: mistralUsage,
        },
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
    ];
  },
  events: [
    { ...mistralOk, feature: 'whole' },
    { ...mistralOk, feature: 'stream', stop: 'tool_calls' },
    { provider: 'mistral', model: MISTRAL, status: 'cancelled', stop: 'unknown', feature: 'left' },
    { ...mistralOk, feature: 'fill', model: 'codestral-latest' },
    // The name is the agent's; the price is that of the model which answered.
    { ...mistralOk, feature: 'agent', model: 'ag:1:helper', pricedAs: MISTRAL },
    { ...mistralOk, model: 'mistral-embed', stop: 'unknown', feature: null, tokens: { input: 9 } },
    { provider: 'mistral', model: 'mistral-absent', status: 'error', stop: 'unknown', feature: null },
  ],
};

const mistralBatch: SdkCase = {
  name: 'mistral_batch',
  answers(createdAt) {
    const item = (index: number) => ({
      id: `job-result-${index}`,
      custom_id: `c-${index}`,
      response: {
        status_code: 200,
        body: {
          id: `cmpl-b${index}`,
          object: 'chat.completion',
          created: createdAt,
          model: MISTRAL,
          choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }],
          usage: mistralUsage,
        },
      },
      error: null,
    });
    const refused = {
      id: 'job-result-9',
      custom_id: 'c-9',
      response: { status_code: 422, body: { detail: 'no' } },
    };
    const job = (more: object) => ({
      object: 'batch',
      input_files: ['file-in'],
      endpoint: '/v1/chat/completions',
      model: MISTRAL,
      errors: [],
      status: 'SUCCESS',
      created_at: createdAt,
      completed_at: createdAt,
      total_requests: 2,
      completed_requests: 2,
      succeeded_requests: 2,
      failed_requests: 0,
      ...more,
    });
    return [
      {
        path: '/v1/batch/jobs',
        json: { object: 'list', total: 1, data: [job({ id: 'job-1', output_file: 'file-out' })] },
      },
      { path: '/v1/batch/jobs/job-2', json: job({ id: 'job-2', outputs: [item(3), refused] }) },
      {
        path: '/v1/files/file-out/content',
        text: [item(1), item(2), refused].map((line) => `${JSON.stringify(line)}\n`).join(''),
        headers: { 'content-type': 'application/octet-stream' },
      },
    ];
  },
  events: ['job-1', 'job-1', 'job-2'].map((batch) => ({ ...mistralOk, feature: null, batch })),
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

export const OTHER_CASES = [googleGenAi, googleBatchFile, mistralChat, mistralBatch, cohereChat];
