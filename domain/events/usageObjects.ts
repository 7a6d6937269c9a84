/** Reads a provider's usage object or a client's version of it. Keys compare in snake case with dotted nesting. */
import type { InputSemantics, Json } from './event.js';
import { readTokens } from './itemFault.js';
import type { ReportedUsage } from './usage.js';

export interface ReadUsage {
  reported: ReportedUsage;
  semantics: InputSemantics;
  source: string;
  /** The usage shows that the call used a batch API. */
  isBatch: boolean;
  serviceTier: string | undefined;
}

interface Dialect {
  source: string;
  /** The object is of this dialect if one of these keys is present. */
  marks: readonly string[];
  semantics: InputSemantics;
  /** Keys by class; the first present one counts. Several keys in one entry are added up. */
  counts: { [Class in keyof ReportedUsage]?: readonly (string | readonly string[])[] };
  /** The part of the audio that was cached, which is no audio input of this call. */
  cachedAudio?: readonly string[];
}

const ANTHROPIC_CACHE = {
  cacheRead: ['cache_read_input_tokens'],
  cacheWrite: ['cache_creation_input_tokens', 'cache_write_input_tokens'],
  cacheWrite5m: ['cache_creation.ephemeral_5m_input_tokens', 'cache_details.5m'],
  cacheWrite1h: ['cache_creation.ephemeral_1h_input_tokens', 'cache_details.1h'],
} as const;

/** Dialects in the order of trial: those with more specific marks come first. */
const DIALECTS: readonly Dialect[] = [
  {
    // Thoughts and tool prompts are counted separately from candidates and prompt; cached content is part of the
    // prompt.
    source: 'google',
    marks: ['prompt_token_count', 'candidates_token_count', 'total_token_count'],
    semantics: 'inclusive',
    counts: {
      input: [['prompt_token_count', 'tool_use_prompt_token_count']],
      output: [['candidates_token_count', 'thoughts_token_count']],
      cacheRead: ['cached_content_token_count'],
      reasoning: ['thoughts_token_count'],
      total: ['total_token_count'],
      inputAudio: ['prompt_tokens_details.audio'],
      outputAudio: ['candidates_tokens_details.audio'],
    },
    cachedAudio: ['cache_tokens_details.audio'],
  },
  {
    // Billed units are charged; `tokens` also counts the template around the prompt.
    source: 'cohere',
    marks: ['billed_units.input_tokens', 'billed_units.output_tokens', 'tokens.input_tokens'],
    semantics: 'inclusive',
    counts: {
      input: ['billed_units.input_tokens', 'tokens.input_tokens'],
      output: ['billed_units.output_tokens', 'tokens.output_tokens'],
    },
  },
  {
    source: 'openai',
    marks: ['prompt_tokens', 'completion_tokens'],
    semantics: 'inclusive',
    counts: {
      input: ['prompt_tokens'],
      output: ['completion_tokens'],
      cacheRead: [
        'prompt_tokens_details.cached_tokens',
        'prompt_cache_hit_tokens',
        'cache_read_input_tokens',
      ],
      cacheWrite: [
        'prompt_tokens_details.cache_write_tokens',
        'prompt_tokens_details.cache_creation_tokens',
        'cache_creation_input_tokens',
      ],
      // LiteLLM's form of Anthropic's usage.
      cacheWrite5m: ['prompt_tokens_details.cache_creation_token_details.ephemeral_5m_input_tokens'],
      cacheWrite1h: ['prompt_tokens_details.cache_creation_token_details.ephemeral_1h_input_tokens'],
      reasoning: ['completion_tokens_details.reasoning_tokens', 'reasoning_tokens'],
      total: ['total_tokens'],
      inputAudio: ['prompt_tokens_details.audio_tokens'],
      outputAudio: ['completion_tokens_details.audio_tokens'],
    },
  },
  {
    source: 'openai',
    marks: [
      'input_tokens_details.cached_tokens',
      'output_tokens_details.reasoning_tokens',
      'input_token_details.cached_tokens',
      'input_token_details.audio_tokens',
    ],
    semantics: 'inclusive',
    counts: {
      input: ['input_tokens'],
      output: ['output_tokens'],
      cacheRead: ['input_tokens_details.cached_tokens', 'input_token_details.cached_tokens'],
      cacheWrite: ['input_tokens_details.cache_write_tokens', 'input_tokens_details.cache_creation_tokens'],
      reasoning: ['output_tokens_details.reasoning_tokens'],
      total: ['total_tokens'],
      inputAudio: ['input_tokens_details.audio_tokens', 'input_token_details.audio_tokens'],
      outputAudio: ['output_tokens_details.audio_tokens', 'output_token_details.audio_tokens'],
    },
    cachedAudio: ['input_token_details.cached_tokens_details.audio_tokens'],
  },
  {
    source: 'ai_sdk',
    marks: [
      'cached_input_tokens',
      'input_token_details.cache_read_tokens',
      'input_token_details.no_cache_tokens',
    ],
    semantics: 'inclusive',
    counts: {
      input: ['input_tokens'],
      output: ['output_tokens'],
      cacheRead: ['input_token_details.cache_read_tokens', 'cached_input_tokens'],
      cacheWrite: ['input_token_details.cache_write_tokens'],
      reasoning: ['output_token_details.reasoning_tokens', 'reasoning_tokens'],
      total: ['total_tokens'],
    },
  },
  {
    // Anthropic's messages and Bedrock's Converse report cached tokens separately from the input.
    source: 'anthropic',
    marks: [...ANTHROPIC_CACHE.cacheRead, ...ANTHROPIC_CACHE.cacheWrite, ...ANTHROPIC_CACHE.cacheWrite1h],
    semantics: 'exclusive',
    counts: {
      input: ['input_tokens', 'input'],
      output: ['output_tokens', 'output'],
      ...ANTHROPIC_CACHE,
      reasoning: ['output_tokens_details.thinking_tokens'],
      total: ['total_tokens', 'total'],
    },
  },
  {
    // No cached part is reported, so both semantics agree.
    source: 'provider',
    marks: ['input_tokens', 'output_tokens'],
    semantics: 'inclusive',
    counts: {
      input: ['input_tokens'],
      output: ['output_tokens'],
      total: ['total_tokens'],
      reasoning: ['output_tokens_details.thinking_tokens', 'reasoning_tokens'],
    },
  },
];

/** Undefined: no known count. @param field the path of the usage. @throws ItemFault invalid_number. */
export function readUsageObject(usage: { [key: string]: Json }, field: string): ReadUsage | undefined {
  const counts = new Counts(usage, field);
  const dialect = DIALECTS.find(({ marks }) => marks.some((mark) => counts.names(mark)));
  const isBuckets = (counts.names('input') || counts.names('output')) && dialect?.source !== 'anthropic';
  const read = isBuckets ? readBuckets(counts) : dialect && readDialect(dialect, counts);
  if (read === undefined) return undefined;
  const tier = usage.service_tier;
  const serviceTier = typeof tier === 'string' && tier !== '' ? tier : undefined;
  return { ...read, serviceTier, isBatch: serviceTier === 'batch' };
}

type Read = Pick<ReadUsage, 'reported' | 'semantics' | 'source'>;

function readDialect(dialect: Dialect, counts: Counts): Read {
  const reported: ReportedUsage = {};
  for (const [name, keys] of Object.entries(dialect.counts) as [
    keyof ReportedUsage,
    readonly (string | readonly string[])[],
  ][]) {
    for (const key of keys) {
      // Every key is read, so that an invalid value is found also after the one that counts.
      const value = counts.sumOf(typeof key === 'string' ? [key] : key);
      if (value !== undefined) reported[name] ??= value;
    }
  }
  const cachedAudio = counts.sumOf(dialect.cachedAudio ?? []);
  if (cachedAudio !== undefined && reported.inputAudio !== undefined && cachedAudio <= reported.inputAudio) {
    reported.inputAudio -= cachedAudio;
  }
  return { reported, semantics: dialect.semantics, source: dialect.source };
}

/** Buckets of input and output by the endings of clients' names; every other bucket counts as plain tokens. */
const BUCKETS: readonly { class: keyof ReportedUsage; pattern: RegExp }[] = [
  { class: 'total', pattern: /^(?:total|total_tokens)$/ },
  {
    class: 'cacheWrite1h',
    pattern: /^(?:input_)?(?:cache_(?:creation|write)_|ephemeral_)1h(?:_input)?(?:_tokens)?$/,
  },
  {
    class: 'cacheWrite5m',
    pattern: /^(?:input_)?(?:cache_(?:creation|write)_|ephemeral_)5m(?:_input)?(?:_tokens)?$/,
  },
  { class: 'cacheRead', pattern: /^(?:input_)?(?:cached|cache_read)(?:_input)?(?:_tokens)?$/ },
  { class: 'cacheWrite', pattern: /^(?:input_)?cache_(?:creation|write)(?:_input)?(?:_tokens)?$/ },
  { class: 'inputAudio', pattern: /^input_audio(?:_tokens)?$/ },
  { class: 'outputAudio', pattern: /^output_audio(?:_tokens)?$/ },
  { class: 'reasoning', pattern: /^(?:output_)?(?:reasoning|thinking)(?:_tokens)?$/ },
  { class: 'input', pattern: /^input(?:_|$)/ },
  { class: 'output', pattern: /^output(?:_|$)/ },
];

const WHOLE_BUCKET = /^(?:input|output|total)(?:_tokens)?$/;

/**
 * Whether a value that is no number is under a key that must hold one; clients' own names such as `input_type`
 * need none.
 */
function isBucket(tokenClass: keyof ReportedUsage, key: string, isObject: boolean): boolean {
  if (WHOLE_BUCKET.test(key)) return true;
  const isNamedFreely = tokenClass === 'input' || tokenClass === 'output';
  // An object such as `cache_creation` contains counts.
  return !isNamedFreely && (!isObject || key.endsWith('_tokens'));
}

/**
 * Langfuse's usage_details. Its JavaScript SDK sends buckets, but the total may prove that parts are still
 * included.
 */
function readBuckets(counts: Counts): Read {
  const reported: ReportedUsage = {};
  for (const key of counts.keys()) {
    const bucket = BUCKETS.find(({ pattern }) => pattern.test(key));
    if (bucket === undefined || key.endsWith('_cost')) continue;
    if (!counts.isNumeric(key) && !isBucket(bucket.class, key, counts.isObject(key))) continue;
    reported[bucket.class] = (reported[bucket.class] ?? 0) + (counts.sumOf([key]) ?? 0);
  }
  const parts =
    (reported.cacheRead ?? 0) +
    (reported.cacheWrite ?? (reported.cacheWrite5m ?? 0) + (reported.cacheWrite1h ?? 0)) +
    (reported.inputAudio ?? 0) +
    (reported.outputAudio ?? 0) +
    (reported.reasoning ?? 0);
  const isInside =
    parts > 0 &&
    reported.total !== undefined &&
    reported.total === (reported.input ?? 0) + (reported.output ?? 0);
  return { reported, semantics: isInside ? 'inclusive' : 'disjoint', source: 'langfuse' };
}

const FLATTEN_DEPTH_MAX = 2;
const FLATTEN_KEYS_MAX = 100;

/** The values of a usage object by dotted snake-case key; null counts as absent. */
class Counts {
  readonly #field: string;
  /** Numbers, and invalid values under the keys of numbers. */
  readonly #values = new Map<string, Json>();
  /** Objects by their own key: an unknown shape, unless a known count is inside. */
  readonly #objects = new Map<string, Json>();

  constructor(usage: { [key: string]: Json }, field: string) {
    this.#field = field;
    this.#collect(usage, '', 0);
  }

  /** Whether the object has this key with a value that is no object. */
  names(key: string): boolean {
    return this.#values.has(key);
  }

  isNumeric(key: string): boolean {
    const value = this.#values.get(key);
    return typeof value === 'number' || (typeof value === 'string' && looksNumeric(value));
  }

  isObject(key: string): boolean {
    return this.#objects.has(key);
  }

  keys(): string[] {
    return [...this.#values.keys(), ...this.#objects.keys()];
  }

  /** The sum of the counts under these keys; undefined: none is present. @throws ItemFault invalid_number. */
  sumOf(keys: readonly string[]): number | undefined {
    let sum: number | undefined;
    for (const key of keys) {
      const value = this.#values.get(key) ?? this.#objects.get(key);
      if (value !== undefined) sum = (sum ?? 0) + readTokens(value, `${this.#field}.${key}`);
    }
    return sum;
  }

  #collect(object: { [key: string]: Json }, prefix: string, depth: number): void {
    for (const [name, value] of Object.entries(object)) {
      if (this.#values.size + this.#objects.size >= FLATTEN_KEYS_MAX) return;
      if (value === null) continue;
      const key = prefix + snakeCase(name);
      if (Array.isArray(value)) this.#collectParts(value, key);
      if (typeof value !== 'object' || Array.isArray(value)) this.#values.set(key, value);
      else {
        this.#objects.set(key, value);
        if (depth < FLATTEN_DEPTH_MAX) this.#collect(value, `${key}.`, depth + 1);
      }
    }
  }

  /** Google's counts by modality and Bedrock's cache writes by lifetime are lists. */
  #collectParts(parts: readonly Json[], key: string): void {
    for (const part of parts) {
      if (typeof part !== 'object' || part === null || Array.isArray(part)) continue;
      const name = part.modality ?? part.ttl;
      const value = part.tokenCount ?? part.token_count ?? part.inputTokens ?? part.input_tokens;
      if (typeof name !== 'string' || value === undefined || value === null) continue;
      const path = `${key}.${name.toLowerCase()}`;
      const before = this.#values.get(path);
      if (before === undefined && this.#values.size >= FLATTEN_KEYS_MAX) return;
      // A value that is no number stays, and is refused when it is read.
      if (before === undefined || typeof value !== 'number') this.#values.set(path, value);
      else if (typeof before === 'number') this.#values.set(path, before + value);
    }
  }
}

function looksNumeric(text: string): boolean {
  return /^\s*[+-]?(?:\d|nan\s*$|inf)/i.test(text);
}

function snakeCase(name: string): string {
  return /[A-Z]/.test(name)
    ? name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`).replace(/^_/, '')
    : name;
}
