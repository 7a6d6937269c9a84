/**
 * A loopback fake of OpenAI's API: chat completions, Responses and embeddings, plain and streamed, speaking
 * the protocol of OpenAI's API reference (fields as in the types of its official client 6.49.0).
 */
import {
  type FakeProvider,
  type ProviderAnswer,
  type ProviderProtocol,
  startFakeProvider,
} from './fakeProvider.js';
import { type PlannedCall, type TrueUsage, wholeInput } from './plannedCall.js';

const CREATED_SECONDS = 1_790_000_000;
const WORDS = ['It', ' is', ' done', '.'];
const TEXT = WORDS.join('');

/** Starts the fake; clients take `${origin}/v1` as their base URL. */
export function startOpenAiFake(plan: readonly PlannedCall[]): Promise<FakeProvider> {
  return startFakeProvider(plan, PROTOCOL);
}

const PROTOCOL: ProviderProtocol = {
  answer(call, path, body) {
    if (path === '/v1/chat/completions') return chatAnswer(call, body);
    if (path === '/v1/responses') return responsesAnswer(call);
    return path === '/v1/embeddings' ? embeddingsAnswer(call, body) : undefined;
  },
  error(httpStatus, message) {
    const type = httpStatus === 429 ? 'rate_limit_exceeded' : 'invalid_request_error';
    return {
      // The clients' wait before a retry, shortened; their default is half a second and more.
      headers: { 'retry-after-ms': '5', 'x-request-id': 'req_fake' },
      body: { error: { message, type: httpStatus >= 500 ? 'server_error' : type, param: null, code: null } },
    };
  },
};

/** Usage as chat completions report it: `prompt_tokens` includes tokens read from and written to the cache. */
export function chatUsage(usage: TrueUsage): Record<string, unknown> {
  const prompt = wholeInput(usage);
  return {
    prompt_tokens: prompt,
    completion_tokens: usage.output,
    total_tokens: prompt + usage.output,
    prompt_tokens_details: {
      cached_tokens: usage.cacheRead,
      audio_tokens: 0,
      ...(usage.cacheWrite5m > 0 ? { cache_write_tokens: usage.cacheWrite5m } : {}),
    },
    completion_tokens_details: {
      reasoning_tokens: usage.reasoning,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}

/** Usage as the Responses API reports it; input contains the cached tokens here too. */
export function responsesUsage(usage: TrueUsage): Record<string, unknown> {
  const input = wholeInput(usage);
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: usage.cacheRead, cache_write_tokens: usage.cacheWrite5m },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: usage.reasoning },
    total_tokens: input + usage.output,
  };
}

function chatAnswer(call: PlannedCall, body: Record<string, unknown>): ProviderAnswer {
  const id = `chatcmpl-${call.id}`;
  const common = {
    id,
    created: CREATED_SECONDS,
    model: call.responseModel,
    service_tier: 'default',
    system_fingerprint: 'fp_fake',
  };
  const chunk = (delta: unknown, finish: string | null): [null, string] => [
    null,
    JSON.stringify({
      ...common,
      object: 'chat.completion.chunk',
      choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    }),
  ];
  const options = body.stream_options as { include_usage?: boolean } | undefined;
  const usageChunk: [null, string] = [
    null,
    JSON.stringify({
      ...common,
      object: 'chat.completion.chunk',
      choices: [],
      usage: chatUsage(call.usage),
    }),
  ];
  return {
    responseId: id,
    eventsBeforeAbort: 2,
    json: () => ({
      ...common,
      object: 'chat.completion',
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: TEXT, refusal: null, annotations: [] },
          logprobs: null,
          finish_reason: 'stop',
        },
      ],
      usage: chatUsage(call.usage),
    }),
    events: () => [
      chunk({ role: 'assistant', content: '', refusal: null }, null),
      ...WORDS.map((word) => chunk({ content: word }, null)),
      chunk({}, 'stop'),
      ...(options?.include_usage === true ? [usageChunk] : []),
      [null, '[DONE]'],
    ],
  };
}

function responsesAnswer(call: PlannedCall): ProviderAnswer {
  const id = `resp_${call.id}`;
  const content = { type: 'output_text', text: TEXT, annotations: [], logprobs: [] };
  const item = { id: `msg_${call.id}`, type: 'message', role: 'assistant' };
  const response = (status: string, output: unknown[], usage: unknown) => ({
    id,
    object: 'response',
    created_at: CREATED_SECONDS,
    status,
    error: null,
    incomplete_details: null,
    instructions: null,
    max_output_tokens: null,
    model: call.responseModel,
    output,
    parallel_tool_calls: true,
    previous_response_id: null,
    reasoning: { effort: null, summary: null },
    service_tier: 'default',
    store: false,
    temperature: 1,
    text: { format: { type: 'text' } },
    tool_choice: 'auto',
    tools: [],
    top_p: 1,
    truncation: 'disabled',
    usage,
    user: null,
    metadata: {},
  });
  const finished = () =>
    response('completed', [{ ...item, status: 'completed', content: [content] }], responsesUsage(call.usage));
  return {
    responseId: id,
    eventsBeforeAbort: 5,
    json: finished,
    events: () => {
      const started = response('in_progress', [], null);
      const place = { item_id: item.id, output_index: 0, content_index: 0 };
      const pending = { ...item, status: 'in_progress', content: [] };
      const events: Record<string, unknown>[] = [
        { type: 'response.created', response: started },
        { type: 'response.in_progress', response: started },
        { type: 'response.output_item.added', output_index: 0, item: pending },
        { type: 'response.content_part.added', ...place, part: { ...content, text: '' } },
        ...WORDS.map((delta) => ({ type: 'response.output_text.delta', ...place, delta, logprobs: [] })),
        { type: 'response.output_text.done', ...place, text: TEXT, logprobs: [] },
        { type: 'response.content_part.done', ...place, part: content },
        {
          type: 'response.output_item.done',
          output_index: 0,
          item: { ...item, status: 'completed', content: [content] },
        },
        { type: 'response.completed', response: finished() },
      ];
      return events.map((event, index) => [
        String(event.type),
        JSON.stringify({ ...event, sequence_number: index }),
      ]);
    },
  };
}

function embeddingsAnswer(call: PlannedCall, body: Record<string, unknown>): ProviderAnswer {
  const vector = [0.25, -0.5, 0.125];
  // The official clients ask for base64 and decode it themselves.
  const embedding =
    body.encoding_format === 'base64'
      ? Buffer.from(new Float32Array(vector).buffer).toString('base64')
      : vector;
  const tokens = wholeInput(call.usage);
  return {
    responseId: null,
    eventsBeforeAbort: 0,
    json: () => ({
      object: 'list',
      data: [{ object: 'embedding', index: 0, embedding }],
      model: call.responseModel,
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    }),
    events: () => [],
  };
}
