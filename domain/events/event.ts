/**
 * One call with disjoint token classes. `usageMissing` lists the absent classes; a call without usage is
 * `unmetered`.
 */
import type { Pico } from '../money.js';
import type { Biller, Provider } from '../providers.js';
import type { MeteredPoint } from './agentMetrics.js';
import type { ObservationPart } from './observations/observationRecord.js';

export type EventKind = 'otel_span' | 'observability_generation' | 'sdk_event';
export type EventStatus = 'ok' | 'error' | 'cancelled' | 'blocked';
export type CostSource = 'reported' | 'computed' | 'unpriced';
export type InputSemantics = 'inclusive' | 'exclusive' | 'disjoint';

/** Token classes with a price of their own. */
export const TOKEN_CLASSES = [
  'input',
  'cache_read',
  'cache_write_5m',
  'cache_write_1h',
  'output',
  'input_audio',
  'output_audio',
] as const;
export type TokenClass = (typeof TOKEN_CLASSES)[number];

/**
 * Disjoint token counts of one call, each 0…10^12. `cacheCreation` is the whole cache write; its split by
 * lifetime is known only where the client sends it (both null otherwise, and it is priced as 5-minute write).
 * `inputAudio` and `outputAudio` are disjoint parts too: they are not inside `input` and `output` for pricing,
 * but the presented `input_tokens` and `output_tokens` include them.
 */
export interface TokenUsage {
  input: number;
  cacheRead: number;
  cacheCreation: number;
  cacheCreation5m: number | null;
  cacheCreation1h: number | null;
  output: number;
  inputAudio: number;
  outputAudio: number;
  /** A subset of the output, never added to it. */
  reasoning: number;
  /** The cached count as an inclusive provider reported it; equal to cacheRead, 0 for exclusive providers. */
  cached: number;
}

export interface UsageOrigin {
  /** The convention of the counts, e.g. `otel`, `openinference`, `traceloop`, `langfuse`, `openai`. */
  usageSource: string;
  inputSemantics: InputSemantics;
  /** Classes that this client cannot send: names of TokenClass, or `reasoning`. */
  usageMissing: readonly string[];
  /** The usage object as received, at most 1 KB of JSON text; null: none was received. */
  usageRaw: string | null;
  /** Contradictions in the received counts, which are shown and never corrected silently. */
  usageFlags: readonly UsageFlag[];
}

/**
 * Contradictions inside one usage as received.
 * - total_mismatch: the total is neither the sum of the counts as sent nor of the classes read from them.
 * - cache_split_mismatch: the 5-minute and 1-hour writes do not add up to the cache write; the split is not used.
 * - audio_exceeds_input, audio_exceeds_output: more audio than fits beside the cached tokens; the rest counts as text.
 * - reasoning_exceeds_output: reasoning cannot be part of the output, so it was added to it.
 */
export const USAGE_FLAGS = [
  'total_mismatch',
  'cache_split_mismatch',
  'audio_exceeds_input',
  'audio_exceeds_output',
  'reasoning_exceeds_output',
] as const;
export type UsageFlag = (typeof USAGE_FLAGS)[number];

/** A call mapped from any input format, before it is priced and stored. Strings are already stripped. */
export interface CallRecord {
  kind: EventKind;
  provider: Provider;
  billedBy: Biller;
  /** true: a host identified the biller; false: the provider word or the model did. */
  billerFromHost: boolean;
  model: string;
  responseModel: string | null;
  /** Microseconds since 1970-01-01Z of the start. */
  startMicros: bigint;
  endMicros: bigint;
  /** The time in the hash: the nanosecond text as sent, else UTC ISO with microseconds. */
  hashTimestamp: string;
  durationMs: number;
  requestId: string | null;
  /** The provider's response id; two spans with the same one are one call. */
  responseId: string | null;
  sessionId: string;
  teamId: string | null;
  feature: string | null;
  projectId: string | null;
  userId: string | null;
  environment: string | null;
  serviceTier: string | null;
  providerAccountId: string | null;
  providerKeyId: string | null;
  isBatch: boolean;
  batchId: string | null;
  stopReason: string;
  status: EventStatus;
  httpStatus: number | null;
  blockedRuleId: string | null;
  preventedPico: Pico | null;
  /** null: the client sent no usage. */
  usage: TokenUsage | null;
  origin: UsageOrigin;
  /** The client's reported cost, pico-dollars. */
  reportedCostPico: Pico | null;
  /** Prompts without system instructions, untruncated. Read on request; only short ones are kept in memory. */
  prompts: () => readonly string[];
  /**
   * Equal for calls with equal prompts (promptHashOf); null: the call has no prompt, or the hash must not be
   * stored.
   */
  promptHash: bigint | null;
  payload: Json | null;
  toolInput: Json | null;
  toolOutput: Json | null;
  service: Json | null;
  /** The sender: OTel `service.name` and below the instrumentation scope, for ingest health. */
  serviceName: string;
  scopeName: string;
  scopeVersion: string;
  /** The process that made the call; null: unknown. */
  process: CallProcess | null;
  trace: SpanLink | null;
  /** Number of classes in this report itself (0: no usage), which ranks reports. Merges do not change it. */
  reportedClasses: number;
  /** The report that identified the biller; null: this one. */
  billerSpan: BillerSpan | null;
}

/** A process, as an OTLP resource describes it (otlpGroups.ts). */
export interface CallProcess {
  /** 64 bits, signed: equal for equal processes. */
  hash: bigint;
  /** Whether other requests name the process too; false: it is one entry of one request. */
  isIdentified: boolean;
}

/** The span and times of the report that identified the biller, to check its nesting. */
export interface BillerSpan {
  trace: SpanLink | null;
  startMicros: bigint;
  endMicros: bigint;
}

/** A span's place in its trace: 32 and 16 lower-case hex digits; the parent is null for a root. */
export interface SpanLink {
  traceId: string;
  spanId: string;
  parentSpanId: string | null;
}

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Reasons why an item was not stored. */
export const REJECTION_REASONS = [
  'unknown_provider',
  'invalid_number',
  'timestamp_out_of_range',
  'string_too_long',
  'missing_field',
  'invalid_field',
] as const;
export type RejectionReason = (typeof REJECTION_REASONS)[number];

export interface Rejection {
  /** Index of the item in its request, from 0. */
  index: number;
  /** The item's name and id as far as known: `span "chat gpt-4o", id 00f067aa0ba902b7`; else ''. */
  label: string;
  reason: RejectionReason;
  message: string;
  serviceName: string;
  scopeName: string;
}

/** Calls to store, rejected items, a count of ignored items, and the trace links of ignored spans. */
export interface MappedBatch {
  calls: CallRecord[];
  rejections: Rejection[];
  ignored: number;
  links: SpanLink[];
  /** Tokens and costs that metrics report; absent: the request has another form. */
  points?: MeteredPoint[];
  /** Observations that are reported in parts; absent: the request has another form. */
  observations?: ReportedObservations;
}

/** The items of a client that reports observations in parts. */
export interface ReportedObservations {
  /** The client's ids of all items of the request, in their order. */
  itemIds: string[];
  parts: ObservationPart[];
}

export const TOKENS_MAX = 1_000_000_000_000;
export const DURATION_MS_MAX = 1_000_000_000;
export const COST_USD_MAX = 1_000_000;
export const MODEL_CHARS_MAX = 256;
export const LABEL_CHARS_MAX = 256;
export const ID_CHARS_MAX = 512;
export const STOP_REASON_CHARS_MAX = 64;
export const PAYLOAD_BYTES_MAX = 262_144;
/**
 * Maximum bytes of resource or scope data that each of their calls stores: the service block, a tool's input or
 * output.
 */
export const REPEATED_BYTES_MAX = 4_096;
export const USAGE_RAW_BYTES_MAX = 1_024;
/** Maximum unmapped attributes of a span in the payload. */
export const PAYLOAD_ATTRIBUTES_MAX = 256;
export const INGEST_ITEMS_MAX = 10_000;
/**
 * Maximum spans of a trace, newest first, that are compared to find repeated reports; a request may contain no
 * more.
 */
export const TRACE_SPANS_MAX = 10_000;

/** Columns in the order of exports. */
export const EVENT_COLUMNS = [
  'id',
  'provider',
  'model',
  'session_id',
  'team_id',
  'feature',
  'is_batch',
  'batch_id',
  'input_tokens',
  'output_tokens',
  'cache_read',
  'cache_creation',
  'reasoning_tok',
  'cached_tok',
  'cost_usd',
  'duration_ms',
  'stop_reason',
  'timestamp',
  'request_id',
  'response_model',
  'api_key_hash',
  'api_key_id',
  'provider_key_id',
  'kind',
  'status',
  'http_status',
  'project_id',
  'user_id',
  'environment',
  'service_tier',
  'billed_by',
  'provider_account_id',
  'end_at',
  'cache_creation_5m',
  'cache_creation_1h',
  'cost_source',
  'computed_cost_usd',
  'price_gaps',
  'usage_source',
  'input_semantics',
  'usage_missing',
  'usage_flags',
  'superseded_by',
  'blocked_rule_id',
  'prevented_usd',
  'ingested_at',
] as const;
