import type { CallRecord, SpanLink, TokenUsage, UsageOrigin } from '../../domain/events/event.js';
import { PROMPT_SCAN_CHARS, PROMPTS_SCANNED_MAX } from '../../domain/policies/policy.js';

/**
 * A call in transit from a thread: its values in a row, without field names. With names, transferring a call costs more
 * than mapping it.
 */
export type PackedCall = ReturnType<typeof packCall>;

/** No prompt contains it: it is stripped from texts before. */
const SEPARATOR = '\u001f';

/** Packs a call. Prompts are a function, which cannot be sent, so the text that policies search is packed. */
export function packCall(call: CallRecord) {
  const { usage, origin, trace } = call;
  return [
    [call.kind, call.provider, call.billedBy, call.billerFromHost, call.billerSpan] as const,
    [call.model, call.responseModel, call.requestId, call.responseId, call.sessionId] as const,
    [call.startMicros, call.endMicros, call.hashTimestamp, call.durationMs] as const,
    [call.teamId, call.feature, call.projectId, call.userId, call.environment] as const,
    [call.serviceTier, call.providerAccountId, call.providerKeyId, call.isBatch, call.batchId] as const,
    [call.stopReason, call.status, call.httpStatus, call.blockedRuleId, call.preventedPico] as const,
    usage && packUsage(usage),
    packOrigin(origin),
    [call.reportedClasses, call.reportedCostPico, searchedText(call), call.promptHash] as const,
    [call.payload, call.toolInput, call.toolOutput, call.service] as const,
    [call.serviceName, call.scopeName, call.scopeVersion, call.process] as const,
    trace && ([trace.traceId, trace.spanId, trace.parentSpanId] as const),
  ] as const;
}

function packUsage(usage: TokenUsage) {
  const { input, cacheRead, cacheCreation, cacheCreation5m, cacheCreation1h } = usage;
  const { output, inputAudio, outputAudio, reasoning, cached } = usage;
  return [
    [input, cacheRead, cacheCreation, cacheCreation5m, cacheCreation1h],
    [output, inputAudio, outputAudio, reasoning, cached],
  ] as const;
}

function packOrigin({ usageSource, inputSemantics, usageMissing, usageRaw, usageFlags }: UsageOrigin) {
  return [usageSource, inputSemantics, usageMissing, usageRaw, usageFlags] as const;
}

/** The searched text of a call's prompts, joined. */
function searchedText(call: CallRecord): string {
  const texts = call.prompts().slice(0, PROMPTS_SCANNED_MAX);
  return texts.map((prompt) => prompt.slice(0, PROMPT_SCAN_CHARS)).join(SEPARATOR);
}

/** The literal lists every field, so that the compiler finds a missing one and all calls have one hidden class. */
export function unpackCall([
  [kind, provider, billedBy, billerFromHost, billerSpan],
  [model, responseModel, requestId, responseId, sessionId],
  [startMicros, endMicros, hashTimestamp, durationMs],
  [teamId, feature, projectId, userId, environment],
  [serviceTier, providerAccountId, providerKeyId, isBatch, batchId],
  [stopReason, status, httpStatus, blockedRuleId, preventedPico],
  usage,
  [usageSource, inputSemantics, usageMissing, usageRaw, usageFlags],
  [reportedClasses, reportedCostPico, said, promptHash],
  [payload, toolInput, toolOutput, service],
  [serviceName, scopeName, scopeVersion, process],
  trace,
]: PackedCall): CallRecord {
  return {
    kind,
    provider,
    billedBy,
    billerFromHost,
    billerSpan,
    model,
    responseModel,
    requestId,
    responseId,
    sessionId,
    startMicros,
    endMicros,
    hashTimestamp,
    durationMs,
    teamId,
    feature,
    projectId,
    userId,
    environment,
    serviceTier,
    providerAccountId,
    providerKeyId,
    isBatch,
    batchId,
    stopReason,
    status,
    httpStatus,
    blockedRuleId,
    preventedPico,
    usage: usage && unpackUsage(usage),
    origin: { usageSource, inputSemantics, usageMissing, usageRaw, usageFlags },
    reportedClasses,
    reportedCostPico,
    prompts: () => (said === '' ? [] : said.split(SEPARATOR)),
    promptHash,
    payload,
    toolInput,
    toolOutput,
    service,
    serviceName,
    scopeName,
    scopeVersion,
    process,
    trace: trace && unpackLink(trace),
  };
}

function unpackUsage([
  [input, cacheRead, cacheCreation, cacheCreation5m, cacheCreation1h],
  [output, inputAudio, outputAudio, reasoning, cached],
]: ReturnType<typeof packUsage>): TokenUsage {
  return {
    input,
    cacheRead,
    cacheCreation,
    cacheCreation5m,
    cacheCreation1h,
    output,
    inputAudio,
    outputAudio,
    reasoning,
    cached,
  };
}

function unpackLink([traceId, spanId, parentSpanId]: NonNullable<PackedCall[11]>): SpanLink {
  return { traceId, spanId, parentSpanId };
}
