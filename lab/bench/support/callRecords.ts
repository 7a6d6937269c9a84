import type { CallRecord } from '../../../domain/events/event.js';
import { isoFromMicros } from '../../../domain/period.js';
import type { Random } from './random.js';
import type { TrafficCall } from './traffic.js';

const MICROS_A_MILLI = 1000n;

/**
 * A generated call as the mapping of its span would return it, with a given start; used to load millions without
 * HTTP.
 */
export function callRecordOf(call: TrafficCall, startMicros: bigint, random: Random): CallRecord {
  const responseId = (call.provider === 'openai' ? 'chatcmpl-' : 'msg_') + random.hex(24);
  return {
    kind: 'otel_span',
    provider: call.provider,
    billedBy: call.provider,
    billerFromHost: true,
    model: call.model,
    responseModel: call.responseModel,
    startMicros,
    endMicros: startMicros + BigInt(call.durationMs) * MICROS_A_MILLI,
    hashTimestamp: isoFromMicros(startMicros),
    durationMs: call.durationMs,
    requestId: responseId,
    responseId,
    sessionId: call.sessionId,
    teamId: call.team,
    feature: call.feature,
    projectId: null,
    userId: call.userId,
    environment: 'production',
    serviceTier: null,
    providerAccountId: null,
    providerKeyId: null,
    isBatch: false,
    batchId: null,
    stopReason: call.stopReason,
    status: 'ok',
    httpStatus: null,
    blockedRuleId: null,
    preventedPico: null,
    usage: {
      input: call.inputTokens - call.cachedTokens,
      cacheRead: call.cachedTokens,
      cacheCreation: 0,
      cacheCreation5m: null,
      cacheCreation1h: null,
      output: call.outputTokens,
      inputAudio: 0,
      outputAudio: 0,
      reasoning: call.reasoningTokens,
      cached: call.cachedTokens,
    },
    origin: {
      usageSource: 'otel',
      inputSemantics: 'inclusive',
      usageMissing: [],
      usageFlags: [],
      usageRaw: JSON.stringify({
        'gen_ai.usage.input_tokens': call.inputTokens,
        'gen_ai.usage.output_tokens': call.outputTokens,
        'gen_ai.usage.cache_read.input_tokens': call.cachedTokens,
        'gen_ai.usage.reasoning.output_tokens': call.reasoningTokens,
      }),
    },
    reportedCostPico: null,
    prompts: () => [],
    promptHash: null,
    payload: { 'gen_ai.request.max_tokens': 4096, 'gen_ai.request.temperature': 0.2, 'server.port': 443 },
    toolInput: null,
    toolOutput: null,
    service: null,
    serviceName: call.serviceName,
    scopeName: 'bench-instrumentation',
    scopeVersion: '1.0.0',
    process: null,
    trace: { traceId: random.hex(32), spanId: random.hex(16), parentSpanId: null },
    reportedClasses: 4,
    billerSpan: null,
  };
}
