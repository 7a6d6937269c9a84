import { describe, expect, it } from 'vitest';
import type { CallRecord, SpanLink } from '../../../domain/events/event.js';
import { mapOtlpRequest } from '../../../domain/events/otlpSpans.js';
import { type ResolvedCall, resolveCalls } from '../../../domain/events/resolveCalls.js';
import { type AttributeMap, aSpan, attributeList, classesOf, context, START_NANOS } from './support.js';

const hex = (value: number, digits: number) => value.toString(16).padStart(digits, '0');

interface UsageReport {
  scope: string;
  version?: string;
  trace?: number;
  span: number;
  parent?: number;
  startMs?: number;
  endMs?: number;
  status?: object;
  attributes: AttributeMap;
}

/** Spans of several scopes in one request, mapped and resolved. */
function resolve(...reports: UsageReport[]): {
  resolved: ResolvedCall[];
  calls: CallRecord[];
  links: SpanLink[];
} {
  const scopeSpans = reports.map((told) => ({
    scope: { name: told.scope, version: told.version ?? '1.0.0' },
    spans: [
      aSpan({
        traceId: hex(told.trace ?? 1, 32),
        spanId: hex(told.span, 16),
        ...(told.parent === undefined ? {} : { parentSpanId: hex(told.parent, 16) }),
        startTimeUnixNano: (START_NANOS + BigInt(told.startMs ?? 0) * 1_000_000n).toString(),
        endTimeUnixNano: (START_NANOS + BigInt(told.endMs ?? 1000) * 1_000_000n).toString(),
        attributes: attributeList(told.attributes),
        status: told.status ?? {},
      }),
    ],
  }));
  const { calls, links, rejections } = mapOtlpRequest({ resourceSpans: [{ scopeSpans }] }, context);
  if (rejections.length > 0) throw new Error(JSON.stringify(rejections));
  return { resolved: resolveCalls(calls, links), calls, links };
}

/** Scope names of the calls that count. */
const live = (resolved: ResolvedCall[]) =>
  resolved.filter((one) => one.supersededBy === null).map(({ call }) => call);
const scopes = (resolved: ResolvedCall[]) => live(resolved).map(({ scopeName }) => scopeName);

const ANTHROPIC_SDK: UsageReport = {
  scope: 'com.anthropic.sdk.python',
  span: 9,
  attributes: {
    'gen_ai.provider.name': 'anthropic',
    'gen_ai.operation.name': 'chat',
    'gen_ai.request.model': 'claude-sonnet-4-5',
    'gen_ai.response.model': 'claude-sonnet-4-5-20250929',
    'gen_ai.response.id': 'msg_1',
    'gen_ai.usage.input_tokens': 1250,
    'gen_ai.usage.cache_write.input_tokens': 200,
    'gen_ai.usage.cache_read.input_tokens': 1000,
    'anthropic.usage.cache_creation.ephemeral_5m_input_tokens': 150,
    'anthropic.usage.cache_creation.ephemeral_1h_input_tokens': 50,
    'gen_ai.usage.output_tokens': 300,
    'anthropic.message.stop_reason': 'end_turn',
  },
};

const OPENINFERENCE: UsageReport = {
  scope: 'openinference.instrumentation.anthropic',
  span: 1,
  attributes: {
    'openinference.span.kind': 'LLM',
    'llm.provider': 'anthropic',
    'llm.model_name': 'claude-sonnet-4-5-20250929',
    'llm.token_count.prompt': 1250,
    'llm.token_count.completion': 300,
    'llm.token_count.prompt_details.cache_read': 1000,
    'llm.token_count.prompt_details.cache_write': 200,
    'user.id': 'u-1',
    'session.id': 's-1',
  },
};

const TRACELOOP: UsageReport = {
  scope: 'opentelemetry.instrumentation.anthropic',
  trace: 2,
  span: 2,
  startMs: 2,
  attributes: {
    'gen_ai.provider.name': 'anthropic',
    'gen_ai.operation.name': 'chat',
    'gen_ai.request.model': 'claude-sonnet-4-5',
    'gen_ai.response.model': 'claude-sonnet-4-5-20250929',
    'gen_ai.response.id': 'msg_1',
    'gen_ai.usage.input_tokens': 1250,
    'gen_ai.usage.output_tokens': 301,
    'gen_ai.usage.cache_read.input_tokens': 1000,
    'gen_ai.usage.cache_creation.input_tokens': 200,
    'traceloop.association.properties.team_id': 'team-1',
  },
};

const LANGFUSE: UsageReport = {
  scope: 'langfuse-sdk',
  span: 3,
  attributes: {
    'langfuse.observation.type': 'generation',
    'langfuse.observation.model.name': 'claude-sonnet-4-5',
    'langfuse.observation.usage_details':
      '{"input":50,"output":300,"cache_read_input_tokens":1000,"cache_creation_input_tokens":200}',
    'langfuse.user.id': 'u-1',
  },
};

describe('of reports with one response id in different traces', () => {
  /** Equally rich reports, each in a separate trace. */
  const reports = (...times: [scope: string, startMs: number, endMs: number][]) =>
    resolve(
      ...times.map(([scope, startMs, endMs], index) => ({
        ...TRACELOOP,
        scope,
        trace: index + 10,
        startMs,
        endMs,
      })),
    ).resolved;

  it('the one that ended first counts, so an answer from a cache does not move the call that was billed', () => {
    const times: [string, number, number][] = [
      ['call', 0, 900],
      ['first replay', 5_000, 5_010],
      ['second replay', 60_000, 60_010],
    ];
    expect(scopes(reports(...times))).toEqual(['call']);
    expect(scopes(reports(...times.reverse()))).toEqual(['call']);
  });

  it('the inner one counts when two instrumentations time one call', () => {
    expect(scopes(reports(['outer', 0, 900], ['inner', 2, 899]))).toEqual(['inner']);
    expect(scopes(reports(['outer', 0, 900], ['inner', 2, 900]))).toEqual(['inner']);
  });
});

describe('the pairs that were measured are one call each', () => {
  it('OpenInference around the SDK’s own span', () => {
    const { resolved } = resolve(OPENINFERENCE, { ...ANTHROPIC_SDK, parent: 1, startMs: 1 });
    const [call] = live(resolved);
    expect(scopes(resolved)).toEqual(['com.anthropic.sdk.python']);
    expect(resolved[0]?.supersededBy).toBe(1);
    expect(call).toMatchObject({
      userId: 'u-1',
      sessionId: 's-1',
      responseId: 'msg_1',
      stopReason: 'end_turn',
    });
    expect(call?.usage).toMatchObject({ cacheCreation5m: 150, cacheCreation1h: 50 });
    expect(classesOf(call as CallRecord)).toEqual([50, 1000, 200, 300, 0]);
    expect(call?.origin.usageMissing).toEqual([]);
  });

  it('Traceloop beside the SDK’s own span, in another trace, by the response id', () => {
    const { resolved } = resolve(TRACELOOP, ANTHROPIC_SDK);
    const [call] = live(resolved);
    expect(scopes(resolved)).toEqual(['com.anthropic.sdk.python']);
    expect(call?.teamId).toBe('team-1');
    // Its streams count one token too many; the provider's count is used.
    expect(call?.usage?.output).toBe(300);
  });

  it('a Langfuse generation by hand around the SDK’s own span, one naming the alias', () => {
    const { resolved } = resolve(LANGFUSE, { ...ANTHROPIC_SDK, parent: 3, startMs: 1 });
    expect(scopes(resolved)).toEqual(['com.anthropic.sdk.python']);
    expect(live(resolved)[0]).toMatchObject({ userId: 'u-1', responseModel: 'claude-sonnet-4-5-20250929' });
  });

  it('pydantic-ai around the SDK’s own span, with the same response id on both', () => {
    const pydantic: UsageReport = {
      scope: 'pydantic-ai',
      span: 4,
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': 'anthropic',
        'gen_ai.request.model': 'claude-sonnet-4-5',
        'gen_ai.response.id': 'msg_1',
        'gen_ai.usage.input_tokens': 1250,
        'gen_ai.usage.output_tokens': 300,
        'gen_ai.usage.cache_creation.input_tokens': 200,
        'gen_ai.usage.cache_read.input_tokens': 1000,
        'operation.cost': 0.0057,
      },
    };
    const { resolved } = resolve(pydantic, { ...ANTHROPIC_SDK, parent: 4, startMs: 1 });
    expect(scopes(resolved)).toEqual(['com.anthropic.sdk.python']);
    expect(live(resolved)[0]?.reportedCostPico).toBe(5_700_000_000n);
  });

  it('a client that sees no cache and one that has no response id complete each other', () => {
    const attributes = {
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'gpt-4o',
      'gen_ai.response.id': 'chatcmpl-1',
      'gen_ai.usage.input_tokens': 1200,
      'gen_ai.usage.output_tokens': 300,
    };
    const outer: UsageReport = {
      scope: '@traceloop/instrumentation-openai',
      version: '0.27.0',
      span: 1,
      attributes,
    };
    const inner: UsageReport = {
      scope: '@arizeai/openinference-instrumentation-openai',
      version: '4.2.7',
      span: 2,
      parent: 1,
      startMs: 1,
      attributes: {
        'openinference.span.kind': 'LLM',
        'llm.system': 'openai',
        'llm.model_name': 'gpt-4o-2024-08-06',
        'llm.token_count.prompt': 1200,
        'llm.token_count.completion': 300,
        'llm.token_count.prompt_details.cache_read': 1000,
        'llm.token_count.completion_details.reasoning': 100,
      },
    };
    const { resolved } = resolve(outer, inner);
    const [call] = live(resolved);
    expect(call?.responseId).toBe('chatcmpl-1');
    expect(classesOf(call as CallRecord)).toEqual([200, 1000, 0, 300, 100]);
    expect(call?.origin.usageMissing).toEqual(['cache_write_5m']);
    expect(call?.responseModel).toBe('gpt-4o-2024-08-06');
  });
});

const GPT = {
  'gen_ai.system': 'openai',
  'gen_ai.request.model': 'gpt-4o',
  'gen_ai.usage.input_tokens': 10,
  'gen_ai.usage.output_tokens': 5,
};
const span = (
  number: number,
  parent?: number,
  attributes: AttributeMap = {},
  more: Partial<UsageReport> = {},
): UsageReport => ({
  scope: `scope-${number}`,
  span: number,
  ...(parent === undefined ? {} : { parent }),
  startMs: number,
  endMs: 1000 - number,
  attributes: { ...GPT, ...attributes },
  ...more,
});
const bystander = (number: number, parent?: number): UsageReport => ({
  ...span(number, parent),
  attributes: { 'http.method': 'POST' },
});

describe('an ancestor and a descendant', () => {
  it('are one call through any number of ignored spans: of equals the inner one', () => {
    const { resolved } = resolve(span(1), bystander(2, 1), bystander(3, 2), span(4, 3));
    expect(scopes(resolved)).toEqual(['scope-4']);
  });

  it('are one call in a chain of three', () => {
    const { resolved } = resolve(span(1), span(2, 1), span(3, 2, { 'gen_ai.response.id': 'x' }), span(4, 3));
    expect(scopes(resolved)).toEqual(['scope-3']);
    expect(resolved.map(({ supersededBy }) => supersededBy)).toEqual([2, 2, null, 2]);
  });

  it('are decided by the response id before the classes, and by the classes before the place', () => {
    const classes = { 'gen_ai.usage.cache_read.input_tokens': 4 };
    expect(
      scopes(resolve(span(1, undefined, { 'gen_ai.response.id': 'x' }), span(2, 1, classes)).resolved),
    ).toEqual(['scope-1']);
    expect(scopes(resolve(span(1, undefined, classes), span(2, 1)).resolved)).toEqual(['scope-1']);
  });

  it('of different model families are two calls', () => {
    const inner = span(2, 1, { 'gen_ai.system': 'anthropic', 'gen_ai.request.model': 'claude-sonnet-4-5' });
    expect(scopes(resolve(span(1), inner).resolved)).toEqual(['scope-1', 'scope-2']);
  });

  it('of different providers are one call, billed by whom the inner one names', () => {
    const inner = span(2, 1, { 'gen_ai.system': 'aws.bedrock', 'gen_ai.request.model': 'openai.gpt-4o' });
    const outer = span(1, undefined, { 'server.address': 'gateway.internal', 'gen_ai.response.id': 'x' });
    const { resolved } = resolve(outer, inner);
    expect(live(resolved)[0]).toMatchObject({
      scopeName: 'scope-1',
      provider: 'openai',
      billedBy: 'aws_bedrock',
    });
  });

  it('that name one provider take the biller from the host', () => {
    const outer = span(1, undefined, { 'server.address': 'shop.openai.azure.com' });
    expect(live(resolve(outer, span(2, 1)).resolved)[0]).toMatchObject({
      scopeName: 'scope-2',
      billedBy: 'azure_openai',
    });
  });

  it('with two response ids are one call only when their counts agree', () => {
    const outer = span(1, undefined, { 'gen_ai.response.id': 'gateway-1' });
    expect(live(resolve(outer, span(2, 1, { 'gen_ai.response.id': 'x' })).resolved)).toHaveLength(1);
    const other = span(2, 1, { 'gen_ai.response.id': 'x', 'gen_ai.usage.output_tokens': 6 });
    expect(live(resolve(outer, other).resolved)).toHaveLength(2);
  });

  it('of which the outer one has no counts are one call', () => {
    const outer = {
      ...span(1),
      attributes: { 'gen_ai.system': 'openai', 'gen_ai.request.model': 'gpt-4o', 'user.id': 'u' },
    };
    const { resolved } = resolve(outer, span(2, 1));
    expect(live(resolved)).toMatchObject([{ scopeName: 'scope-2', userId: 'u' }]);
  });

  it('of which one failed without counts and the other was answered are an attempt and a call', () => {
    const failed = { ...span(2, 1), attributes: NO_COUNTS, status: { code: 2 } };
    expect(
      live(resolve(span(1), failed, span(3, 1)).resolved)
        .map(({ status }) => status)
        .sort(),
    ).toEqual(['error', 'ok']);
  });

  it('that both failed are one attempt', () => {
    const failed = (told: UsageReport): UsageReport => ({
      ...told,
      attributes: NO_COUNTS,
      status: { code: 2 },
    });
    expect(scopes(resolve(failed(span(1)), failed(span(2, 1))).resolved)).toEqual(['scope-2']);
  });
});

const NO_COUNTS = { 'gen_ai.system': 'openai', 'gen_ai.request.model': 'gpt-4o' };

describe('several calls inside one outer span', () => {
  it('stay several: the outer one reports the one with its counts', () => {
    const first = span(2, 1, { 'gen_ai.usage.output_tokens': 7 });
    const { resolved } = resolve(span(1), first, span(3, 1));
    expect(scopes(resolved)).toEqual(['scope-2', 'scope-3']);
    expect(resolved[0]?.supersededBy).toBe(2);
  });

  it('stay several when they are equal in everything', () => {
    const { resolved } = resolve(span(1), span(2, 1), span(3, 1), span(4, 1));
    expect(live(resolved)).toHaveLength(3);
    expect(live(resolved).reduce((sum, call) => sum + (call.usage?.input ?? 0), 0)).toBe(30);
  });

  it('keep their counts when the outer one sums them up', () => {
    const outer = span(1, undefined, {
      'gen_ai.usage.input_tokens': 20,
      'gen_ai.usage.output_tokens': 10,
      'gen_ai.response.id': 'x',
      'user.id': 'u',
    });
    const { resolved } = resolve(outer, span(2, 1), span(3, 1));
    expect(scopes(resolved)).toEqual(['scope-2', 'scope-3']);
    expect(live(resolved).map(({ usage }) => usage?.input)).toEqual([10, 10]);
    expect(live(resolved).map(({ userId }) => userId)).toEqual([null, 'u']);
  });

  it('keep their counts too when the outer one comes with the first of them alone', () => {
    const outer = span(1, undefined, {
      'gen_ai.usage.input_tokens': 20,
      'gen_ai.usage.output_tokens': 10,
      'user.id': 'u',
    });
    expect(live(resolve(outer, span(2, 1)).resolved)).toMatchObject([
      { scopeName: 'scope-2', userId: 'u', usage: { input: 10, output: 5 } },
    ]);
  });

  it('each with reports of their own are one call each', () => {
    const { resolved } = resolve(bystander(1), span(2, 1), span(3, 2), span(4, 1), span(5, 4));
    expect(scopes(resolved)).toEqual(['scope-3', 'scope-5']);
  });
});

describe('reports that are not of one call', () => {
  it('parallel equal calls without ids never merge, in one trace or several', () => {
    const parallel = Array.from({ length: 20 }, (_, index) =>
      span(index + 2, 1, {}, { startMs: 0, endMs: 1000 }),
    );
    expect(live(resolve(bystander(1), ...parallel).resolved)).toHaveLength(20);
    const apart = parallel.map((told, index) => ({ ...told, trace: index + 1, parent: 99 }));
    expect(live(resolve(...apart).resolved)).toHaveLength(20);
  });

  it('the same response id at two billers', () => {
    const azure = span(
      2,
      undefined,
      { 'gen_ai.system': 'azure.ai.openai', 'gen_ai.response.id': 'x' },
      { trace: 2 },
    );
    const openai = span(1, undefined, { 'gen_ai.response.id': 'x' });
    expect(live(resolve(openai, azure).resolved)).toHaveLength(2);
  });

  it('spans that name each other as parents', () => {
    expect(live(resolve(span(1, 2), bystander(2, 3), bystander(3, 2)).resolved)).toHaveLength(1);
  });
});

describe('a call that comes twice in one set', () => {
  it('counts both times, completed alike', () => {
    const inner = { ...ANTHROPIC_SDK, parent: 1, startMs: 1 };
    const { resolved } = resolve(inner, OPENINFERENCE, inner);
    expect(resolved.map(({ supersededBy }) => supersededBy)).toEqual([null, 0, null]);
    expect(resolved[2]?.call).toBe(resolved[0]?.call);
    expect(resolved[2]?.call.userId).toBe('u-1');
  });

  it('leaves the input calls unchanged', () => {
    const { calls, resolved } = resolve(OPENINFERENCE, { ...ANTHROPIC_SDK, parent: 1, startMs: 1 });
    expect(calls[1]?.userId).toBeNull();
    expect(resolved[1]?.call.userId).toBe('u-1');
  });
});
