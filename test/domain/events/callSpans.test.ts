import { describe, expect, it } from 'vitest';
import { type AttributeMap, LEAST, mapSpan } from './support.js';

const MODEL = { 'gen_ai.system': 'openai', 'gen_ai.request.model': 'gpt-4o' };

function kindOf(attributes: AttributeMap, name = 'span'): 'call' | 'ignored' | 'rejected' {
  const { calls, ignored } = mapSpan({ attributes, name });
  return calls.length > 0 ? 'call' : ignored > 0 ? 'ignored' : 'rejected';
}

describe('a span is a call', () => {
  it.each([
    ['operation chat', { ...MODEL, 'gen_ai.operation.name': 'chat' }],
    ['operation text_completion', { ...MODEL, 'gen_ai.operation.name': 'text_completion' }],
    ['operation generate_content', { ...MODEL, 'gen_ai.operation.name': 'generate_content' }],
    ['operation embeddings', { ...MODEL, 'gen_ai.operation.name': 'embeddings' }],
    [
      'OpenInference kind LLM',
      { 'llm.system': 'openai', 'llm.model_name': 'gpt-4o', 'openinference.span.kind': 'LLM' },
    ],
    [
      'OpenInference kind EMBEDDING',
      { 'llm.system': 'openai', 'embedding.model_name': 'gpt-e', 'openinference.span.kind': 'EMBEDDING' },
    ],
    [
      'a Langfuse generation',
      { 'langfuse.observation.type': 'generation', 'langfuse.observation.model.name': 'gpt-4o' },
    ],
    [
      'a Langfuse embedding',
      { 'langfuse.observation.type': 'embedding', 'langfuse.observation.model.name': 'gpt-4o' },
    ],
    ['an AI SDK doGenerate', { ...MODEL, 'ai.operationId': 'ai.generateText.doGenerate' }],
    ['an AI SDK doStream', { ...MODEL, 'ai.operationId': 'ai.streamText.doStream' }],
    ['an AI SDK doEmbed', { ...MODEL, 'ai.operationId': 'ai.embedMany.doEmbed' }],
    ['no marker, but a model', MODEL],
    ['no marker, but usage and a model', LEAST],
    ['another operation that names a model', { ...MODEL, 'gen_ai.operation.name': 'rerank' }],
  ] as [string, AttributeMap][])('%s', (_, attributes) => {
    expect(kindOf(attributes)).toBe('call');
  });

  it('that is rejected, not passed over, when it carries usage and names no model', () => {
    expect(kindOf({ 'gen_ai.system': 'openai', 'gen_ai.usage.input_tokens': 3 })).toBe('rejected');
  });
});

describe('a span is ignored, though it repeats model and usage', () => {
  it.each([
    ['operation invoke_agent', { ...LEAST, 'gen_ai.operation.name': 'invoke_agent' }],
    ['operation create_agent', { ...LEAST, 'gen_ai.operation.name': 'create_agent' }],
    ['operation invoke_workflow', { ...LEAST, 'gen_ai.operation.name': 'invoke_workflow' }],
    ['operation execute_tool', { ...LEAST, 'gen_ai.operation.name': 'execute_tool' }],
    ['operation agent_step', { ...LEAST, 'gen_ai.operation.name': 'agent_step' }],
    ['OpenInference kind AGENT', { ...LEAST, 'openinference.span.kind': 'AGENT' }],
    ['OpenInference kind CHAIN', { ...LEAST, 'openinference.span.kind': 'CHAIN' }],
    ['OpenInference kind TOOL', { ...LEAST, 'openinference.span.kind': 'tool' }],
    ['an AI SDK generateText', { ...LEAST, 'ai.operationId': 'ai.generateText' }],
    ['an AI SDK streamText', { ...LEAST, 'ai.operationId': 'ai.streamText' }],
    ['an AI SDK embed', { ...LEAST, 'ai.operationId': 'ai.embed' }],
    ['an AI SDK tool call', { ...LEAST, 'ai.operationId': 'ai.toolCall' }],
    ['a Langfuse span', { ...LEAST, 'langfuse.observation.type': 'span' }],
    ['a Langfuse agent', { ...LEAST, 'langfuse.observation.type': 'agent' }],
    [
      'an HTTP span',
      { 'http.request.method': 'POST', 'server.address': 'api.openai.com', 'url.full': 'https://x' },
    ],
    ['a database span', { 'db.system': 'postgresql', 'db.statement': 'select 1' }],
  ] as [string, AttributeMap][])('%s', (_, attributes) => {
    expect(kindOf(attributes)).toBe('ignored');
  });

  it.each(['anthropic.messages.count_tokens', 'anthropic.sessions.create'])('the free request %s', (name) => {
    expect(
      kindOf({ 'gen_ai.provider.name': 'anthropic', 'gen_ai.request.model': 'claude-sonnet-4-5' }, name),
    ).toBe('ignored');
  });

  it('a model named by the resource makes no call of an HTTP span', () => {
    const { ignored } = mapSpan({
      attributes: { 'http.route': '/' },
      resource: { 'gen_ai.request.model': 'gpt-4o' },
    });
    expect(ignored).toBe(1);
  });

  it('keeps its place in the trace, unless it is a root', () => {
    const parentSpanId = '00f067aa0ba902b7';
    expect(mapSpan({ attributes: { a: 1 }, parentSpanId }).links).toMatchObject([{ parentSpanId }]);
    expect(mapSpan({ attributes: { a: 1 } }).links).toEqual([]);
    expect(
      mapSpan({ attributes: { 'gen_ai.request.model': 'm', 'gen_ai.system': 'groq' }, parentSpanId }).links,
    ).toHaveLength(1);
  });
});
