import { describe, expect, it } from 'vitest';
import { ATTRIBUTE_TABLE } from '../../../domain/events/attributeTable.js';
import type { CallRecord } from '../../../domain/events/event.js';
import { decimalFromPico } from '../../../domain/money.js';
import { type AttributeMap, attributeList, callOf, callWith, TRACE_ID } from './support.js';

/** A row of the mapping: names in order of precedence, a value for the n-th of them, where it must arrive. */
interface Row {
  row: string;
  names: string[];
  value(index: number): unknown;
  read(call: CallRecord): unknown;
  /** The expected value, where it differs from the sent one. */
  expected?(index: number): unknown;
  /** Further attributes that the span needs. */
  beside: AttributeMap;
}

const MODEL = { 'gen_ai.request.model': 'gpt-4o' };
const BOTH = { 'gen_ai.system': 'openai', ...MODEL };
const ALL = { ...BOTH, 'gen_ai.usage.input_tokens': 1000, 'gen_ai.usage.output_tokens': 500 };
const metadata = (key: string) => [
  `metadata.${key}`,
  `langfuse.trace.metadata.${key}`,
  `langfuse.observation.metadata.${key}`,
  `traceloop.association.properties.${key}`,
];
const text = (index: number) => `value-${index}`;

const ROWS: Row[] = [
  {
    row: 'provider',
    names: ['gen_ai.provider.name', 'gen_ai.system', 'llm.provider', 'llm.system', 'ai.model.provider'],
    value: (index) => ['anthropic', 'cohere', 'mistral', 'xai', 'google.generative-ai'][index],
    expected: (index) => ['anthropic', 'cohere', 'mistral', 'xai', 'google'][index],
    read: (call) => call.provider,
    beside: MODEL,
  },
  {
    row: 'request model',
    names: [
      'gen_ai.request.model',
      'llm.request.model_name',
      'ai.model.id',
      'langfuse.observation.model.name',
    ],
    value: text,
    read: (call) => call.model,
    beside: { 'gen_ai.system': 'openai', 'gen_ai.response.model': 'other' },
  },
  {
    row: 'response model',
    names: [
      'gen_ai.response.model',
      'embedding.model_name',
      'llm.model_name',
      'llm.response.model_name',
      'ai.response.model',
    ],
    value: text,
    read: (call) => call.responseModel,
    beside: BOTH,
  },
  {
    row: 'response id',
    names: ['gen_ai.response.id'],
    value: text,
    read: (call) => call.responseId,
    beside: BOTH,
  },
  {
    row: 'input tokens',
    names: [
      'gen_ai.usage.input_tokens',
      'gen_ai.usage.prompt_tokens',
      'llm.token_count.prompt',
      'ai.usage.promptTokens',
      'ai.usage.inputTokens',
      'llm.usage.prompt_tokens',
    ],
    value: (index) => 100 + index,
    read: (call) => call.usage?.input,
    beside: BOTH,
  },
  {
    row: 'output tokens',
    names: [
      'gen_ai.usage.output_tokens',
      'gen_ai.usage.completion_tokens',
      'llm.token_count.completion',
      'ai.usage.completionTokens',
      'ai.usage.outputTokens',
    ],
    value: (index) => 100 + index,
    read: (call) => call.usage?.output,
    beside: BOTH,
  },
  {
    row: 'cache read',
    names: [
      'gen_ai.usage.cache_read.input_tokens',
      'gen_ai.usage.cache_read_input_tokens',
      'llm.token_count.prompt_details.cache_read',
      'gen_ai.usage.details.cache_read_tokens',
      'gen_ai.usage.cache_read_tokens',
      'gen_ai.usage.input_tokens.cached',
      'gen_ai.usage.prompt_tokens_details.cache_read',
      'ai.usage.cachedInputTokens',
    ],
    value: (index) => 100 + index,
    read: (call) => call.usage?.cacheRead,
    beside: ALL,
  },
  {
    row: 'cache write',
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
    ],
    value: (index) => 100 + index,
    read: (call) => call.usage?.cacheCreation,
    beside: ALL,
  },
  {
    row: 'cache write of 5 minutes',
    names: ['anthropic.usage.cache_creation.ephemeral_5m_input_tokens'],
    value: (index) => 100 + index,
    read: (call) => call.usage?.cacheCreation5m,
    beside: ALL,
  },
  {
    row: 'cache write of 1 hour',
    names: ['anthropic.usage.cache_creation.ephemeral_1h_input_tokens'],
    value: (index) => 100 + index,
    read: (call) => call.usage?.cacheCreation1h,
    beside: ALL,
  },
  {
    row: 'reasoning',
    names: [
      'gen_ai.usage.reasoning.output_tokens',
      'gen_ai.usage.reasoning_tokens',
      'llm.token_count.completion_details.reasoning',
      'gen_ai.usage.output_tokens.reasoning',
      'ai.usage.reasoningTokens',
    ],
    value: (index) => 100 + index,
    read: (call) => call.usage?.reasoning,
    beside: ALL,
  },
  {
    row: 'total, which shows in what does not add up',
    names: ['gen_ai.usage.total_tokens', 'llm.usage.total_tokens', 'llm.token_count.total'],
    value: (index) => 1501 + index,
    expected: () => ['total_mismatch'],
    read: (call) => call.origin.usageFlags,
    beside: ALL,
  },
  {
    row: 'cost',
    names: [
      'gen_ai.response.cost_usd',
      'gen_ai.usage.cost',
      'llm.cost.total',
      'gen_ai.cost.total_cost',
      'operation.cost',
      'cost_usd',
    ],
    value: (index) => 0.5 + index,
    expected: (index) => String(0.5 + index),
    read: (call) => decimalFromPico(call.reportedCostPico ?? -1n),
    beside: ALL,
  },
  {
    row: 'service tier',
    names: [
      'openai.response.service_tier',
      'openai.request.service_tier',
      'gen_ai.openai.response.service_tier',
      'gen_ai.request.service_tier',
    ],
    value: text,
    read: (call) => call.serviceTier,
    beside: ALL,
  },
  {
    row: 'session',
    names: [
      'session.id',
      'gen_ai.conversation.id',
      'langfuse.session.id',
      'ai.telemetry.metadata.sessionId',
      'traceloop.association.properties.session_id',
    ],
    value: text,
    read: (call) => call.sessionId,
    beside: ALL,
  },
  {
    row: 'user',
    names: [
      'user.id',
      'enduser.id',
      'langfuse.user.id',
      'gen_ai.user',
      'llm.user',
      'gen_ai.request.user',
      'ai.telemetry.metadata.userId',
      'traceloop.association.properties.user_id',
    ],
    value: text,
    read: (call) => call.userId,
    beside: ALL,
  },
  {
    row: 'team',
    names: ['team_id', 'team.id', 'metadata.user_api_key_team_id', ...metadata('team_id')],
    value: text,
    read: (call) => call.teamId,
    beside: ALL,
  },
  {
    row: 'feature',
    names: ['feature', ...metadata('feature'), 'traceloop.workflow.name'],
    value: text,
    read: (call) => call.feature,
    beside: ALL,
  },
  {
    row: 'environment',
    names: [
      'deployment.environment.name',
      'deployment.environment',
      'langfuse.environment',
      'gen_ai.environment',
    ],
    value: text,
    expected: (index) => [text(index), { environment: text(index) }],
    read: (call) => [call.environment, call.service],
    beside: ALL,
  },
  { row: 'is_batch', names: ['is_batch'], value: () => true, read: (call) => call.isBatch, beside: ALL },
  { row: 'batch_id', names: ['batch_id'], value: text, read: (call) => call.batchId, beside: ALL },
  { row: 'project_id', names: ['project_id'], value: text, read: (call) => call.projectId, beside: ALL },
  {
    row: 'tool_input',
    names: ['tool_input'],
    value: () => ({ city: 'Bern', days: [1, 2] }),
    read: (call) => call.toolInput,
    beside: ALL,
  },
  {
    row: 'tool_output',
    names: ['tool_output'],
    value: () => 'sunny',
    read: (call) => call.toolOutput,
    beside: ALL,
  },
  {
    row: 'stop reason',
    names: [
      'gen_ai.response.finish_reasons',
      'anthropic.message.stop_reason',
      'llm.finish_reason',
      'gen_ai.response.finish_reason',
      'ai.response.finishReason',
    ],
    value: (index) => (index === 0 ? ['stop', 'length'] : text(index)),
    expected: (index) => (index === 0 ? 'stop' : text(index)),
    read: (call) => call.stopReason,
    beside: ALL,
  },
  {
    row: 'who bills',
    names: ['server.address', 'url.full', 'gen_ai.openai.api_base'],
    value: (index) =>
      ['api.anthropic.com', 'https://api.mistral.ai/v1/chat', 'https://shop.openai.azure.com/x'][index],
    expected: (index) => ['anthropic', 'mistral', 'azure_openai'][index],
    read: (call) => call.billedBy,
    beside: ALL,
  },
];

const cases = ROWS.flatMap((row) =>
  row.names.map((name, index) => ({ ...row, name, index, label: `${row.row}: ${name}` })),
);

describe('the mapping table', () => {
  it.each(cases)('$label', ({ name, index, value, expected, read, beside }) => {
    const attributes = Object.fromEntries(Object.entries({ ...beside, [name]: value(index) }));
    expect(read(callOf({ attributes }))).toEqual((expected ?? value)(index));
  });

  it.each(cases.filter(({ index }) => index > 0))('$label yields to the name before it', (row) => {
    const earlier = row.names[row.index - 1] as string;
    for (const order of [
      [earlier, row.name],
      [row.name, earlier],
    ]) {
      const attributes: AttributeMap = { ...row.beside };
      for (const name of order) {
        delete attributes[name];
        attributes[name] = row.value(row.names.indexOf(name));
      }
      expect(row.read(callOf({ attributes }))).toEqual((row.expected ?? row.value)(row.index - 1));
    }
  });

  it('assigns no attribute two meanings', () => {
    const names = Object.values(ATTRIBUTE_TABLE).flatMap((row) =>
      row.names.filter((name) => typeof name === 'string'),
    );
    expect(new Set(names).size).toBe(names.length);
  });
});

describe('where a value is looked for', () => {
  it('prefers the span to the scope and the scope to the resource, whatever the names', () => {
    const resource = { 'session.id': 'of-resource', team_id: 'of-resource', feature: 'of-resource' };
    const scopeAttributes = { 'gen_ai.conversation.id': 'of-scope', team_id: 'of-scope' };
    const call = callWith({ 'langfuse.session.id': 'of-span' }, { resource, scopeAttributes });
    expect([call.sessionId, call.teamId, call.feature]).toEqual(['of-span', 'of-scope', 'of-resource']);
  });

  it('reads the provider, batch and service labels of a resource', () => {
    const resource = {
      'gen_ai.system': 'anthropic',
      is_batch: 'true',
      project_id: 'p',
      '_service.environment': 'staging',
      '_service.api_key_prefix': 'sk-live',
    };
    const call = callOf({ attributes: { ...MODEL, 'gen_ai.usage.input_tokens': 1 }, resource });
    expect(call).toMatchObject({
      provider: 'anthropic',
      isBatch: true,
      projectId: 'p',
      environment: 'staging',
    });
    expect(call.service).toEqual({ environment: 'staging', api_key_prefix: 'sk-live' });
  });

  it('takes usage only from the span itself', () => {
    const call = callOf({ attributes: BOTH, resource: { 'gen_ai.usage.input_tokens': 1000 } });
    expect(call.usage).toBeNull();
  });

  it('passes over empty values to the next name', () => {
    expect(callWith({ 'session.id': '', 'gen_ai.conversation.id': 'c' }).sessionId).toBe('c');
    expect(
      callWith({ 'gen_ai.request.model': '\u6a21\u578b', 'gen_ai.response.model': 'gpt-4o' }).model,
    ).toBe('gpt-4o');
  });

  it('lets the later of two equal keys hold, also of keys that become equal by stripping', () => {
    const twice = [
      { key: 'session.id', value: { stringValue: 'first' } },
      { key: 'session\u0000.id', value: { stringValue: 'second' } },
      { key: 'other', value: { intValue: 1 } },
      { key: 'other', value: { intValue: 2 } },
    ];
    const call = callOf({ attributes: [...attributeList(ALL), ...twice] });
    expect([call.sessionId, call.payload]).toEqual(['second', { other: 2 }]);
  });

  it('reads labels inside JSON metadata, and keeps the metadata', () => {
    const given = { metadata: '{"team_id":"t\\u00e9am","feature":7,"other":[1]}' };
    const call = callWith(given);
    expect([call.teamId, call.feature]).toEqual(['tam', '7']);
    expect(call.payload).toEqual(given);
  });

  it('reads the service block from its map and from single names, the span before the resource', () => {
    const call = callWith(
      { _service: { environment: 'prod', region: 'eu' }, '_service.provider_key_id': 'key-7' },
      { resource: { '_service.environment': 'dev', '_service.host': 'h' } },
    );
    expect(call.service).toEqual({ environment: 'prod', region: 'eu', provider_key_id: 'key-7', host: 'h' });
    expect([call.environment, call.providerKeyId]).toEqual(['prod', 'key-7']);
  });

  it('reads a finish reason from the JSON text of a list', () => {
    expect(callWith({ 'gen_ai.response.finish_reasons': '["tool_calls"]' }).stopReason).toBe('tool_calls');
    expect(callWith({}).stopReason).toBe('unknown');
  });

  it('takes the trace id for the session when none is named, and leaves it empty without a trace', () => {
    expect(callWith({}).sessionId).toBe(TRACE_ID);
    expect(callWith({}, { traceId: undefined }).sessionId).toBe('');
  });
});
