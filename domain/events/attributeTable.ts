/**
 * The meanings of a span's attributes. Each row has a meaning, where to look for it, and the attribute names, of
 * which the first present one counts. The columns of docs/ingest.md are these rows. To support a new client, add
 * its names here.
 *
 * Sources of the names: OpenTelemetry semantic conventions for GenAI up to 1.41, OpenInference, Traceloop, the
 * Vercel AI SDK, Langfuse, the Anthropic SDK 2, pydantic-ai, LiteLLM, OpenLIT, Sentry, Strands, as their released
 * packages send them.
 */

/** A key inside an attribute that holds a map, or the JSON text of one. */
export interface InsideName {
  inside: string;
  key: string;
}

interface AttributeRow {
  /** `span`: only attributes of the span itself; `anywhere`: of the span, then the scope, then the resource. */
  from: 'span' | 'anywhere';
  names: readonly (string | InsideName)[];
}

function inside(attribute: string, key: string): InsideName {
  return { inside: attribute, key };
}

/** A label in the application's metadata, in each place where a client sends metadata. */
function inMetadata(key: string): (string | InsideName)[] {
  return [
    `metadata.${key}`,
    inside('metadata', key),
    `langfuse.trace.metadata.${key}`,
    inside('langfuse.trace.metadata', key),
    `langfuse.observation.metadata.${key}`,
    inside('langfuse.observation.metadata', key),
    `traceloop.association.properties.${key}`,
    `ai.telemetry.metadata.${key}`,
  ];
}

export const ATTRIBUTE_TABLE = {
  provider: {
    from: 'anywhere',
    names: ['gen_ai.provider.name', 'gen_ai.system', 'llm.provider', 'llm.system', 'ai.model.provider'],
  },
  host: {
    from: 'span',
    names: [
      'server.address',
      'url.full',
      'gen_ai.openai.api_base',
      'llm.openai.api_base',
      'openai.api_base',
      'api_base',
      inside('hidden_params', 'api_base'),
      'http.url',
      'net.peer.name',
    ],
  },
  requestModel: {
    from: 'anywhere',
    names: [
      'gen_ai.request.model',
      'llm.request.model_name',
      'ai.model.id',
      'langfuse.observation.model.name',
      // For a failed call, OpenInference names the model only here.
      { inside: 'llm.invocation_parameters', key: 'model' },
      { inside: 'embedding.invocation_parameters', key: 'model' },
    ],
  },
  responseModel: {
    from: 'span',
    names: [
      'gen_ai.response.model',
      'embedding.model_name',
      'llm.model_name',
      'llm.response.model_name',
      'ai.response.model',
    ],
  },
  responseId: { from: 'span', names: ['gen_ai.response.id'] },

  inputTokens: {
    from: 'span',
    names: [
      'gen_ai.usage.input_tokens',
      'gen_ai.usage.prompt_tokens',
      'llm.token_count.prompt',
      'ai.usage.promptTokens',
      'ai.usage.inputTokens',
      'ai.usage.tokens',
      'llm.usage.prompt_tokens',
    ],
  },
  outputTokens: {
    from: 'span',
    names: [
      'gen_ai.usage.output_tokens',
      'gen_ai.usage.completion_tokens',
      'llm.token_count.completion',
      'ai.usage.completionTokens',
      'ai.usage.outputTokens',
      'llm.usage.completion_tokens',
    ],
  },
  cacheRead: {
    from: 'span',
    names: [
      'gen_ai.usage.cache_read.input_tokens',
      'gen_ai.usage.cache_read_input_tokens',
      'llm.token_count.prompt_details.cache_read',
      'gen_ai.usage.details.cache_read_tokens',
      'gen_ai.usage.cache_read_tokens',
      'gen_ai.usage.input_tokens.cached',
      'gen_ai.usage.prompt_tokens_details.cache_read',
      'gen_ai.usage.prompt_tokens_details.cached_tokens',
      'ai.usage.cachedInputTokens',
      'ai.usage.inputTokenDetails.cacheReadTokens',
      'llm.usage.cache_read_input_tokens',
    ],
  },
  cacheWrite: {
    from: 'span',
    names: [
      'gen_ai.usage.cache_creation.input_tokens',
      'gen_ai.usage.cache_write.input_tokens',
      'gen_ai.usage.cache_creation_input_tokens',
      'gen_ai.usage.cache_write_input_tokens',
      'llm.token_count.prompt_details.cache_write',
      'gen_ai.usage.details.cache_write_tokens',
      'gen_ai.usage.cache_write_tokens',
      'gen_ai.usage.input_tokens.cache_write',
      'gen_ai.usage.prompt_tokens_details.cache_write',
      'gen_ai.usage.prompt_tokens_details.cache_creation_tokens',
      'ai.usage.inputTokenDetails.cacheWriteTokens',
      'llm.usage.cache_creation_input_tokens',
    ],
  },
  cacheWrite5m: {
    from: 'span',
    names: [
      'anthropic.usage.cache_creation.ephemeral_5m_input_tokens',
      'gen_ai.usage.cache_creation.ephemeral_5m_input_tokens',
      'gen_ai.usage.details.ephemeral_5m_input_tokens',
    ],
  },
  cacheWrite1h: {
    from: 'span',
    names: [
      'anthropic.usage.cache_creation.ephemeral_1h_input_tokens',
      'gen_ai.usage.cache_creation.ephemeral_1h_input_tokens',
      'gen_ai.usage.details.ephemeral_1h_input_tokens',
    ],
  },
  reasoning: {
    from: 'span',
    names: [
      'gen_ai.usage.reasoning.output_tokens',
      'gen_ai.usage.reasoning_tokens',
      'llm.token_count.completion_details.reasoning',
      'gen_ai.usage.output_tokens.reasoning',
      'gen_ai.usage.completion_tokens_details.reasoning_tokens',
      'gen_ai.usage.details.reasoning_tokens',
      'ai.usage.reasoningTokens',
      'ai.usage.outputTokenDetails.reasoningTokens',
      'llm.usage.reasoning_tokens',
    ],
  },
  totalTokens: {
    from: 'span',
    names: [
      'gen_ai.usage.total_tokens',
      'llm.usage.total_tokens',
      'llm.token_count.total',
      'ai.usage.totalTokens',
    ],
  },
  inputAudio: {
    from: 'span',
    names: ['llm.token_count.prompt_details.audio', 'gen_ai.usage.details.input_audio_tokens'],
  },
  outputAudio: {
    from: 'span',
    names: [
      'llm.token_count.completion_details.audio',
      'gen_ai.usage.details.output_audio_tokens',
      'gen_ai.usage.completion_tokens_details.audio_tokens',
    ],
  },
  // Sent by the AI SDK from version 6 on, whose counts are inclusive for every provider.
  uncachedTokens: { from: 'span', names: ['ai.usage.inputTokenDetails.noCacheTokens'] },
  usageDetails: { from: 'span', names: ['langfuse.observation.usage_details'] },
  providerMetadata: { from: 'span', names: ['ai.response.providerMetadata'] },
  /** LiteLLM's usage as the text of a Python dictionary. */
  usageObject: { from: 'span', names: ['metadata.usage_object'] },
  cost: {
    from: 'span',
    names: [
      'gen_ai.response.cost_usd',
      'gen_ai.usage.cost',
      'llm.cost.total',
      'gen_ai.cost.total_cost',
      'gen_ai.cost.total',
      inside('langfuse.observation.cost_details', 'total'),
      'operation.cost',
      'cost_usd',
    ],
  },
  serviceTier: {
    from: 'span',
    names: [
      'openai.response.service_tier',
      'openai.request.service_tier',
      'gen_ai.openai.response.service_tier',
      'gen_ai.response.service_tier',
      'anthropic.response.service_tier',
      'gen_ai.request.service_tier',
      'gen_ai.openai.request.service_tier',
      'anthropic.request.service_tier',
      'service_tier',
    ],
  },
  stopReason: {
    from: 'span',
    names: [
      'gen_ai.response.finish_reasons',
      'anthropic.message.stop_reason',
      'llm.finish_reason',
      'gen_ai.response.finish_reason',
      'ai.response.finishReason',
    ],
  },

  session: {
    from: 'anywhere',
    names: [
      'session.id',
      'gen_ai.conversation.id',
      'langfuse.session.id',
      'ai.telemetry.metadata.sessionId',
      ...inMetadata('session_id'),
      'session_id',
    ],
  },
  user: {
    from: 'anywhere',
    names: [
      'user.id',
      'enduser.id',
      'langfuse.user.id',
      'gen_ai.user',
      'llm.user',
      'gen_ai.request.user',
      'ai.telemetry.metadata.userId',
      ...inMetadata('user_id'),
      'user_id',
    ],
  },
  team: {
    from: 'anywhere',
    names: [
      'team_id',
      'team.id',
      'metadata.user_api_key_team_id',
      inside('metadata', 'user_api_key_team_id'),
      ...inMetadata('team_id'),
      'ai.telemetry.metadata.teamId',
    ],
  },
  feature: {
    from: 'anywhere',
    names: ['feature', ...inMetadata('feature'), 'traceloop.workflow.name'],
  },
  environment: {
    from: 'anywhere',
    names: [
      'deployment.environment.name',
      'deployment.environment',
      'langfuse.environment',
      'gen_ai.environment',
    ],
  },
  isBatch: { from: 'anywhere', names: ['is_batch'] },
  batchId: { from: 'anywhere', names: ['batch_id', 'gen_ai.openai.batch.id'] },
  projectId: { from: 'anywhere', names: ['project_id', ...inMetadata('project_id')] },
  providerAccountId: { from: 'anywhere', names: ['provider_account_id'] },
  providerKeyId: { from: 'anywhere', names: ['provider_key_id'] },
  toolInput: { from: 'anywhere', names: ['tool_input'] },
  toolOutput: { from: 'anywhere', names: ['tool_output'] },

  serviceName: { from: 'anywhere', names: ['service.name'] },
  operation: { from: 'span', names: ['gen_ai.operation.name'] },
  spanKind: { from: 'span', names: ['openinference.span.kind'] },
  observationType: { from: 'span', names: ['langfuse.observation.type'] },
  aiOperation: { from: 'span', names: ['ai.operationId'] },
  level: { from: 'span', names: ['langfuse.observation.level'] },
  errorType: { from: 'span', names: ['error.type', 'exception.type'] },
  httpStatus: { from: 'span', names: ['http.response.status_code', 'http.status_code'] },
} as const satisfies Record<string, AttributeRow>;

export type Meaning = keyof typeof ATTRIBUTE_TABLE;

/** Every attribute with this prefix goes into the event's `_service` block, under the rest of its name. */
export const SERVICE_PREFIX = '_service.';

/** Meanings that carry usage; a span without any of them is no call. */
export const USAGE_MEANINGS = [
  'inputTokens',
  'outputTokens',
  'cacheRead',
  'cacheWrite',
  'cacheWrite5m',
  'cacheWrite1h',
  'reasoning',
  'totalTokens',
  'inputAudio',
  'outputAudio',
  'usageDetails',
] as const satisfies readonly Meaning[];
