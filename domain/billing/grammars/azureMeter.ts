import type { BilledClass } from '../billedRow.js';
import { type ParsedLabel, UNKNOWN_LABEL, UNOBSERVABLE_LABEL } from './parsedLabel.js';

/**
 * Azure's OpenAI meters in the spellings of the Retail Prices API. Every word must be known, else the meter is
 * `other`.
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

/** Places of processing. Outside the global deployment tokens cost more (+10 % for listed meters). */
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

/** Products of OpenAI models, and products that do not name the maker. */
const MAY_BE_OPENAI = /openai|^(?:cognitive services|foundry models|azure ai services)?$/i;

/** Charges by hour, session or gigabyte, and training, which no call shows. */
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
  rest: string[];
}

/** `product` is the meter's product: a bare version such as `4.3` is an OpenAI model only under OpenAI's products. */
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

/** Dashes, slashes and spaces are interchangeable; a dot counts only inside a number. */
function normalise(meter: string): string {
  return meter
    .toLowerCase()
    .replace(/[\s_/()-]+/g, ' ')
    .replace(/\bdata zone\b/g, 'datazone')
    .replace(/\bshort co(?:ntext)?\b/g, 'shortco')
    .replace(/\blong co(?:ntext)?\b/g, 'longco')
    .trim();
}

/** Undefined: two words contradict each other. */
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
  // The word `text` in an embedding's name is not a modality.
  const isEmbedding = all.includes('embedding') || all.includes('embeddings');
  for (const word of all) if (!take(words, word, isEmbedding)) return undefined;
  return words;
}

/** false: the word contradicts an earlier one. */
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

/** Undefined: the words name no class with a separate price. */
function classOf(words: Words, model: string | undefined): BilledClass | undefined {
  if (model?.startsWith('text-embedding') && words.directions.size === 0) return 'input';
  if (words.directions.size > 1) return undefined;
  const isInput = words.directions.has('input');
  const isOutput = words.directions.has('output');
  // The price list has no rate for cached audio, neither for reads nor for writes.
  const isAudio = words.audio && !words.text;
  if (words.written) return isAudio || isOutput ? undefined : 'cache_write_5m';
  if (words.cached) return isAudio || isOutput ? undefined : 'cache_read';
  if (isInput) return isAudio ? 'input_audio' : 'input';
  if (isOutput) return isAudio ? 'output_audio' : 'output';
  return undefined;
}

/**
 * Azure writes versions without a maker (`5.4 mini`) and snapshots as month and day (`0806`); the results are ids
 * of the price list.
 */

/** OpenAI models that meters name by their bare version. Other makers' bare versions (Grok 4.3) are not listed. */
const BARE_VERSIONS: ReadonlySet<string> = new Set([
  '4o',
  '4.1',
  '5',
  '5.1',
  '5.2',
  '5.3',
  '5.4',
  '5.5',
  '5.6',
  '6',
  '6.1',
]);

/** Words that may follow a version. */
const VARIANTS: ReadonlySet<string> = new Set([
  'mini',
  'nano',
  'pro',
  'chat',
  'codex',
  'max',
  'sol',
  'terra',
  'luna',
  'astra',
  'turbo',
  'instruct',
  'vision',
  'preview',
  'deep',
  'research',
  '16k',
  '32k',
  '120b',
  '20b',
]);

/** Names that do not begin with a version, words joined by dashes. */
const NAMED: Readonly<Record<string, string>> = {
  'chat-latest': 'chat-latest',
  'gpt-chat-latest': 'gpt-chat-latest',
  'codex-mini': 'codex-mini',
  'computer-use-preview': 'computer-use-preview',
  'computer-use': 'computer-use-preview',
  'gpt-oss-120b': 'gpt-oss-120b',
  'gpt-oss-20b': 'gpt-oss-20b',
  'gpt-audio': 'gpt-audio',
  'gpt-audio-1.5': 'gpt-audio-1.5',
  'gpt-audio-mini': 'gpt-audio-mini',
  'text-embedding-3-large': 'text-embedding-3-large',
  'text-embedding-3-small': 'text-embedding-3-small',
  'text-embedding-ada': 'text-embedding-ada-002',
  'text-embedding-ada-002': 'text-embedding-ada-002',
  'text-embedding-ada-002-v2': 'text-embedding-ada-002',
  'embedding-ada': 'text-embedding-ada-002',
  'embeddings-ada': 'text-embedding-ada-002',
  // The price list has both spellings.
  'gpt-35-turbo-instruct': 'gpt-35-turbo-instruct',
  // Only the turbo models have the context of 128 thousand tokens.
  'gpt-4-turbo128k': 'gpt-4-turbo',
};

/** Snapshots that meters name by month and day only; the year matters if one has a separate price. */
const SNAPSHOTS: readonly string[] = [
  'gpt-4o-2024-05-13',
  'gpt-4o-2024-08-06',
  'gpt-4o-2024-11-20',
  'gpt-4o-mini-2024-07-18',
  'gpt-4o-audio-preview-2024-12-17',
  'gpt-4o-mini-audio-preview-2024-12-17',
  'gpt-4-turbo-2024-04-09',
  'gpt-4.1-2025-04-14',
  'gpt-4.1-mini-2025-04-14',
  'gpt-4.1-nano-2025-04-14',
  'gpt-5-2025-08-07',
  'gpt-5-mini-2025-08-07',
  'gpt-5-nano-2025-08-07',
  'gpt-5.1-2025-11-13',
  'gpt-5.1-codex-2025-11-13',
  'gpt-5.1-codex-mini-2025-11-13',
  'gpt-5.2-2025-12-11',
  'gpt-5.2-pro-2025-12-11',
  'gpt-5.4-2026-03-05',
  'gpt-5.4-pro-2026-03-05',
  'gpt-5.4-mini-2026-03-17',
  'gpt-5.4-nano-2026-03-17',
  'gpt-5.5-2026-04-23',
  'gpt-5.5-2026-04-24',
  'gpt-5.5-pro-2026-04-23',
  'gpt-5.6-luna-2026-07-09',
  'gpt-5.6-sol-2026-07-09',
  'gpt-5.6-terra-2026-07-09',
  'gpt-6-astra-2026-09-03',
  'gpt-6-luna-2026-09-22',
  'gpt-6-sol-2026-09-22',
  'gpt-6.1-sol-2026-09-29',
  'gpt-audio-2025-08-28',
  'gpt-audio-1.5-2026-02-23',
  'gpt-audio-mini-2025-10-06',
  'o1-2024-12-17',
  'o1-mini-2024-09-12',
  'o1-preview-2024-09-12',
  'o3-2025-04-16',
  'o3-mini-2025-01-31',
  'o3-pro-2025-06-10',
  'o4-mini-2025-04-16',
];

const BY_MONTH_AND_DAY: ReadonlyMap<string, string> = new Map(
  SNAPSHOTS.map((id) => [`${id.slice(0, -11)} ${id.slice(-5).replace('-', '')}`, id]),
);

const MONTH_DAY = /^(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])$/;
const MONTH_DAY_YEAR = /^((?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))(20\d\d)$/;

/** The id that the remaining words name; undefined: unknown. `takesBareVersions`: the meter may be OpenAI's. */
export function azureModel(
  words: readonly string[],
  takesBareVersions: boolean,
  { isAudio }: { isAudio: boolean },
): string | undefined {
  const dated = words.flatMap((word) => (isDate(word) ? [word] : []));
  const named = words.filter((word) => !isDate(word));
  if (dated.length > 1) return undefined;
  const name = nameOf(named, takesBareVersions, isAudio);
  return name === undefined ? undefined : withDate(name, dated[0]);
}

const isDate = (word: string): boolean => MONTH_DAY.test(word) || MONTH_DAY_YEAR.test(word);

function withDate(name: string, date: string | undefined): string {
  if (date === undefined) return name;
  const [, monthDay, year] = MONTH_DAY_YEAR.exec(date) ?? [];
  if (monthDay !== undefined) return `${name}-${year}-${monthDay.slice(0, 2)}-${monthDay.slice(2)}`;
  // An unknown snapshot keeps its date; the price list decides whether it has a price.
  const preview = name.endsWith('-preview') ? name.slice(0, -'-preview'.length) : undefined;
  const known = BY_MONTH_AND_DAY.get(`${name} ${date}`);
  return known ?? (preview === undefined ? `${name}-${date}` : `${preview}-${date}-preview`);
}

function nameOf(words: readonly string[], takesBareVersions: boolean, isAudio: boolean): string | undefined {
  const joined = words.join('-');
  // An audio meter names an audio model, never a text model.
  if (isAudio) return audioName(joined, takesBareVersions);
  const named = NAMED[joined];
  if (named !== undefined) return named;
  const [first = '', ...others] = words;
  if (/^o[1-9]$/.test(first)) return others.every((word) => VARIANTS.has(word)) ? joined : undefined;
  if (first === 'gpt') return versioned(others, () => true);
  const glued = /^gpt(\d.*)$/.exec(first)?.[1];
  if (glued !== undefined) return versioned([glued, ...others], () => true);
  return takesBareVersions ? versioned(words, (version) => BARE_VERSIONS.has(version)) : undefined;
}

const AUDIO_MODEL = /^(?:gpt-)?(4o(?:-mini)?|1\.5|mini)?(?:-?(?:preview|prev))?$/;

/** `gpt-audio`, `gpt-4o-audio-preview` and similar names, without the word for audio, which may be anywhere. */
function audioName(joined: string, takesBareVersions: boolean): string | undefined {
  if (joined === 'gpt') return 'gpt-audio';
  const version = AUDIO_MODEL.exec(joined)?.[1];
  if (version === undefined || (!joined.startsWith('gpt') && !takesBareVersions)) return undefined;
  return version.startsWith('4o') ? `gpt-${version}-audio-preview` : `gpt-audio-${version}`;
}

const VERSION = /^\d(?:\.\d)?o?$/;

/** `5.4 mini`, `35 turbo 16k`, `54 mini`: a version, then known words. */
function versioned(words: readonly string[], isKnown: (version: string) => boolean): string | undefined {
  const [first = '', ...variants] = words;
  const version = /^[3-9][1-9]$/.test(first) ? `${first[0]}.${first[1]}` : first;
  if (!VERSION.test(version) || !isKnown(version)) return undefined;
  return variants.every((word) => VARIANTS.has(word)) ? ['gpt', version, ...variants].join('-') : undefined;
}
