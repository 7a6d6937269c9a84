import type { BilledClass } from '../billedRow.js';
import { type ParsedLabel, UNKNOWN_LABEL, UNOBSERVABLE_LABEL } from './parsedLabel.js';

/**
 * Google's model SKUs in the two undocumented wordings of the Cloud Billing Catalog. A SKU with an unknown word is
 * `other`.
 */

/**
 * The Gemini API names the class before `token count`; a later `input` or `output` names the part whose length is
 * short.
 */
const COUNTED = /^(?:generate ?content|embed ?content) (.*?)\s?token count (?:for )?(.+)$/;

const CACHED: ReadonlySet<string> = new Set(['caching', 'cached', 'cache']);
const MODALITIES: ReadonlySet<string> = new Set(['text', 'image', 'video', 'audio']);
const TIERS: Readonly<Record<string, string>> = { priority: 'priority', flex: 'flex' };
const CONTEXTS: Readonly<Record<string, boolean>> = { short: false, long: true };
/** Vertex AI's global endpoint has the list price; other places cost more for some models. */
const PLACES: Readonly<Record<string, string | null>> = { global: null, regional: 'vertex_regional' };
const NOISE: ReadonlySet<string> = new Set([
  'ga',
  'on',
  'non',
  'thinking',
  'tokens',
  'token',
  'count',
  'predictions',
  'prediction',
  'online',
  'context',
  'vertex',
  'ai',
  'anthropic',
]);

/** Storage of caches, searches, tuning and purchased capacity, which no call shows. */
const NO_CALLS: readonly RegExp[] = [
  /\bstorage\b/,
  /\bgrounding\b/,
  /\bprovisioned\b/,
  /\btuning\b/,
  /\btraining\b/,
  /\bgoogle (?:search|maps)\b/,
];

interface Words {
  directions: Set<string>;
  cached: boolean;
  written: '5m' | '1h' | undefined;
  modality: string | undefined;
  tier: string | undefined;
  region: string | null | undefined;
  longContext: boolean | null;
  isBatch: boolean;
  rest: string[];
}

/** Parses a SKU's description. The caller must know the SKU's service. */
export function parseGoogleSku(description: string): ParsedLabel {
  const text = normalise(description);
  if (NO_CALLS.some((pattern) => pattern.test(text))) return UNOBSERVABLE_LABEL;
  const [, head, tail = ''] = COUNTED.exec(text) ?? [];
  const words = head === undefined ? sort([], text.split(' ')) : sort(head.split(' '), tail.split(' '));
  const model = words && googleModel(words.rest);
  const tokenClass = words && classOf(words, model);
  if (!words || model === undefined || tokenClass === undefined) return UNKNOWN_LABEL;
  // Vertex AI billed these models by characters instead of tokens.
  if (head === undefined && /^gemini-1\./.test(model)) return UNKNOWN_LABEL;
  return {
    recognised: true,
    model,
    tokenClass,
    serviceTier: words.tier ?? 'standard',
    isBatch: words.isBatch,
    longContext: words.longContext,
    region: words.region ?? null,
    observable: true,
  };
}

function normalise(description: string): string {
  return description
    .toLowerCase()
    .replace(/[\s_/()-]+/g, ' ')
    .replace(/\bgeneratecontent\b/g, 'generate content')
    .replace(/\bembedcontent\b/g, 'embed content')
    .trim();
}

/** `head`: the only words in which `input` and `output` name the class; empty: they name it anywhere. */
function sort(head: readonly string[], tail: readonly string[]): Words | undefined {
  const words: Words = {
    directions: new Set(),
    cached: false,
    written: undefined,
    modality: undefined,
    tier: undefined,
    region: undefined,
    longContext: null,
    isBatch: false,
    rest: [],
  };
  for (const word of head) if (!take(words, word, true)) return undefined;
  for (const word of tail) if (!take(words, word, head.length === 0)) return undefined;
  return words;
}

/** false: the word contradicts an earlier one. */
function take(words: Words, word: string, namesClass: boolean): boolean {
  const place = PLACES[word];
  const context = CONTEXTS[word];
  if (word === '' || NOISE.has(word)) return true;
  if (word === 'input' || word === 'output') {
    if (namesClass) words.directions.add(word);
  } else if (CACHED.has(word)) words.cached = true;
  else if (word === 'write' || word === 'writes') words.written ??= '5m';
  else if (word === '1h') words.written = '1h';
  else if (word === 'read' || word === 'reads' || word === 'hit' || word === 'hits' || word === '5m')
    return true;
  else if (word === 'batch') words.isBatch = true;
  else if (MODALITIES.has(word)) {
    // The word `text` in an embedding's name is not a modality.
    if (words.modality !== undefined && words.modality !== word) return false;
    words.modality = word;
  } else if (TIERS[word]) words.tier = TIERS[word];
  else if (place !== undefined) words.region = place;
  else if (context !== undefined) {
    if (words.longContext !== null && words.longContext !== context) return false;
    words.longContext = context;
  } else words.rest.push(word);
  return true;
}

/** Image and video input costs as much as text; audio, and all output except text, does not. */
function classOf(words: Words, model: string | undefined): BilledClass | undefined {
  const isAudio = words.modality === 'audio';
  const isText = words.modality === undefined || words.modality === 'text';
  if (words.directions.size > 1) return undefined;
  if (words.written !== undefined) {
    if (!words.cached || !isText) return undefined;
    return words.written === '1h' ? 'cache_write_1h' : 'cache_write_5m';
  }
  // The price list has no rate for cached audio.
  if (words.cached) return isAudio || words.directions.has('output') ? undefined : 'cache_read';
  if (words.directions.has('input')) return isAudio ? 'input_audio' : 'input';
  if (words.directions.has('output')) return isAudio ? 'output_audio' : isText ? 'output' : undefined;
  return model?.includes('embedding') ? 'input' : undefined;
}

/** Google's SKU spellings of models → ids of the price list. */

/** Words in a Gemini model's name beside its version. */
const VARIANTS: ReadonlySet<string> = new Set([
  'flash',
  'lite',
  'pro',
  'ultra',
  'nano',
  '8b',
  'preview',
  'exp',
  'latest',
  'customtools',
  'cyber',
  'argon',
  'permissive',
  'computer',
  'use',
  'robotics',
  'er',
  'streaming',
  'embedding',
  'it',
  'maas',
]);

/** Models that are sold only as previews: the SKU omits the word, the price list does not. */
const PREVIEWS: ReadonlySet<string> = new Set(['gemini-3-flash', 'gemini-3-pro', 'gemini-3.1-pro']);

const CLAUDE_FAMILIES: ReadonlySet<string> = new Set(['opus', 'sonnet', 'haiku', 'fable']);

const VERSION = /^\d(?:\.\d)?$/;
const MONTH_OR_YEAR = /^(?:0[1-9]|1[0-2]|20\d\d)$/;
/** Embedding models have numbers, Gemma models sizes. */
const NUMBER = /^(?:00\d|\d{1,3}b|a\d{1,2}b)$/;

/** The model id that the remaining words name; undefined: unknown. */
export function googleModel(words: readonly string[]): string | undefined {
  const [maker, ...rest] = words;
  if (maker === 'claude') return claudeModel(rest);
  if (maker === 'embedding' || maker === 'multilingual') return textEmbedding(words);
  if (maker === 'deep')
    return known(rest, new Set(['research', 'max', 'preview', 'pro'])) ? words.join('-') : undefined;
  if (maker !== 'gemini' && maker !== 'gemma') return undefined;
  if (rest.length === 0 || !known(rest, VARIANTS)) return undefined;
  const id = words.join('-');
  return PREVIEWS.has(id) ? `${id}-preview` : id;
}

function known(words: readonly string[], variants: ReadonlySet<string>): boolean {
  return words.every(
    (word) => variants.has(word) || VERSION.test(word) || MONTH_OR_YEAR.test(word) || NUMBER.test(word),
  );
}

/** `sonnet 4.5`, or in the order of older names `3.5 sonnet`. */
function claudeModel(words: readonly string[]): string | undefined {
  const families = words.filter((word) => CLAUDE_FAMILIES.has(word));
  const versions = words.filter((word) => VERSION.test(word));
  const others = words.filter((word) => !CLAUDE_FAMILIES.has(word) && !VERSION.test(word) && word !== 'v2');
  if (families.length !== 1 || versions.length !== 1 || others.length > 0) return undefined;
  const version = (versions[0] as string).replace('.', '-');
  const isOld = version.startsWith('3');
  const name = isOld ? `claude-${version}-${families[0]}` : `claude-${families[0]}-${version}`;
  return words.includes('v2') ? `${name}-v2` : name;
}

/** `Text Embedding 005`, `Text Multilingual Embedding 002`; the word `text` was already read as a modality. */
function textEmbedding(words: readonly string[]): string | undefined {
  const id = ['text', ...words].join('-');
  return /^text-(?:multilingual-)?embedding-(?:00\d|large-exp-\d\d-\d\d)$/.test(id) ? id : undefined;
}
