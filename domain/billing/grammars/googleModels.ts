/** How Google's SKUs write models, as the ids of the price list. */

/** What may stand in a Gemini model's name beside its version. */
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

/** Sold as a preview only: the SKU leaves the word out, the price list does not. */
const PREVIEWS: ReadonlySet<string> = new Set(['gemini-3-flash', 'gemini-3-pro', 'gemini-3.1-pro']);

const CLAUDE_FAMILIES: ReadonlySet<string> = new Set(['opus', 'sonnet', 'haiku', 'fable']);

const VERSION = /^\d(?:\.\d)?$/;
const MONTH_OR_YEAR = /^(?:0[1-9]|1[0-2]|20\d\d)$/;
/** Embedding models are numbered, Gemma's by its size. */
const NUMBER = /^(?:00\d|\d{1,3}b|a\d{1,2}b)$/;

/** The id of the model that a SKU's remaining words name; undefined where they name none that is known. */
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

/** `sonnet 4.5` and, as the older ones are called, `3.5 sonnet`. */
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

/** `Text Embedding 005`, `Text Multilingual Embedding 002`; the word `text` has been taken for a modality. */
function textEmbedding(words: readonly string[]): string | undefined {
  const id = ['text', ...words].join('-');
  return /^text-(?:multilingual-)?embedding-(?:00\d|large-exp-\d\d-\d\d)$/.test(id) ? id : undefined;
}
