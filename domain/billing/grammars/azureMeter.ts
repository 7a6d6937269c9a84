import type { BilledClass } from '../billedRow.js';
import { azureModel } from './azureModels.js';
import { type ParsedLabel, UNKNOWN_LABEL, UNOBSERVABLE_LABEL } from './parsedLabel.js';

/**
 * Azure's meters of its OpenAI models. No document describes the names; the words and their spellings are those of the
 * meters that the Azure Retail Prices API lists (service Foundry Models, products Azure OpenAI, Azure OpenAI GPT5 and
 * GPT6): `gpt-4o-0806-Inp-glbl Tokens`, `GPT 5 Mini outpt Glbl 1M Tokens`, `5.4 mini cd Inp Gl 1M Tokens`,
 * `5.6 sol ShortCo Cd Wr Std Gl 1M Tokens`. Every word has to be known, or the meter is `other`.
 */
const DIRECTIONS: Readonly<Record<string, 'input' | 'output'>> = {
  in: 'input',
  inp: 'input',
  inpt: 'input',
  input: 'input',
  prompt: 'input',
  out: 'output',
  outp: 'output',
  opt: 'output',
  outpt: 'output',
  output: 'output',
  completion: 'output',
};

const CACHED: ReadonlySet<string> = new Set(['cd', 'cached', 'cchd', 'ccchd', 'cache']);
const WRITTEN: ReadonlySet<string> = new Set(['wr', 'write', 'writes']);

/** Where the tokens may be worked on. Outside the global deployment they cost more (+10 % where a meter is listed). */
const PLACES: Readonly<Record<string, string | null>> = {
  gl: null,
  glbl: null,
  globl: null,
  global: null,
  dz: 'data_zone',
  dzn: 'data_zone',
  dzone: 'data_zone',
  datazone: 'data_zone',
  rg: 'regional',
  reg: 'regional',
  rgnl: 'regional',
  regnl: 'regional',
  regional: 'regional',
};

const TIERS: Readonly<Record<string, string>> = {
  std: 'standard',
  standard: 'standard',
  pp: 'priority',
  priority: 'priority',
  flex: 'flex',
};

const CONTEXTS: Readonly<Record<string, boolean>> = { shortco: false, longco: true };
const UNITS: Readonly<Record<string, bigint>> = { '1k': 1_000n, '1m': 1_000_000n };
const NOISE: ReadonlySet<string> = new Set(['token', 'tokens', 'tok', 'unit', 'units', 'azure', 'openai']);
const AUDIO: ReadonlySet<string> = new Set(['aud', 'audio']);
const TEXT: ReadonlySet<string> = new Set(['txt', 'text']);

/** Products of OpenAI's models, and those that do not say whose models they are. */
const MAY_BE_OPENAI = /openai|^(?:cognitive services|foundry models|azure ai services)?$/i;

/** Charges by the hour, by the session or by the gigabyte, and training: no call shows them. */
const NO_CALLS: readonly RegExp[] = [
  /\bhosting\b/,
  /\bhosted\b/,
  /\bprovisioned\b/,
  /\bptus?\b/,
  /\btrain(?:ing)?\b/,
  /\bgrader\b/,
  /\bcode interpreter\b/,
  /\bfile search\b/,
  /\bvector storage\b/,
  /\bweb search\b/,
];

interface Words {
  directions: Set<'input' | 'output'>;
  cached: boolean;
  written: boolean;
  audio: boolean;
  text: boolean;
  region: string | null | undefined;
  tier: string | undefined;
  isBatch: boolean;
  longContext: boolean | null;
  unitTokens: bigint | undefined;
  /** What is left: the model's name. */
  rest: string[];
}

/**
 * A meter's name → what it counts. `product` is the meter's subcategory or product where the bill gives it: a bare
 * version such as `4.3` is a model of OpenAI's only under one of OpenAI's products.
 */
export function parseAzureMeter(meter: string, product = ''): ParsedLabel {
  const text = normalise(meter);
  if (NO_CALLS.some((pattern) => pattern.test(text))) return UNOBSERVABLE_LABEL;
  const words = sort(text);
  if (!words) return UNKNOWN_LABEL;
  const model = azureModel(words.rest, MAY_BE_OPENAI.test(product.trim()), { isAudio: words.audio });
  const tokenClass = classOf(words, model);
  if (model === undefined || tokenClass === undefined) return UNKNOWN_LABEL;
  return {
    recognised: true,
    model,
    tokenClass,
    serviceTier: words.tier ?? 'standard',
    isBatch: words.isBatch,
    longContext: words.longContext,
    region: words.region ?? null,
    ...(words.unitTokens === undefined ? {} : { unitTokens: words.unitTokens }),
    observable: true,
  };
}

/** Dashes, slashes and spaces are used for one another; a dot counts only inside a number. */
function normalise(meter: string): string {
  return meter
    .toLowerCase()
    .replace(/[\s_/()-]+/g, ' ')
    .replace(/\bdata zone\b/g, 'datazone')
    .replace(/\bshort co(?:ntext)?\b/g, 'shortco')
    .replace(/\blong co(?:ntext)?\b/g, 'longco')
    .trim();
}

/** Undefined where two words contradict each other. */
function sort(text: string): Words | undefined {
  const words: Words = {
    directions: new Set(),
    cached: false,
    written: false,
    audio: false,
    text: false,
    region: undefined,
    tier: undefined,
    isBatch: false,
    longContext: null,
    unitTokens: undefined,
    rest: [],
  };
  const all = text.split(' ').filter((word) => word !== '');
  // An embedding's name holds the word `text`; nothing of it is a modality.
  const isEmbedding = all.includes('embedding') || all.includes('embeddings');
  for (const word of all) if (!take(words, word, isEmbedding)) return undefined;
  return words;
}

/** False where the word says something else than an earlier one. */
function take(words: Words, word: string, isEmbedding: boolean): boolean {
  const direction = DIRECTIONS[word];
  const place = PLACES[word];
  const tier = TIERS[word];
  const context = CONTEXTS[word];
  const unit = UNITS[word];
  if (direction) words.directions.add(direction);
  else if (CACHED.has(word)) words.cached = true;
  else if (WRITTEN.has(word)) words.written = true;
  else if (word === 'batch') words.isBatch = true;
  else if (place !== undefined) {
    if (words.region !== undefined && words.region !== place) return false;
    words.region = place;
  } else if (tier) {
    if (words.tier !== undefined && words.tier !== tier) return false;
    words.tier = tier;
  } else if (context !== undefined) {
    if (words.longContext !== null && words.longContext !== context) return false;
    words.longContext = context;
  } else if (unit !== undefined) words.unitTokens = unit;
  else if (AUDIO.has(word)) words.audio = true;
  else if (TEXT.has(word) && !isEmbedding) words.text = true;
  else if (!NOISE.has(word)) words.rest.push(word);
  return true;
}

/** Undefined where the words name no class that has a price of its own. */
function classOf(words: Words, model: string | undefined): BilledClass | undefined {
  if (model?.startsWith('text-embedding') && words.directions.size === 0) return 'input';
  if (words.directions.size > 1) return undefined;
  const isInput = words.directions.has('input');
  const isOutput = words.directions.has('output');
  // Audio that comes from the cache has no price in the list; written, neither.
  const isAudio = words.audio && !words.text;
  if (words.written) return isAudio || isOutput ? undefined : 'cache_write_5m';
  if (words.cached) return isAudio || isOutput ? undefined : 'cache_read';
  if (isInput) return isAudio ? 'input_audio' : 'input';
  if (isOutput) return isAudio ? 'output_audio' : 'output';
  return undefined;
}
