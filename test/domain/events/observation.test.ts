import { describe, expect, it } from 'vitest';
import type { DomainError } from '../../../domain/errors.js';
import type { CallRecord } from '../../../domain/events/event.js';
import { mapObservation } from '../../../domain/events/observations/observation.js';
import { isoFromMicros } from '../../../domain/period.js';
import { classesOf, context, NOW } from './support.js';

const START = NOW - 3_600_000_000n;
const BODY = {
  id: 'obs-1',
  type: 'GENERATION',
  model: 'gpt-4o',
  startTime: isoFromMicros(START),
  latency: 1234,
  usage: { input: 120, output: 30 },
  metadata: { feature: 'search' },
};

const map = (body: object) => mapObservation({ type: 'observation-create', body }, context);

function callOf(changes: object): CallRecord {
  const batch = map({ ...BODY, ...changes });
  if (batch.calls.length !== 1) throw new Error(JSON.stringify(batch.rejections));
  return batch.calls[0] as CallRecord;
}

function reasonOf(changes: object): string | undefined {
  const batch = map({ ...BODY, ...changes });
  expect(batch.calls).toEqual([]);
  return batch.rejections[0]?.reason;
}

describe('an observation of type GENERATION', () => {
  it('is one call, with the fields that the interface shows', () => {
    const call = callOf({});
    expect(call).toMatchObject({
      kind: 'observability_generation',
      provider: 'openai',
      model: 'gpt-4o',
      startMicros: START,
      endMicros: START + 1_234_000n,
      durationMs: 1234,
      requestId: 'obs-1',
      responseId: null,
      feature: 'search',
      sessionId: '',
      stopReason: 'unknown',
      status: 'ok',
      payload: null,
      scopeName: 'observability',
    });
    expect(classesOf(call)).toEqual([120, 0, 0, 30, 0]);
    expect(call.origin).toMatchObject({
      usageSource: 'observability',
      usageRaw: '{"input":120,"output":30}',
    });
  });

  it('takes its labels and its provider from the metadata', () => {
    const metadata = {
      provider: 'aws.bedrock',
      team_id: 't',
      feature: 'f',
      session_id: 's',
      user_id: 'u',
      project_id: 'p',
      environment: 'prod',
      is_batch: true,
      batch_id: 'b',
      _service: { api_key_prefix: 'sk', provider_key_id: 'k' },
      region: 'eu',
    };
    const call = callOf({ metadata });
    expect(call).toMatchObject({
      provider: 'aws_bedrock',
      teamId: 't',
      feature: 'f',
      sessionId: 's',
      userId: 'u',
      projectId: 'p',
      environment: 'prod',
      isBatch: true,
      batchId: 'b',
      providerKeyId: 'k',
      service: { api_key_prefix: 'sk', provider_key_id: 'k', environment: 'prod' },
      payload: { metadata: { region: 'eu' } },
    });
  });

  it('belongs to the session of its metadata, else to its trace', () => {
    expect(callOf({ traceId: 'trace-1' }).sessionId).toBe('trace-1');
    expect(callOf({ traceId: 'trace-1', metadata: { session_id: 's' } }).sessionId).toBe('s');
  });

  it('keeps its input and output, and reads prompts from the input', () => {
    const input = [
      { role: 'system', content: 'be brief' },
      { role: 'user', content: 'na\u00efve' },
    ];
    const call = callOf({ input, output: 'yes', name: 'n' });
    expect(call.payload).toEqual({
      input: [input[0], { role: 'user', content: 'nave' }],
      output: 'yes',
      name: 'n',
    });
    expect(call.prompts()).toEqual(['nave']);
  });

  it('without usage is unmetered, not free', () => {
    expect(callOf({ usage: undefined }).usage).toBeNull();
    expect(callOf({ usage: { input: null } }).usage).toBeNull();
  });

  it('reads other dialects of usage', () => {
    const usage = {
      promptTokens: 1200,
      completionTokens: 300,
      totalTokens: 1500,
      promptTokensDetails: { cachedTokens: 1000 },
    };
    expect(classesOf(callOf({ usage }))).toEqual([200, 1000, 0, 300, 0]);
  });

  it('lasts as long as its latency, rounded half up, else until its end', () => {
    expect(callOf({ latency: 10.5 }).durationMs).toBe(11);
    expect(callOf({ latency: undefined, endTime: isoFromMicros(START + 2_500_500n) })).toMatchObject({
      durationMs: 2501,
      endMicros: START + 2_500_500n,
    });
    expect(callOf({ latency: undefined })).toMatchObject({ durationMs: 0, endMicros: START });
  });

  it('enters the hash by its time in UTC with microseconds', () => {
    expect(callOf({ startTime: '2026-11-20T11:00:00' }).hashTimestamp).toBe('2026-11-20T11:00:00.000000Z');
    expect(callOf({ startTime: '2026-11-20T13:00:00.25+02:00' }).hashTimestamp).toBe(
      '2026-11-20T11:00:00.250000Z',
    );
  });

  it.each([
    [{ model: undefined }, 'missing_field'],
    [{ startTime: undefined }, 'missing_field'],
    [{ startTime: 'soon' }, 'invalid_field'],
    [{ startTime: '2019-12-31T23:59:59Z' }, 'timestamp_out_of_range'],
    [{ startTime: '2026-11-21T12:00:01Z' }, 'timestamp_out_of_range'],
    [{ latency: -1 }, 'invalid_number'],
    [{ latency: 1e10 }, 'invalid_number'],
    [{ usage: { input: -1 } }, 'invalid_number'],
    [{ usage: { input: 1.5 } }, 'invalid_number'],
    [{ usage: 7 }, 'invalid_field'],
    [{ model: 'llama', metadata: {} }, 'unknown_provider'],
    [{ metadata: { provider: 'groq' } }, 'unknown_provider'],
    [{ id: 'x'.repeat(513) }, 'string_too_long'],
    [{ metadata: { feature: 'x'.repeat(257) } }, 'string_too_long'],
    [{ metadata: { team_id: ['x'] } }, 'invalid_field'],
  ])('with %j is rejected as %s', (changes, reason) => {
    expect(reasonOf(changes)).toBe(reason);
  });
});

describe('other observations', () => {
  it.each(['SPAN', 'EVENT', 'TOOL', 'AGENT'])('of type %s are ignored', (type) => {
    expect(map({ ...BODY, type })).toEqual({ calls: [], rejections: [], ignored: 1, links: [] });
  });

  it.each([
    [{ type: 'trace-create', body: BODY }, 'unknown_observation_type'],
    [{ type: 'observation-update', body: BODY }, 'unknown_observation_type'],
    [{ body: BODY }, 'invalid_body'],
    [{ type: 'observation-create' }, 'invalid_body'],
    [{ type: 'observation-create', body: [] }, 'invalid_body'],
    [{ type: 'observation-create', body: {} }, 'invalid_body'],
    [null, 'invalid_body'],
    ['x', 'invalid_body'],
  ])('%j is refused as a whole: %s', (message, code) => {
    expect(() => mapObservation(message, context)).toThrow(expect.objectContaining({ code }) as DomainError);
  });
});
