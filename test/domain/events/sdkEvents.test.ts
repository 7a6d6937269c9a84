import { describe, expect, it } from 'vitest';
import type { CallRecord } from '../../../domain/events/event.js';
import { mapSdkEvents } from '../../../domain/events/sdkEvents.js';
import { isoFromMicros } from '../../../domain/period.js';
import { classesOf, context, NOW } from './support.js';

const START = NOW - 3_600_000_000n;
const ITEM = { provider: 'openai', model: 'gpt-4o', timestamp: isoFromMicros(START) };

function callOf(item: object): CallRecord {
  const batch = mapSdkEvents([{ ...ITEM, ...item }], context);
  if (batch.calls.length !== 1) throw new Error(JSON.stringify(batch.rejections));
  return batch.calls[0] as CallRecord;
}

function reasonOf(item: object): string | undefined {
  return mapSdkEvents([{ ...ITEM, ...item }], context).rejections[0]?.reason;
}

describe('an event of a wrapper', () => {
  it('carries the names of an Event', () => {
    const call = callOf({
      request_id: 'req-1',
      response_model: 'gpt-4o-2024-08-06',
      session_id: 's',
      team_id: 't',
      feature: 'f',
      project_id: 'p',
      user_id: 'u',
      environment: 'prod',
      service_tier: 'flex',
      is_batch: true,
      batch_id: 'b',
      provider_account_id: 'org-1',
      provider_key_id: 'key-1',
      input_tokens: 200,
      cache_read: 1000,
      cache_creation: 30,
      cache_creation_5m: 20,
      cache_creation_1h: 10,
      output_tokens: 300,
      reasoning_tok: 100,
      cost_usd: 0.0125,
      duration_ms: 900,
      stop_reason: 'stop',
      payload: { prompt: 'na\u00efve' },
      tool_input: { q: 1 },
      tool_output: 'r',
      _service: { name: 'shop', region: 'eu' },
    });
    expect(call).toMatchObject({
      kind: 'sdk_event',
      requestId: 'req-1',
      responseId: null,
      responseModel: 'gpt-4o-2024-08-06',
      sessionId: 's',
      teamId: 't',
      feature: 'f',
      projectId: 'p',
      userId: 'u',
      environment: 'prod',
      serviceTier: 'flex',
      isBatch: true,
      batchId: 'b',
      providerAccountId: 'org-1',
      providerKeyId: 'key-1',
      reportedCostPico: 12_500_000_000n,
      durationMs: 900,
      startMicros: START,
      endMicros: START + 900_000n,
      stopReason: 'stop',
      status: 'ok',
      payload: { prompt: 'nave' },
      toolInput: { q: 1 },
      toolOutput: 'r',
      service: { name: 'shop', region: 'eu', environment: 'prod' },
      serviceName: 'shop',
      usage: {
        input: 200,
        cacheRead: 1000,
        cacheCreation: 30,
        cacheCreation5m: 20,
        cacheCreation1h: 10,
        output: 300,
        reasoning: 100,
        cached: 1000,
      },
      origin: { usageSource: 'event', inputSemantics: 'disjoint', usageMissing: [], usageFlags: [] },
    });
    expect(call.prompts()).toEqual(['nave']);
  });

  it('has disjoint counts: an input below its cached tokens and audio inside are unchanged', () => {
    const call = callOf({
      input_tokens: 50,
      input_audio: 20,
      output_tokens: 40,
      output_audio: 30,
      reasoning_tok: 35,
      cache_read: 10,
    });
    expect(call.usage).toMatchObject({
      input: 30,
      inputAudio: 20,
      cacheRead: 10,
      output: 10,
      outputAudio: 30,
      reasoning: 35,
    });
  });

  it('may carry the provider’s usage object instead, which then counts', () => {
    const usage = {
      prompt_tokens: 1200,
      completion_tokens: 300,
      total_tokens: 1500,
      prompt_tokens_details: { cached_tokens: 1000 },
    };
    const call = callOf({ usage, input_tokens: 0, output_tokens: 0 });
    expect(classesOf(call)).toEqual([200, 1000, 0, 300, 0]);
    expect(call.origin).toMatchObject({
      usageSource: 'openai',
      inputSemantics: 'inclusive',
      usageRaw: JSON.stringify(usage),
    });
  });

  it('is a batch call where its usage is marked as batch', () => {
    const usage = {
      input_tokens: 50,
      output_tokens: 300,
      cache_read_input_tokens: 1000,
      service_tier: 'batch',
    };
    expect(callOf({ provider: 'anthropic', model: 'claude-x', usage })).toMatchObject({
      isBatch: true,
      serviceTier: 'batch',
    });
  });

  it('without any count is unmetered', () => {
    const call = callOf({});
    expect([call.usage, call.origin.usageRaw, call.origin.usageMissing]).toEqual([
      null,
      null,
      ['input', 'output'],
    ]);
    expect(callOf({ usage: {} }).usage).toBeNull();
  });

  it.each(['chatcmpl-1', 'resp_1', 'msg_1'])('is the call of a span with the response id %s', (id) => {
    expect(callOf({ request_id: id }).responseId).toBe(id);
    expect(callOf({ response_id: id })).toMatchObject({ requestId: id, responseId: id });
  });

  it('that failed is an attempt; one that was blocked keeps its rule and what it spared', () => {
    expect(callOf({ status: 'error', http_status: 429 })).toMatchObject({
      status: 'error',
      httpStatus: 429,
      usage: null,
    });
    expect(callOf({ status: 'cancelled' }).status).toBe('cancelled');
    expect(callOf({ status: 'blocked', blocked_rule_id: 'r1', prevented_usd: 0.29 })).toMatchObject({
      blockedRuleId: 'r1',
      preventedPico: 290_000_000_000n,
    });
  });

  it('that was blocked costs nothing; what speaks of blocking speaks of no other one', () => {
    const blocked = { status: 'blocked', blocked_rule_id: 'r1', prevented_usd: 0.29 };
    expect(callOf({ ...blocked, cost_usd: 0 }).reportedCostPico).toBeNull();
    expect(callOf({ status: 'blocked' })).toMatchObject({ blockedRuleId: null, preventedPico: null });
    expect(callOf({ ...blocked, prevented_usd: 0 }).preventedPico).toBe(0n);
    expect(reasonOf({ ...blocked, cost_usd: 0.01 })).toBe('invalid_field');
    expect(reasonOf({ ...blocked, cost_usd: -1 })).toBe('invalid_number');
    expect(reasonOf({ ...blocked, prevented_usd: 1_000_001 })).toBe('invalid_number');
    expect(reasonOf({ ...blocked, blocked_rule_id: 'r'.repeat(513) })).toBe('string_too_long');
    for (const status of ['ok', 'error', 'cancelled', undefined]) {
      expect(reasonOf({ ...blocked, status })).toBe('invalid_field');
      expect(reasonOf({ status, prevented_usd: '0.000000000001' })).toBe('invalid_field');
      expect(callOf({ status, prevented_usd: 0, blocked_rule_id: null })).toMatchObject({
        blockedRuleId: null,
        preventedPico: null,
      });
    }
  });

  it('is billed by the host that it names', () => {
    expect(callOf({ base_url: 'https://shop.openai.azure.com/openai' }).billedBy).toBe('azure_openai');
    expect(callOf({ base_url: 'http://localhost:8000' }).billedBy).toBe('unknown');
    expect(callOf({ billed_by: 'unknown' }).billedBy).toBe('unknown');
    expect(callOf({ provider: 'gemini' })).toMatchObject({ provider: 'google', billedBy: 'google' });
  });

  it('ends at its end time, or after its duration', () => {
    const end_at = isoFromMicros(START + 700_000n);
    expect(callOf({ end_at })).toMatchObject({ durationMs: 700, endMicros: START + 700_000n });
    expect(callOf({ end_at, duration_ms: 650 })).toMatchObject({
      durationMs: 650,
      endMicros: START + 700_000n,
    });
  });

  it.each([
    [{ provider: undefined }, 'missing_field'],
    [{ model: '' }, 'missing_field'],
    [{ timestamp: undefined }, 'missing_field'],
    [{ timestamp: 1_700_000_000 }, 'invalid_field'],
    [{ timestamp: '2019-01-01' }, 'timestamp_out_of_range'],
    [{ end_at: '2020-01-01' }, 'invalid_number'],
    [{ provider: 'groq' }, 'unknown_provider'],
    [{ input_tokens: -1 }, 'invalid_number'],
    [{ input_tokens: 1.5 }, 'invalid_number'],
    [{ output_tokens: 1, reasoning_tok: 2 }, 'invalid_number'],
    [{ input_tokens: 1, input_audio: 2 }, 'invalid_number'],
    [{ cost_usd: 1_000_001 }, 'invalid_number'],
    [{ cost_usd: 'free' }, 'invalid_number'],
    [{ duration_ms: -1 }, 'invalid_number'],
    [{ usage: [] }, 'invalid_field'],
    [{ usage: { prompt_tokens: -1 } }, 'invalid_number'],
    [{ status: 'fine' }, 'invalid_field'],
    [{ http_status: 42 }, 'invalid_field'],
    [{ is_batch: 'perhaps' }, 'invalid_field'],
    [{ billed_by: 'groq' }, 'invalid_field'],
    [{ model: 'm'.repeat(257) }, 'string_too_long'],
    [{ stop_reason: 's'.repeat(65) }, 'string_too_long'],
    [{ model: { name: 'x' } }, 'invalid_field'],
  ])('with %j is rejected as %s', (item, reason) => {
    expect(reasonOf(item)).toBe(reason);
  });

  it('that is wrong costs the others nothing, and is named by its index', () => {
    const batch = mapSdkEvents([ITEM, null, { ...ITEM, model: undefined }, [], ITEM], context);
    expect(batch.calls).toHaveLength(2);
    expect(batch.rejections.map(({ index, reason }) => [index, reason])).toEqual([
      [1, 'invalid_field'],
      [2, 'missing_field'],
      [3, 'invalid_field'],
    ]);
  });

  it('reads no field from the prototype', () => {
    expect(reasonOf({ model: undefined, ...JSON.parse('{"__proto__":{"model":"gpt-4o"}}') })).toBe(
      'missing_field',
    );
  });
});
