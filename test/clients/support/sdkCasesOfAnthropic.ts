/** Calls of Claude by the Python clients of Anthropic and of AWS. */
import { asksFor, isStream, isWhole, numbered, type SdkCase } from './sdkCase.js';

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

export const ANTHROPIC_CASES = [anthropicMessages, anthropicClouds, bedrockRuntime];
