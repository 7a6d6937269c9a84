import { describe, expect, it } from 'vitest';
import { mapLogRequest } from '../../../domain/events/agentLogs.js';
import { type AttributeMap, anyValue, attributeList, context, NOW } from './support.js';

const MINUTE_AGO = NOW - 60_000_000n;
const TIMESTAMP = '2026-11-20T11:59:00.000Z';

interface RecordParts {
  body?: string;
  attributes: AttributeMap;
  resource?: AttributeMap;
  fields?: object;
}

/** One record as an exporter sends it. */
function aRecord({ body, attributes, resource = {}, fields = {} }: RecordParts) {
  const record = {
    timeUnixNano: (NOW * 1_000n).toString(),
    ...(body === undefined ? {} : { body: anyValue(body) }),
    attributes: attributeList(attributes),
    ...fields,
  };
  return {
    resourceLogs: [
      {
        resource: { attributes: attributeList({ 'service.name': 'agent', ...resource }) },
        scopeLogs: [{ scope: { name: 'agent.events', version: '1.0' }, logRecords: [record] }],
      },
    ],
  };
}

const mapOne = (parts: RecordParts) => mapLogRequest(aRecord(parts), context);

function callOf(parts: RecordParts) {
  const { calls, rejections, ignored } = mapOne(parts);
  expect({ rejections, ignored }).toEqual({ rejections: [], ignored: 0 });
  const [call] = calls;
  if (!call) throw new Error('the record is no call');
  return call;
}

const CLAUDE: RecordParts = {
  body: 'claude_code.api_request',
  attributes: {
    'event.name': 'api_request',
    'event.timestamp': TIMESTAMP,
    'event.sequence': 7,
    'session.id': 'b1946ac9',
    'user.id': 'f3c2',
    'user.email': 'ann@example.com',
    'app.version': '2.1.0',
    model: 'claude-sonnet-4-5-20250929',
    cost_usd: 0.0123,
    duration_ms: 2_500,
    input_tokens: 12,
    output_tokens: 350,
    cache_read_tokens: 21_000,
    cache_creation_tokens: 900,
    request_id: 'req_011C',
    speed: 'normal',
  },
};

describe('a call of Claude Code', () => {
  it('has its tokens apart, its session, its user and the time at which it began', () => {
    const call = callOf(CLAUDE);
    expect(call).toMatchObject({
      kind: 'sdk_event',
      provider: 'anthropic',
      billedBy: 'anthropic',
      model: 'claude-sonnet-4-5-20250929',
      requestId: 'req_011C',
      sessionId: 'b1946ac9',
      userId: 'ann@example.com',
      startMicros: MINUTE_AGO - 2_500_000n,
      endMicros: MINUTE_AGO,
      durationMs: 2_500,
      status: 'ok',
      serviceTier: null,
      serviceName: 'agent',
      scopeName: 'agent.events',
    });
    expect(call.usage).toMatchObject({ input: 12, output: 350, cacheRead: 21_000, cacheCreation: 900 });
  });

  it('is priced here: the agent’s estimate is not its cost', () => {
    expect(callOf(CLAUDE).reportedCostPico).toBeNull();
  });

  it('has counts that an exporter writes as text', () => {
    const attributes = { ...CLAUDE.attributes, input_tokens: '12', output_tokens: '350' };
    expect(callOf({ ...CLAUDE, attributes }).usage).toMatchObject({ input: 12, output: 350 });
  });

  it('names the fast tier, which has a price of its own', () => {
    const attributes = { ...CLAUDE.attributes, speed: 'fast' };
    expect(callOf({ ...CLAUDE, attributes }).serviceTier).toBe('fast');
  });

  it.each([
    ['us.anthropic.claude-sonnet-4-5-20250929-v1:0', 'aws_bedrock'],
    ['claude-sonnet-4-5@20250929', 'google'],
    ['claude-sonnet-4-5', 'anthropic'],
  ])('of %s is billed by %s', (model, biller) => {
    expect(callOf({ ...CLAUDE, attributes: { ...CLAUDE.attributes, model } }).billedBy).toBe(biller);
  });

  it('that failed is an error with its status and without usage', () => {
    const call = callOf({
      body: 'claude_code.api_error',
      attributes: {
        'event.name': 'api_error',
        'event.timestamp': TIMESTAMP,
        'session.id': 'b1946ac9',
        model: 'claude-sonnet-4-5',
        error: 'Overloaded',
        status_code: '529',
        duration_ms: 40,
        attempt: 1,
      },
    });
    expect(call).toMatchObject({ status: 'error', httpStatus: 529, usage: null });
  });

  it('takes the labels that the organization sets on the resource', () => {
    const resource = { team_id: 'platform', 'deployment.environment.name': 'laptops' };
    expect(callOf({ ...CLAUDE, resource })).toMatchObject({ teamId: 'platform', environment: 'laptops' });
  });
});

const CODEX: RecordParts = {
  attributes: {
    'event.name': 'codex.sse_event',
    'event.timestamp': TIMESTAMP,
    'event.kind': 'response.completed',
    'conversation.id': 'c-1',
    'user.account_id': 'acc-9',
    'app.version': '0.60.0',
    auth_mode: 'ApiKey',
    env: 'dev',
    model: 'gpt-5.1-codex',
    input_token_count: 230,
    output_token_count: 70,
    cached_token_count: 50,
    reasoning_token_count: 30,
    tool_token_count: 300,
  },
};

describe('a call of Codex', () => {
  it('is the end of a stream: cached tokens are part of the input, reasoning of the output', () => {
    const call = callOf(CODEX);
    expect(call).toMatchObject({
      provider: 'openai',
      billedBy: 'openai',
      model: 'gpt-5.1-codex',
      sessionId: 'c-1',
      userId: 'acc-9',
      environment: 'dev',
      endMicros: MINUTE_AGO,
      durationMs: 0,
    });
    expect(call.usage).toMatchObject({ input: 180, cacheRead: 50, output: 70, reasoning: 30 });
  });

  it('under a ChatGPT plan is in no bill of tokens', () => {
    const attributes = { ...CODEX.attributes, auth_mode: 'ChatGPT' };
    expect(callOf({ attributes })).toMatchObject({ provider: 'openai', billedBy: 'unknown' });
  });

  it('is no other event of the stream', () => {
    const attributes = { ...CODEX.attributes, 'event.kind': 'response.output_item.done' };
    expect(mapOne({ attributes })).toMatchObject({ calls: [], rejections: [], ignored: 1 });
  });
});

const GEMINI: RecordParts = {
  body: 'API response from gemini-2.5-pro. Status: 200. Duration: 1200ms.',
  attributes: {
    'event.name': 'gemini_cli.api_response',
    'event.timestamp': TIMESTAMP,
    'session.id': 's-3',
    'user.email': 'bob@example.com',
    model: 'gemini-2.5-pro',
    status_code: 200,
    duration_ms: 1_200,
    input_token_count: 12_000,
    cached_content_token_count: 8_000,
    output_token_count: 350,
    thoughts_token_count: 420,
    tool_token_count: 0,
    total_token_count: 12_770,
    auth_type: 'gemini-api-key',
    prompt_id: 'p-1',
  },
};

describe('a call of Gemini CLI', () => {
  it('adds thoughts to the output, and takes cached content off the input', () => {
    const call = callOf(GEMINI);
    expect(call).toMatchObject({ provider: 'google', billedBy: 'google', httpStatus: 200, status: 'ok' });
    expect(call.usage).toMatchObject({ input: 4_000, cacheRead: 8_000, output: 770, reasoning: 420 });
    expect(call.origin.usageFlags).toEqual([]);
  });

  it('with a Google account is in no bill of tokens', () => {
    const attributes = { ...GEMINI.attributes, auth_type: 'oauth-personal' };
    expect(callOf({ attributes }).billedBy).toBe('unknown');
  });

  it('counts once although it is said again by the names of the conventions', () => {
    const attributes = {
      'event.name': 'gen_ai.client.inference.operation.details',
      'gen_ai.request.model': 'gemini-2.5-pro',
      'gen_ai.usage.input_tokens': 12_000,
    };
    expect(mapOne({ attributes })).toMatchObject({ calls: [], ignored: 1 });
  });
});

describe('log records', () => {
  it.each([
    ['a prompt', { body: 'claude_code.user_prompt', attributes: { prompt_length: 3 } }],
    ['a log of an application', { body: 'listening on 3000', attributes: {} }],
    ['a name of the language', { body: 'constructor', attributes: { 'event.name': 'toString' } }],
  ])('that are no calls are ignored: %s', (_, parts) => {
    expect(mapOne(parts)).toMatchObject({ calls: [], rejections: [], ignored: 1 });
  });

  it('take their time from the record where the event has none', () => {
    const { 'event.timestamp': _, ...attributes } = CODEX.attributes;
    expect(callOf({ attributes }).endMicros).toBe(NOW);
  });

  it.each([
    ['no model', { model: '' }, 'missing_field', 'model'],
    ['a count below zero', { input_tokens: -1 }, 'invalid_number', 'input_tokens'],
    ['a count that is no number', { output_tokens: 'many' }, 'invalid_number', 'output_tokens'],
  ])('with %s are rejected, and the others are stored', (_, wrong, reason, field) => {
    const good = aRecord(CLAUDE).resourceLogs[0];
    const bad = aRecord({ ...CLAUDE, attributes: { ...CLAUDE.attributes, ...wrong } }).resourceLogs[0];
    const batch = mapLogRequest({ resourceLogs: [good, bad] }, context);
    expect(batch.calls).toHaveLength(1);
    expect(batch.rejections).toMatchObject([
      { index: 1, reason, label: 'log record "claude_code.api_request"' },
    ]);
    expect(batch.rejections[0]?.message).toContain(field);
  });

  it.each([
    [[], 'body'],
    [{ resourceLogs: 1 }, 'resourceLogs'],
    [{ resourceLogs: [{ scopeLogs: [1] }] }, 'resourceLogs[0].scopeLogs[0]'],
  ])('in another structure, %j, are refused by the name of the field', (body, field) => {
    expect(() => mapLogRequest(body, context)).toThrow(
      expect.objectContaining({ code: 'invalid_body', issues: [expect.objectContaining({ field })] }),
    );
  });
});
