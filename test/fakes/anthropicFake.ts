/**
 * A loopback fake of Anthropic's Messages API, plain and streamed, speaking the protocol of Anthropic's API
 * reference (fields as in the types of its official client 1.11.0).
 */
import {
  type FakeProvider,
  type ProviderAnswer,
  type ProviderProtocol,
  startFakeProvider,
} from './fakeProvider.js';
import type { PlannedCall, TrueUsage } from './plannedCall.js';

const WORDS = ['It', ' is', ' done', '.'];
const TEXT = WORDS.join('');

/** Starts the fake; clients take `origin` as their base URL. */
export function startAnthropicFake(plan: readonly PlannedCall[]): Promise<FakeProvider> {
  return startFakeProvider(plan, PROTOCOL);
}

const PROTOCOL: ProviderProtocol = {
  answer: (call, path) => (path === '/v1/messages' ? messageAnswer(call) : undefined),
  error(httpStatus, message) {
    const type =
      httpStatus === 429 ? 'rate_limit_error' : httpStatus >= 500 ? 'api_error' : 'invalid_request_error';
    return {
      headers: { 'retry-after-ms': '5', 'request-id': 'req_fake' },
      body: { type: 'error', error: { type, message }, request_id: 'req_fake' },
    };
  },
};

/** Usage as the Messages API reports it: `input_tokens` excludes tokens read from and written to the cache. */
export function messageUsage(usage: TrueUsage): Record<string, unknown> {
  return {
    input_tokens: usage.uncachedInput,
    cache_creation_input_tokens: usage.cacheWrite5m + usage.cacheWrite1h,
    cache_read_input_tokens: usage.cacheRead,
    cache_creation: {
      ephemeral_5m_input_tokens: usage.cacheWrite5m,
      ephemeral_1h_input_tokens: usage.cacheWrite1h,
    },
    output_tokens: usage.output,
    output_tokens_details: { thinking_tokens: usage.reasoning },
    service_tier: 'standard',
    server_tool_use: null,
  };
}

function messageAnswer(call: PlannedCall): ProviderAnswer {
  const id = `msg_${call.id}`;
  const message = (content: unknown[], stopReason: string | null, usage: unknown) => ({
    id,
    type: 'message',
    role: 'assistant',
    model: call.responseModel,
    content,
    stop_reason: stopReason,
    stop_sequence: null,
    usage,
  });
  const told = messageUsage(call.usage);
  return {
    responseId: id,
    eventsBeforeAbort: 4,
    json: () => message([{ type: 'text', text: TEXT, citations: null }], 'end_turn', told),
    events: () => {
      // A stream reports input and cache at its start with one output token, and the final counts at its end.
      const early: Record<string, unknown> = { ...told, output_tokens: 1 };
      delete early.output_tokens_details;
      const late: Record<string, unknown> = { ...told };
      delete late.cache_creation;
      delete late.service_tier;
      const events: Record<string, unknown>[] = [
        { type: 'message_start', message: message([], null, early) },
        {
          type: 'content_block_start',
          index: 0,
          content_block: { type: 'text', text: '', citations: null },
        },
        { type: 'ping' },
        ...WORDS.map((text) => ({
          type: 'content_block_delta',
          index: 0,
          delta: { type: 'text_delta', text },
        })),
        { type: 'content_block_stop', index: 0 },
        {
          type: 'message_delta',
          delta: { stop_reason: 'end_turn', stop_sequence: null },
          usage: late,
        },
        { type: 'message_stop' },
      ];
      return events.map((event) => [String(event.type), JSON.stringify(event)]);
    },
  };
}
