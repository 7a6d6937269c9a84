/**
 * One OpenAI call (prompt 1200 of which 1000 cached, completion 300 of which 100 reasoning) and one Anthropic call
 * (input 50, cache write 200 for 5 minutes, cache read 1000, output 300) as real clients report them: the attributes
 * that the released packages send, recorded from runs against loopback providers.
 */
import type { SpanParts } from './support.js';

export interface Captured {
  client: string;
  parts: SpanParts;
  /** input, cache read, cache write, output, reasoning as far as the client sends them. */
  classes: [number, number, number, number, number];
  source: string;
  semantics: 'inclusive' | 'exclusive' | 'disjoint';
  missing: string[];
  requestId: 'response' | 'span';
  provider?: string;
}

const OPENINFERENCE_OPENAI = {
  'openinference.span.kind': 'LLM',
  'llm.system': 'openai',
  'llm.provider': 'openai',
  'llm.model_name': 'gpt-4o-2024-08-06',
  'input.value': '{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}',
  'input.mime_type': 'application/json',
  'llm.input_messages.0.message.role': 'user',
  'llm.input_messages.0.message.content': 'hi',
  'llm.token_count.prompt': 1200,
  'llm.token_count.completion': 300,
  'llm.token_count.total': 1500,
  'llm.token_count.prompt_details.cache_read': 1000,
  'llm.token_count.completion_details.reasoning': 100,
  'llm.finish_reason': 'stop',
};

const OPENINFERENCE_ANTHROPIC = {
  'openinference.span.kind': 'LLM',
  'llm.provider': 'anthropic',
  'llm.system': 'anthropic',
  'llm.request.model_name': 'claude-sonnet-4-5',
  'llm.model_name': 'claude-sonnet-4-5-20250929',
  'llm.token_count.completion': 300,
};

const TRACELOOP_ANTHROPIC = {
  'gen_ai.provider.name': 'anthropic',
  'gen_ai.operation.name': 'chat',
  'gen_ai.request.model': 'claude-sonnet-4-5',
  'gen_ai.response.model': 'claude-sonnet-4-5-20250929',
  'gen_ai.usage.output_tokens': 300,
  'gen_ai.usage.cache_read.input_tokens': 1000,
  'gen_ai.usage.cache_creation.input_tokens': 200,
};

const TRACELOOP_OPENAI = {
  'gen_ai.provider.name': 'openai',
  'gen_ai.operation.name': 'chat',
  'gen_ai.request.model': 'gpt-4o',
  'gen_ai.response.model': 'gpt-4o-2024-08-06',
  'gen_ai.response.id': 'chatcmpl-1',
  'gen_ai.usage.input_tokens': 1200,
  'gen_ai.usage.output_tokens': 300,
  'gen_ai.usage.total_tokens': 1500,
};

const LANGFUSE = { 'langfuse.observation.type': 'generation', 'langfuse.observation.model.name': 'gpt-4o' };

export const CAPTURED: Captured[] = [
  {
    client: 'OpenInference OpenAI 4.2.7, JavaScript',
    parts: {
      scope: '@arizeai/openinference-instrumentation-openai',
      version: '4.2.7',
      attributes: OPENINFERENCE_OPENAI,
    },
    classes: [200, 1000, 0, 300, 100],
    source: 'openinference',
    semantics: 'inclusive',
    missing: ['cache_write_5m'],
    requestId: 'span',
  },
  {
    client: 'OpenInference OpenAI 0.1.66, Python',
    parts: {
      scope: 'openinference.instrumentation.openai',
      version: '0.1.66',
      attributes: OPENINFERENCE_OPENAI,
    },
    classes: [200, 1000, 0, 300, 100],
    source: 'openinference',
    semantics: 'inclusive',
    missing: [],
    requestId: 'span',
  },
  {
    client: 'OpenInference Anthropic 0.2.8, JavaScript',
    parts: {
      scope: '@arizeai/openinference-instrumentation-anthropic',
      version: '0.2.8',
      attributes: {
        ...OPENINFERENCE_ANTHROPIC,
        'llm.token_count.prompt': 1250,
        'llm.token_count.total': 1550,
        'llm.token_count.prompt_details.cache_read': 1000,
        'llm.token_count.prompt_details.cache_write': 200,
      },
    },
    classes: [50, 1000, 200, 300, 0],
    source: 'openinference',
    semantics: 'inclusive',
    missing: ['reasoning', 'cache_write_1h'],
    requestId: 'span',
  },
  {
    client: 'OpenInference Anthropic 0.1.22, JavaScript',
    parts: {
      scope: '@arizeai/openinference-instrumentation-anthropic',
      version: '0.1.22',
      attributes: { ...OPENINFERENCE_ANTHROPIC, 'llm.token_count.prompt': 50, 'llm.token_count.total': 350 },
    },
    classes: [50, 0, 0, 300, 0],
    source: 'openinference',
    semantics: 'exclusive',
    missing: ['cache_read', 'cache_write_5m', 'cache_write_1h', 'reasoning'],
    requestId: 'span',
  },
  {
    client: 'OpenInference Anthropic 3.1.0, Python',
    parts: {
      scope: 'openinference.instrumentation.anthropic',
      version: '3.1.0',
      attributes: {
        ...OPENINFERENCE_ANTHROPIC,
        'llm.token_count.prompt': 1250,
        'llm.token_count.total': 1550,
        'llm.token_count.prompt_details.cache_read': 1000,
        'llm.token_count.prompt_details.cache_write': 200,
      },
    },
    classes: [50, 1000, 200, 300, 0],
    source: 'openinference',
    semantics: 'inclusive',
    missing: ['cache_write_1h'],
    requestId: 'span',
  },
  {
    client: 'Traceloop OpenAI 0.27.0, JavaScript',
    parts: { scope: '@traceloop/instrumentation-openai', version: '0.27.0', attributes: TRACELOOP_OPENAI },
    classes: [1200, 0, 0, 300, 0],
    source: 'traceloop',
    semantics: 'inclusive',
    missing: ['cache_read', 'cache_write_5m', 'reasoning'],
    requestId: 'response',
  },
  {
    client: 'Traceloop OpenAI 0.62.4, Python',
    parts: {
      scope: 'opentelemetry.instrumentation.openai.v1',
      version: '0.62.4',
      attributes: {
        ...TRACELOOP_OPENAI,
        'gen_ai.openai.api_base': 'https://api.openai.com/v1/',
        'gen_ai.usage.cache_read.input_tokens': 1000,
        'gen_ai.usage.reasoning_tokens': 100,
      },
    },
    classes: [200, 1000, 0, 300, 100],
    source: 'traceloop',
    semantics: 'inclusive',
    missing: ['cache_write_5m'],
    requestId: 'response',
  },
  {
    client: 'Traceloop Anthropic 0.27.0, JavaScript: exclusive, its total without the cache',
    parts: {
      scope: '@traceloop/instrumentation-anthropic',
      version: '0.27.0',
      attributes: {
        ...TRACELOOP_ANTHROPIC,
        'gen_ai.usage.input_tokens': 50,
        'gen_ai.usage.total_tokens': 350,
      },
    },
    classes: [50, 1000, 200, 300, 0],
    source: 'traceloop',
    semantics: 'exclusive',
    missing: ['reasoning', 'cache_write_1h'],
    requestId: 'span',
  },
  {
    client: 'Traceloop Anthropic after 0.27.0, JavaScript',
    parts: {
      scope: '@traceloop/instrumentation-anthropic',
      version: '0.28.0',
      attributes: {
        ...TRACELOOP_ANTHROPIC,
        'gen_ai.usage.input_tokens': 1250,
        'gen_ai.usage.total_tokens': 1550,
      },
    },
    classes: [50, 1000, 200, 300, 0],
    source: 'traceloop',
    semantics: 'inclusive',
    missing: ['reasoning', 'cache_write_1h'],
    requestId: 'span',
  },
  {
    client: 'Traceloop Anthropic 0.62.4, Python',
    parts: {
      scope: 'opentelemetry.instrumentation.anthropic',
      version: '0.62.4',
      attributes: {
        ...TRACELOOP_ANTHROPIC,
        'gen_ai.usage.input_tokens': 1250,
        'gen_ai.usage.total_tokens': 1550,
        'gen_ai.response.id': 'msg_1',
      },
    },
    classes: [50, 1000, 200, 300, 0],
    source: 'traceloop',
    semantics: 'inclusive',
    missing: ['reasoning', 'cache_write_1h'],
    requestId: 'response',
  },
  {
    client: '@opentelemetry/instrumentation-openai 0.21.0',
    parts: {
      scope: '@opentelemetry/instrumentation-openai',
      version: '0.21.0',
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.system': 'openai',
        'gen_ai.request.model': 'gpt-4o',
        'gen_ai.response.model': 'gpt-4o-2024-08-06',
        'gen_ai.response.id': 'chatcmpl-1',
        'gen_ai.response.finish_reasons': ['stop'],
        'gen_ai.usage.input_tokens': 1200,
        'gen_ai.usage.output_tokens': 300,
        'server.address': 'api.openai.com',
        'server.port': 443,
      },
    },
    classes: [1200, 0, 0, 300, 0],
    source: 'otel',
    semantics: 'inclusive',
    missing: ['cache_read', 'cache_write_5m', 'reasoning'],
    requestId: 'response',
  },
  {
    client: 'AI SDK 7 with @ai-sdk/otel 1, Anthropic',
    parts: {
      scope: 'gen_ai',
      version: '',
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': 'anthropic',
        'gen_ai.request.model': 'claude-sonnet-4-5',
        'gen_ai.response.model': 'claude-sonnet-4-5-20250929',
        'gen_ai.response.id': 'msg_1',
        'gen_ai.response.finish_reasons': ['stop'],
        'gen_ai.usage.input_tokens': 1250,
        'gen_ai.usage.output_tokens': 300,
        'gen_ai.usage.cache_read.input_tokens': 1000,
        'gen_ai.usage.cache_creation.input_tokens': 200,
      },
    },
    classes: [50, 1000, 200, 300, 0],
    source: 'ai_sdk',
    semantics: 'inclusive',
    missing: ['reasoning', 'cache_write_1h'],
    requestId: 'response',
  },
  {
    client: 'AI SDK 5, Anthropic: raw input, cache writes only in the provider metadata',
    parts: {
      scope: 'ai',
      version: '',
      attributes: {
        'ai.operationId': 'ai.generateText.doGenerate',
        'gen_ai.system': 'anthropic.messages',
        'gen_ai.request.model': 'claude-sonnet-4-5',
        'gen_ai.response.id': 'msg_1',
        'gen_ai.usage.input_tokens': 5000,
        'gen_ai.usage.output_tokens': 300,
        'ai.usage.cachedInputTokens': 1000,
        'ai.response.providerMetadata':
          '{"anthropic":{"cacheCreationInputTokens":200,"usage":{"input_tokens":5000,"cache_creation_input_tokens":200,"cache_creation":{"ephemeral_5m_input_tokens":200,"ephemeral_1h_input_tokens":0},"output_tokens":300}}}',
      },
    },
    classes: [5000, 1000, 200, 300, 0],
    source: 'ai_sdk',
    semantics: 'exclusive',
    missing: [],
    requestId: 'response',
  },
  {
    client: 'AI SDK 6 in its older spans, Anthropic: inclusive',
    parts: {
      scope: 'ai',
      version: '',
      attributes: {
        'ai.operationId': 'ai.generateText.doGenerate',
        'gen_ai.system': 'anthropic.messages',
        'gen_ai.request.model': 'claude-sonnet-4-5',
        'gen_ai.response.id': 'msg_1',
        'gen_ai.usage.input_tokens': 6200,
        'gen_ai.usage.output_tokens': 300,
        'ai.usage.cachedInputTokens': 1000,
        'ai.usage.inputTokenDetails.noCacheTokens': 5000,
        'ai.usage.inputTokenDetails.cacheReadTokens': 1000,
        'ai.usage.inputTokenDetails.cacheWriteTokens': 200,
        'ai.usage.totalTokens': 6500,
      },
    },
    classes: [5000, 1000, 200, 300, 0],
    source: 'ai_sdk',
    semantics: 'inclusive',
    missing: ['cache_write_1h'],
    requestId: 'response',
  },
  {
    client: 'Langfuse OpenAI 5.11.1, JavaScript: disjoint buckets, no provider named',
    parts: {
      scope: 'langfuse-sdk',
      version: '5.11.1',
      attributes: {
        ...LANGFUSE,
        'langfuse.observation.usage_details':
          '{"input":200,"output":200,"total":1500,"input_cached_tokens":1000,"input_audio_tokens":0,"output_reasoning_tokens":100,"output_audio_tokens":0,"output_accepted_prediction_tokens":0,"output_rejected_prediction_tokens":0}',
      },
    },
    classes: [200, 1000, 0, 300, 100],
    source: 'langfuse',
    semantics: 'disjoint',
    missing: [],
    requestId: 'span',
    provider: 'openai',
  },
  {
    client: 'Langfuse OpenAI 5.0.4, Python: the provider’s own words',
    parts: {
      scope: 'langfuse-sdk',
      version: '5.0.4',
      attributes: {
        ...LANGFUSE,
        'langfuse.observation.usage_details':
          '{"prompt_tokens":1200,"completion_tokens":300,"total_tokens":1500,"prompt_tokens_details":{"cached_tokens":1000,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":100}}',
      },
    },
    classes: [200, 1000, 0, 300, 100],
    source: 'langfuse',
    semantics: 'inclusive',
    missing: [],
    requestId: 'span',
    provider: 'openai',
  },
  {
    client: 'Langfuse 5.0.4 by hand for Anthropic, Python',
    parts: {
      scope: 'langfuse-sdk',
      version: '5.0.4',
      attributes: {
        ...LANGFUSE,
        'langfuse.observation.model.name': 'claude-sonnet-4-5',
        'langfuse.observation.usage_details':
          '{"input":50,"output":300,"cache_read_input_tokens":1000,"cache_creation_input_tokens":200}',
      },
    },
    classes: [50, 1000, 200, 300, 0],
    source: 'langfuse',
    semantics: 'exclusive',
    missing: ['reasoning', 'cache_write_1h'],
    requestId: 'span',
    provider: 'anthropic',
  },
  {
    client: 'the Anthropic SDK 2.11, Python',
    parts: {
      scope: 'com.anthropic.sdk.python',
      version: '2.11.0',
      name: 'anthropic.messages.create',
      attributes: {
        'gen_ai.provider.name': 'anthropic',
        'gen_ai.operation.name': 'chat',
        'gen_ai.request.model': 'claude-sonnet-4-5',
        'gen_ai.response.id': 'msg_1',
        'gen_ai.response.model': 'claude-sonnet-4-5-20250929',
        'gen_ai.usage.input_tokens': 1250,
        'gen_ai.usage.cache_write.input_tokens': 200,
        'gen_ai.usage.cache_read.input_tokens': 1000,
        'anthropic.usage.cache_creation.ephemeral_5m_input_tokens': 200,
        'anthropic.usage.cache_creation.ephemeral_1h_input_tokens': 0,
        'anthropic.response.service_tier': 'standard',
        'gen_ai.usage.output_tokens': 300,
        'anthropic.message.stop_reason': 'end_turn',
        'server.address': 'api.anthropic.com',
      },
    },
    classes: [50, 1000, 200, 300, 0],
    source: 'anthropic_sdk',
    semantics: 'inclusive',
    missing: [],
    requestId: 'response',
  },
  {
    client: 'pydantic-ai, with both of its names for the cache',
    parts: {
      scope: 'pydantic-ai',
      version: '2.68.0',
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': 'anthropic',
        'gen_ai.system': 'anthropic',
        'gen_ai.request.model': 'claude-sonnet-4-5',
        'gen_ai.response.id': 'msg_1',
        'gen_ai.usage.input_tokens': 1250,
        'gen_ai.usage.output_tokens': 300,
        'gen_ai.usage.cache_creation.input_tokens': 200,
        'gen_ai.usage.cache_read.input_tokens': 1000,
        'gen_ai.usage.details.cache_write_tokens': 200,
        'gen_ai.usage.details.cache_read_tokens': 1000,
        'operation.cost': 0.0057,
      },
    },
    classes: [50, 1000, 200, 300, 0],
    source: 'pydantic_ai',
    semantics: 'inclusive',
    missing: ['cache_write_1h'],
    requestId: 'response',
  },
  {
    client: 'LiteLLM’s otel callback',
    parts: {
      scope: 'litellm',
      version: '',
      attributes: {
        'gen_ai.system': 'azure',
        'gen_ai.request.model': 'gpt-4o',
        'gen_ai.response.model': 'gpt-4o-2024-08-06',
        'gen_ai.response.id': 'chatcmpl-1',
        'gen_ai.usage.prompt_tokens': 1200,
        'gen_ai.usage.completion_tokens': 300,
        'gen_ai.usage.total_tokens': 1500,
        'gen_ai.cost.total_cost': 0.00475,
        'metadata.user_api_key_team_id': 'team-1',
      },
    },
    classes: [1200, 0, 0, 300, 0],
    source: 'litellm',
    semantics: 'inclusive',
    missing: ['cache_read', 'cache_write_5m', 'cache_write_1h', 'reasoning'],
    requestId: 'response',
    provider: 'azure_openai',
  },
];
