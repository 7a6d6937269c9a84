/** One call; its token classes are disjoint. An absent class is in `usageMissing`, a call without usage is `unmetered`. */
import type { Pico } from '../money.js';
import type { Biller, Provider } from '../providers.js';

export type EventKind = 'otel_span' | 'observability_generation' | 'sdk_event';
export type EventStatus = 'ok' | 'error' | 'cancelled' | 'blocked';
export type CostSource = 'reported' | 'computed' | 'unpriced';
export type InputSemantics = 'inclusive' | 'exclusive' | 'disjoint';

/** Classes of tokens that have a price of their own. */
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
  /** Subset of output, never added. */
  reasoning: number;
  /** The cached count as an inclusive provider reported it; equal to cacheRead, 0 for exclusive providers. */
  cached: number;
}

export interface UsageOrigin {
  /** The convention that the counts were read by, e.g. `otel`, `openinference`, `traceloop`, `langfuse`, `openai`. */
  usageSource: string;
  inputSemantics: InputSemantics;
  /** Classes that this client cannot send, by name of TokenClass or `reasoning`. */
  usageMissing: readonly string[];
  /** The usage object as received, at most 1 KB of JSON text; null when there was none. */
  usageRaw: string | null;
  /** What does not add up in the counts as received: shown, never repaired in silence. */
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

/** A call as mapped from any way in, before it is priced and stored. Strings are stripped already. */
export interface CallRecord {
  kind: EventKind;
  provider: Provider;
  billedBy: Biller;
  /** True when the biller was told from a host; false when from the provider word or the model. */
  billerFromHost: boolean;
  model: string;
  responseModel: string | null;
  /** Microseconds since 1970-01-01Z of the start. */
  startMicros: bigint;
  endMicros: bigint;
  /** The time as it enters the hash: the nanosecond text as sent, else UTC ISO with microseconds. */
  hashTimestamp: string;
  durationMs: number;
  requestId: string | null;
  /** The provider's own response id: what makes two spans one call. */
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
  /** Null when the client sent no usage at all. */
  usage: TokenUsage | null;
  origin: UsageOrigin;
  /** Cost as the client reported it, pico-dollars. */
  reportedCostPico: Pico | null;
  /** Prompts without system instructions, untruncated; read on request, only short ones are kept. */
  prompts: () => readonly string[];
  /** Equal for calls with equal prompts (promptHashOf); null where there are none, or nobody is to know. */
  promptHash: bigint | null;
  payload: Json | null;
  toolInput: Json | null;
  toolOutput: Json | null;
  service: Json | null;
  /** Who told of it: OTel `service.name` and instrumentation scope, for ingest health. */
  serviceName: string;
  scopeName: string;
  scopeVersion: string;
  trace: SpanLink | null;
  /** How many classes this report itself told (0 = no usage): which of two reports is the richer; never completed. */
  reportedClasses: number;
  /** The report that named the biller, where another one of the call did; null when this one did. */
  billerSpan: BillerSpan | null;
}

/** Which report of a call named its biller: by its place and its times it is known to lie inside others. */
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

/** Why an item was not stored. */
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
  /** Place of the item in its request, from 0. */
  index: number;
  /** What the item calls itself, as far as it is known: `span "chat gpt-4o", id 00f067aa0ba902b7`; else ''. */
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
}

export const TOKENS_MAX = 1_000_000_000_000;
export const DURATION_MS_MAX = 1_000_000_000;
export const COST_USD_MAX = 1_000_000;
export const MODEL_CHARS_MAX = 256;
export const LABEL_CHARS_MAX = 256;
export const ID_CHARS_MAX = 512;
export const STOP_REASON_CHARS_MAX = 64;
export const PAYLOAD_BYTES_MAX = 262_144;
/** Of what a resource or a scope says once and each of its calls keeps: its service block, a tool's input or output. */
export const REPEATED_BYTES_MAX = 4_096;
export const USAGE_RAW_BYTES_MAX = 1_024;
/** Non-mapped attributes of a span that are kept in payload. */
export const PAYLOAD_ATTRIBUTES_MAX = 256;
export const INGEST_ITEMS_MAX = 10_000;
/** The newest spans of a trace that are compared to find repeated reports; a request holds no more. */
export const TRACE_SPANS_MAX = 10_000;

/** Columns in the order in which exports write them. */
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
