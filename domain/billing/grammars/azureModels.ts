/**
 * How Azure's meters write its OpenAI models: a version without the maker's name (`5.4 mini`, `6 sol`, `4o`), a
 * snapshot by its month and day (`0806`), rarely with the year (`08062026`). The ids are those of the price list.
 */

/** Models of OpenAI that are written by their bare version; other makers' bare versions (Grok 4.3) are not among them. */
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

/** What may follow a version. */
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

/** Names that no version begins, words joined by dashes. */
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
  // The price list has it under both spellings.
  'gpt-35-turbo-instruct': 'gpt-35-turbo-instruct',
  // The context of 128 thousand tokens came with the turbo models.
  'gpt-4-turbo128k': 'gpt-4-turbo',
};

/**
 * Snapshots whose meters name month and day only. OpenAI names a snapshot by its date; where one of them has a price
 * of its own the year decides.
 */
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

/**
 * The id of the model that a meter's remaining words name; undefined where they name none that is known.
 * `takesBareVersions`: the meter belongs to OpenAI's models, or nothing says whose it is.
 */
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
  // An unknown snapshot keeps its date: whether it has a price is the price list's to say.
  const preview = name.endsWith('-preview') ? name.slice(0, -'-preview'.length) : undefined;
  const known = BY_MONTH_AND_DAY.get(`${name} ${date}`);
  return known ?? (preview === undefined ? `${name}-${date}` : `${preview}-${date}-preview`);
}

function nameOf(words: readonly string[], takesBareVersions: boolean, isAudio: boolean): string | undefined {
  const joined = words.join('-');
  // Nothing with sound in it is a model of text.
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

/** `gpt-audio`, `gpt-4o-audio-preview` and their like, without the word for audio, which stands anywhere. */
function audioName(joined: string, takesBareVersions: boolean): string | undefined {
  if (joined === 'gpt') return 'gpt-audio';
  const version = AUDIO_MODEL.exec(joined)?.[1];
  if (version === undefined || (!joined.startsWith('gpt') && !takesBareVersions)) return undefined;
  return version.startsWith('4o') ? `gpt-${version}-audio-preview` : `gpt-audio-${version}`;
}

const VERSION = /^\d(?:\.\d)?o?$/;

/** `5.4 mini`, `35 turbo 16k`, `54 mini`: the version, then words that are known. */
function versioned(words: readonly string[], isKnown: (version: string) => boolean): string | undefined {
  const [first = '', ...variants] = words;
  const version = /^[3-9][1-9]$/.test(first) ? `${first[0]}.${first[1]}` : first;
  if (!VERSION.test(version) || !isKnown(version)) return undefined;
  return variants.every((word) => VARIANTS.has(word)) ? ['gpt', version, ...variants].join('-') : undefined;
}
