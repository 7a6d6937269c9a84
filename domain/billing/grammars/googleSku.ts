import type { BilledClass } from '../billedRow.js';
import { googleModel } from './googleModels.js';
import { type ParsedLabel, UNKNOWN_LABEL, UNOBSERVABLE_LABEL } from './parsedLabel.js';

/**
 * Descriptions of Google's SKUs of its models. Two wordings are in use, both undocumented and taken from the lists of
 * SKUs that Google publishes (Cloud Billing Catalog): Vertex AI's `Gemini 2.5 Flash GA Text Input - Predictions`,
 * `Gemini 2.5 Pro Input Text Caching (Long)`, and the Gemini API's `Generate content output token count gemini 2.5
 * flash lite short output text non-thinking`. Every word has to be known, or the SKU is `other`.
 */

/** The Gemini API names the class before `token count`; `input` and `output` behind it say whose length is short. */
const COUNTED = /^(?:generate ?content|embed ?content) (.*?)\s?token count (?:for )?(.+)$/;

const CACHED: ReadonlySet<string> = new Set(['caching', 'cached', 'cache']);
const MODALITIES: ReadonlySet<string> = new Set(['text', 'image', 'video', 'audio']);
const TIERS: Readonly<Record<string, string>> = { priority: 'priority', flex: 'flex' };
const CONTEXTS: Readonly<Record<string, boolean>> = { short: false, long: true };
/** Vertex AI's global endpoint has the list price; others cost more for some models. */
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

/** Storage of caches, searches, tuning and bought capacity: no call shows them. */
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
  /** What is left: the model's name. */
  rest: string[];
}

/** A SKU's description → what it counts. Whose service the SKU belongs to is the caller's to know. */
export function parseGoogleSku(description: string): ParsedLabel {
  const text = normalise(description);
  if (NO_CALLS.some((pattern) => pattern.test(text))) return UNOBSERVABLE_LABEL;
  const [, head, tail = ''] = COUNTED.exec(text) ?? [];
  const words = head === undefined ? sort([], text.split(' ')) : sort(head.split(' '), tail.split(' '));
  const model = words && googleModel(words.rest);
  const tokenClass = words && classOf(words, model);
  if (!words || model === undefined || tokenClass === undefined) return UNKNOWN_LABEL;
  // Vertex AI counted the characters of these models and not their tokens.
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

/** `head`: where alone `input` and `output` name the class; empty where they do so anywhere. */
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

/** False where the word says something else than an earlier one. */
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
    // An embedding's name holds the word `text`.
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

/** Pictures and films that go in cost what text costs; sound, and everything but text that comes out, does not. */
function classOf(words: Words, model: string | undefined): BilledClass | undefined {
  const isAudio = words.modality === 'audio';
  const isText = words.modality === undefined || words.modality === 'text';
  if (words.directions.size > 1) return undefined;
  if (words.written !== undefined) {
    if (!words.cached || !isText) return undefined;
    return words.written === '1h' ? 'cache_write_1h' : 'cache_write_5m';
  }
  // Cached sound has no rate in the price list.
  if (words.cached) return isAudio || words.directions.has('output') ? undefined : 'cache_read';
  if (words.directions.has('input')) return isAudio ? 'input_audio' : 'input';
  if (words.directions.has('output')) return isAudio ? 'output_audio' : isText ? 'output' : undefined;
  return model?.includes('embedding') ? 'input' : undefined;
}
