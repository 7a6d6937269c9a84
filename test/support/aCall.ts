import type { CallRecord, MappedBatch, TokenUsage } from '../../domain/events/event.js';
import { isoFromMicros, microsOfDay } from '../../domain/period.js';

/** Usage with only the given counts. */
export function aUsage(counts: Partial<TokenUsage> = {}): TokenUsage {
  return {
    input: 0,
    cacheRead: 0,
    cacheCreation: 0,
    cacheCreation5m: null,
    cacheCreation1h: null,
    output: 0,
    inputAudio: 0,
    outputAudio: 0,
    reasoning: 0,
    cached: 0,
    ...counts,
  };
}

/** A call as mapping returns it: 100 tokens in and 50 out of a priced model, at noon of 2 February 2026. */
export function aCall(overrides: Partial<CallRecord> = {}): CallRecord {
  const startMicros = overrides.startMicros ?? microsOfDay('2026-02-02') + 43_200_000_000n;
  const endMicros = overrides.endMicros ?? startMicros + 1_500_000n;
  return {
    kind: 'sdk_event',
    provider: 'openai',
    billedBy: 'openai',
    billerFromHost: false,
    billerSpan: null,
    model: 'gpt-4o',
    responseModel: null,
    startMicros,
    endMicros,
    hashTimestamp: isoFromMicros(startMicros),
    durationMs: Number((endMicros - startMicros) / 1_000n),
    requestId: null,
    responseId: null,
    sessionId: '',
    teamId: null,
    feature: null,
    projectId: null,
    userId: null,
    environment: null,
    serviceTier: null,
    providerAccountId: null,
    providerKeyId: null,
    isBatch: false,
    batchId: null,
    stopReason: 'stop',
    status: 'ok',
    httpStatus: null,
    blockedRuleId: null,
    preventedPico: null,
    usage: aUsage({ input: 100, output: 50 }),
    origin: {
      usageSource: 'row',
      inputSemantics: 'disjoint',
      usageMissing: [],
      usageRaw: null,
      usageFlags: [],
    },
    reportedClasses: 2,
    reportedCostPico: null,
    prompts: () => [],
    promptHash: null,
    payload: null,
    toolInput: null,
    toolOutput: null,
    service: null,
    serviceName: 'checkout',
    scopeName: 'sdk',
    scopeVersion: '1.0.0',
    process: null,
    trace: null,
    ...overrides,
  };
}

/** A request's worth of calls without anything refused or ignored. */
export function aBatch(calls: CallRecord[]): MappedBatch {
  return { calls, rejections: [], ignored: 0, links: [] };
}
