/**
 * The content of each client's reports, as measured against the fakes with the versions pinned in package.json and
 * python/requirements.txt. Tests expect Trueup to have exactly this data, and to name what is missing.
 */
import { isAnswered, type PlannedCall } from '../../fakes/plannedCall.js';

/**
 * How a call reaches Trueup. `usage`: with its counts. `unmetered`: without any. `partial`: aborted in mid-stream, with
 * the counts known by then. `attempt`: as a failed call. `nothing`: not at all. `refused`: without a model, so that it
 * cannot be stored.
 */
export type Telling = 'usage' | 'unmetered' | 'partial' | 'attempt' | 'nothing' | 'refused';

/** The reports of one client; each function receives one planned call. */
export interface ClientFacts {
  telling(call: PlannedCall): Telling;
  cacheRead: boolean;
  cacheWrite: boolean;
  /** Cache writes apart by lifetime. */
  cacheWriteSplit: boolean;
  reasoning(call: PlannedCall): boolean;
  responseId(call: PlannedCall): boolean;
  /** Whether it reports the model that answered; else only the requested one. */
  responseModel(call: PlannedCall): boolean;
  /** The output in the client's report, where it differs from the provider's count. */
  output?(call: PlannedCall): number;
  /** Reported output of a stream that was left; null when there is none. */
  partialOutput: number | null;
  /** The HTTP status of a failed call is reported. */
  httpStatus: boolean;
  /** It reports a stream that was left as cancelled, not as ended well. */
  reportsCancelled?: true;
  /** It reports a cost of 0 with each failed call. */
  reportsFailuresAsFree?: true;
  /** Whether it reports the provider; else an unlisted model's provider is unknown. */
  tellsProvider: boolean;
}

const always = (): boolean => true;
const never = (): boolean => false;

const isEmbedding = (call: PlannedCall): boolean => call.api === 'embeddings';
const isChatStream = (call: PlannedCall): boolean => call.api === 'chat' && call.isStream;
const isSilentStream = (call: PlannedCall): boolean => isChatStream(call) && !call.asksForUsage;

/** Everything reported: the Anthropic SDK's own spans. */
const WHOLE: ClientFacts = {
  telling: (call) => (isAnswered(call) ? 'usage' : call.fate === 'abort' ? 'partial' : 'attempt'),
  cacheRead: true,
  cacheWrite: true,
  cacheWriteSplit: true,
  reasoning: always,
  responseId: always,
  responseModel: always,
  partialOutput: null,
  httpStatus: true,
  tellsProvider: true,
};

const PLAIN: ClientFacts = { ...WHOLE, cacheWriteSplit: false, responseId: never, httpStatus: false };

export const ANTHROPIC_SDK: ClientFacts = WHOLE;

/** @arizeai/openinference-instrumentation-openai 4.2.7: no usage of chat streams and embeddings, no failures. */
export const OPENINFERENCE_OPENAI: ClientFacts = {
  ...PLAIN,
  telling(call) {
    if (call.fate === 'fail400' || call.fate === 'fail429') return 'nothing';
    if (isEmbedding(call) || isChatStream(call)) return 'unmetered';
    return isAnswered(call) ? 'usage' : 'attempt';
  },
  cacheWrite: false,
  responseModel: (call) => !isChatStream(call),
};

/** @arizeai/openinference-instrumentation-anthropic 0.2.8. */
export const OPENINFERENCE_ANTHROPIC: ClientFacts = { ...PLAIN, reasoning: never, partialOutput: 1 };

/** @traceloop/instrumentation-openai 0.27.0: no usage of streams, no failures, no embeddings. */
export const TRACELOOP_OPENAI: ClientFacts = {
  ...PLAIN,
  telling(call) {
    if (isEmbedding(call) || (!isAnswered(call) && call.api === 'chat')) return 'nothing';
    if (call.isStream) return 'unmetered';
    return isAnswered(call) ? 'usage' : 'nothing';
  },
  cacheRead: false,
  cacheWrite: false,
  reasoning: never,
  responseId: (call) => call.api === 'chat' || !call.isStream,
  responseModel: (call) => call.api === 'chat' || !call.isStream,
};

/** @traceloop/instrumentation-anthropic 0.27.0: raw input beside the cache counts. */
export const TRACELOOP_ANTHROPIC: ClientFacts = {
  ...PLAIN,
  telling: (call) => (isAnswered(call) ? 'usage' : call.fate === 'abort' ? 'nothing' : 'attempt'),
  reasoning: never,
};

/** @opentelemetry/instrumentation-openai 0.21.0: whole input only; a stream that was left is never reported. */
export const OTEL_OPENAI: ClientFacts = {
  ...PLAIN,
  telling(call) {
    if (call.fate === 'abort') return 'nothing';
    if (!isAnswered(call)) return 'attempt';
    return isSilentStream(call) ? 'unmetered' : 'usage';
  },
  cacheRead: false,
  cacheWrite: false,
  reasoning: never,
  responseId: (call) => !isEmbedding(call),
};

/** ai 7.0.173 with @ai-sdk/otel 1.0.173: requests the usage of every stream. */
export const AI_SDK: ClientFacts = {
  ...PLAIN,
  telling: (call) => (isAnswered(call) ? 'usage' : call.fate === 'abort' ? 'unmetered' : 'attempt'),
  reasoning: never,
  responseId: (call) => !isEmbedding(call) && isAnswered(call),
  responseModel: (call) => !isEmbedding(call) && isAnswered(call),
  httpStatus: true,
};

/** @langfuse/openai 5.11.1: no provider, no usage of embeddings; chat streams name the requested model. */
export const LANGFUSE_OPENAI: ClientFacts = {
  ...PLAIN,
  telling(call) {
    if (call.fate === 'abort') return 'nothing';
    if (!isAnswered(call)) return 'attempt';
    return isEmbedding(call) || isSilentStream(call) ? 'unmetered' : 'usage';
  },
  responseModel: (call) => !isChatStream(call),
  tellsProvider: false,
  reportsFailuresAsFree: true,
};

/** langfuse 3.39.2: no provider; the model is the requested one. */
export const LANGFUSE_LEGACY_OPENAI: ClientFacts = {
  ...LANGFUSE_OPENAI,
};

/** Spans written by hand in OpenTelemetry's own words, sent by the plain exporters. */
export const PLAIN_OTLP: ClientFacts = { ...WHOLE, cacheWriteSplit: false, partialOutput: 1 };

/** Trueup's own package, sdk/js: the provider's usage object. */
export const TRUEUP_SDK_ANTHROPIC: ClientFacts = { ...WHOLE, partialOutput: 1, reportsCancelled: true };

/** The same; a chat stream has its usage only where the request asks for it. */
export const TRUEUP_SDK_OPENAI: ClientFacts = {
  ...TRUEUP_SDK_ANTHROPIC,
  telling(call) {
    if (call.fate === 'abort') return 'unmetered';
    if (!isAnswered(call)) return 'attempt';
    return isSilentStream(call) ? 'unmetered' : 'usage';
  },
  cacheWriteSplit: false,
  responseId: (call) => !isEmbedding(call),
};

/** Python, openinference-instrumentation-openai 0.1.66. */
export const PYTHON_OPENINFERENCE_OPENAI: ClientFacts = {
  ...PLAIN,
  telling(call) {
    if (call.fate === 'abort') return 'unmetered';
    if (!isAnswered(call)) return 'attempt';
    return isSilentStream(call) ? 'unmetered' : 'usage';
  },
  responseModel: (call) => call.api !== 'responses' || isAnswered(call),
};

/** Python, openinference-instrumentation-anthropic 3.1.0. */
export const PYTHON_OPENINFERENCE_ANTHROPIC: ClientFacts = { ...PLAIN, partialOutput: 1 };

/** Python, opentelemetry-instrumentation-openai 0.62.4 (Traceloop): no cache writes. */
export const PYTHON_TRACELOOP_OPENAI: ClientFacts = {
  ...PYTHON_OPENINFERENCE_OPENAI,
  cacheWrite: false,
  reasoning: (call) => !isChatStream(call),
  responseId: (call) => !isEmbedding(call) && (call.api === 'chat' || call.fate !== 'abort'),
};

/** Python, opentelemetry-instrumentation-anthropic 0.62.4 (Traceloop): one output token too many in streams. */
export const PYTHON_TRACELOOP_ANTHROPIC: ClientFacts = {
  ...PLAIN,
  telling: (call) => (isAnswered(call) ? 'usage' : call.fate === 'abort' ? 'nothing' : 'attempt'),
  reasoning: never,
  responseId: always,
  output: (call) => call.usage.output + (call.isStream ? 1 : 0),
};

/** Python, langfuse 5.0.4, drop-in for OpenAI: the provider's own usage object. */
export const PYTHON_LANGFUSE_OPENAI: ClientFacts = {
  ...PYTHON_OPENINFERENCE_OPENAI,
  responseModel: always,
  tellsProvider: false,
  reportsFailuresAsFree: true,
};

/** Python, langfuse 2.60.10, drop-in for OpenAI: those fields of the usage that OpenAI's client declares. */
export const PYTHON_LANGFUSE_LEGACY_OPENAI: ClientFacts = {
  ...PYTHON_LANGFUSE_OPENAI,
  cacheWrite: false,
};

/** Python, langfuse 5.0.4, a generation by hand around an Anthropic call: the alias, four raw counts. */
export const PYTHON_LANGFUSE_ANTHROPIC: ClientFacts = {
  ...PLAIN,
  reasoning: never,
  responseModel: never,
  tellsProvider: false,
};
