/**
 * Bedrock's spellings of models → ids of the price list, with the group's prefix (`us.`, `eu.`) if its price
 * differs.
 */

/** Ids by vendor, each with the groups that have another price than the model. */
const MODELS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  ai21: {
    'j2-mid-v1': '',
    'j2-ultra-v1': '',
    'jamba-1-5-large-v1:0': '',
    'jamba-1-5-mini-v1:0': '',
    'jamba-instruct-v1:0': '',
  },
  amazon: {
    'nova-2-lite-v1:0': 'apac eu global jp us',
    'nova-2-multimodal-embeddings-v1:0': '',
    'nova-2-pro-preview-20251202-v1:0': 'apac eu us',
    'nova-lite-v1:0': 'apac eu',
    'nova-micro-v1:0': 'apac eu',
    'nova-premier-v1:0': '',
    'nova-pro-v1:0': 'apac eu',
    'titan-embed-g1-text-02': '',
    'titan-embed-text-v1': '',
    'titan-embed-text-v2:0': '',
    'titan-text-express-v1': '',
    'titan-text-lite-v1': '',
    'titan-text-premier-v1:0': '',
  },
  anthropic: {
    'claude-3-5-haiku-20241022-v1:0': '',
    'claude-3-5-sonnet-20240620-v1:0': '',
    'claude-3-5-sonnet-20241022-v2:0': '',
    'claude-3-7-sonnet-20250219-v1:0': '',
    'claude-3-haiku-20240307-v1:0': '',
    'claude-3-opus-20240229-v1:0': '',
    'claude-3-sonnet-20240229-v1:0': '',
    'claude-fable-5': 'apac au eu global us',
    'claude-fable-5-1': 'eu global us us-gov',
    'claude-fable-5-2': 'global',
    'claude-haiku-4-5': '',
    'claude-haiku-4-5-20251001-v1:0': 'apac au eu global jp us',
    'claude-haiku-5-5': 'apac au eu global jp us us-gov',
    'claude-instant-v1': '',
    'claude-mythos-5': 'us',
    'claude-mythos-5-1': 'us',
    'claude-mythos-5-2': 'global',
    'claude-mythos-preview': '',
    'claude-opus-4-1-20250805-v1:0': '',
    'claude-opus-4-20250514-v1:0': '',
    'claude-opus-4-5-20251101-v1:0': 'eu global us',
    'claude-opus-4-6-v1': 'au eu global us',
    'claude-opus-4-7': 'apac au eu global jp us',
    'claude-opus-4-8': 'apac au eu global jp us us-gov',
    'claude-opus-5': 'apac au eu global in jp us us-gov',
    'claude-opus-5-5': 'apac au eu global jp us us-gov',
    'claude-sonnet-4-20250514-v1:0': '',
    'claude-sonnet-4-5-20250929-v1:0': 'au eu global jp us us-gov',
    'claude-sonnet-4-6': 'apac au eu global jp us',
    'claude-sonnet-5': 'apac au eu global in jp us us-gov',
    'claude-sonnet-5-5': 'apac au eu global jp us us-gov',
    'claude-v1': '',
    'claude-v2:1': '',
  },
  cohere: {
    'command-light-text-v14': '',
    'command-text-v14': '',
    'embed-english-v3': '',
    'embed-multilingual-v3': '',
    'embed-v4:0': '',
  },
  deepseek: {
    'r1-v1:0': '',
    'v3-v1:0': '',
    'v3.1': '',
    'v3.2': 'eu',
  },
  google: {
    'gemma-3-12b-it': '',
    'gemma-3-27b-it': '',
    'gemma-3-4b-it': '',
    'gemma-4-26b-a4b': '',
    'gemma-4-31b': '',
    'gemma-4-e2b': '',
  },
  meta: {
    'llama2-13b-chat-v1': '',
    'llama2-70b-chat-v1': '',
    'llama3-1-405b-instruct-v1:0': '',
    'llama3-1-70b-instruct-v1:0': '',
    'llama3-1-8b-instruct-v1:0': '',
    'llama3-2-11b-instruct-v1:0': '',
    'llama3-2-1b-instruct-v1:0': 'eu',
    'llama3-2-3b-instruct-v1:0': 'eu',
    'llama3-2-90b-instruct-v1:0': '',
    'llama3-3-70b-instruct-v1:0': '',
    'llama3-70b-instruct-v1:0': '',
    'llama3-8b-instruct-v1:0': '',
    'llama4-maverick-17b-instruct-v1:0': '',
    'llama4-scout-17b-instruct-v1:0': '',
  },
  minimax: {
    'minimax-m2': '',
    'minimax-m2.1': '',
    'minimax-m2.5': '',
  },
  mistral: {
    'devstral-2-123b': '',
    'magistral-small-2509': '',
    'ministral-3-14b-instruct': '',
    'ministral-3-3b-instruct': '',
    'ministral-3-8b-instruct': '',
    'mistral-7b-instruct-v0:2': '',
    'mistral-large-2402-v1:0': '',
    'mistral-large-2407-v1:0': '',
    'mistral-large-3-675b-instruct': '',
    'mistral-small-2402-v1:0': '',
    'mixtral-8x7b-instruct-v0:1': '',
    'pixtral-large-2502-v1:0': '',
    'voxtral-mini-3b-2507': '',
    'voxtral-small-24b-2507': '',
  },
  moonshot: {
    'kimi-k2-thinking': '',
  },
  moonshotai: {
    'kimi-k2-thinking': '',
    'kimi-k2.5': '',
    'kimi-k3': 'global',
    'kimi-k3.1': 'global',
  },
  nvidia: {
    'nemotron-nano-12b-v2': 'us-gov',
    'nemotron-nano-3-30b': 'us-gov',
    'nemotron-nano-9b-v2': 'us-gov',
    'nemotron-super-3-120b': 'us-gov',
  },
  openai: {
    'gpt-5.4': 'global',
    'gpt-5.5': 'global',
    'gpt-5.6-cyber': '',
    'gpt-5.6-luna': 'global',
    'gpt-5.6-sol': 'global',
    'gpt-5.6-terra': 'global',
    'gpt-6-astra': 'global',
    'gpt-6-luna': 'global us',
    'gpt-6-sol': 'global us',
    'gpt-6.1-sol': 'global',
    'gpt-6.1-terra': 'global',
    'gpt-daybreak-blue-5.6-sol': '',
    'gpt-oss-120b': '',
    'gpt-oss-120b-1:0': 'us-gov',
    'gpt-oss-20b': '',
    'gpt-oss-20b-1:0': 'us-gov',
    'gpt-oss-safeguard-120b': '',
    'gpt-oss-safeguard-20b': '',
  },
  qwen: {
    'qwen3-235b-a22b-2507': '',
    'qwen3-235b-a22b-2507-v1:0': '',
    'qwen3-32b': '',
    'qwen3-32b-v1:0': '',
    'qwen3-coder-30b-a3b-instruct': '',
    'qwen3-coder-30b-a3b-v1:0': '',
    'qwen3-coder-480b-a35b-instruct': '',
    'qwen3-coder-480b-a35b-v1:0': '',
    'qwen3-coder-next': '',
    'qwen3-next-80b-a3b': '',
    'qwen3-next-80b-a3b-instruct': '',
    'qwen3-vl-235b-a22b': '',
    'qwen3-vl-235b-a22b-instruct': '',
  },
  writer: {
    'palmyra-vision-7b': '',
    'palmyra-x4-v1:0': '',
    'palmyra-x5-v1:0': '',
  },
  xai: {
    'grok-4.3': '',
    'grok-4.6': 'global us-gov',
    'grok-4.7': 'global us',
  },
  zai: {
    'glm-4.7': '',
    'glm-4.7-flash': '',
    'glm-5': '',
    'glm-5.3': 'global us',
  },
};

/** Words that only some spellings of a name contain and that distinguish no models. */
const EMPTY_WORDS: ReadonlySet<string> = new Set(['instruct', 'chat', 'it', 'preview', 'v']);

/** Region codes of AWS bills, and the groups that serve the region, the closest first. */
const GROUPS: readonly [RegExp, readonly string[]][] = [
  [/^UG/, ['us-gov']],
  [/^US/, ['us']],
  [/^EU/, ['eu']],
  // Tokyo and Osaka; Sydney and Melbourne; Mumbai and Hyderabad.
  [/^APNE?[13]$/, ['jp', 'apac']],
  [/^APSE?[26]$/, ['au', 'apac']],
  [/^APS[35]$/, ['in', 'apac']],
  [/^AP/, ['apac']],
];

interface Model {
  id: string;
  groups: ReadonlySet<string>;
}

const BY_ID = new Map<string, Model>();
const BY_NAME = new Map<string, Model>();

for (const [vendor, models] of Object.entries(MODELS)) {
  for (const [name, groups] of Object.entries(models)) {
    const id = `${vendor}.${name}`;
    BY_ID.set(id, { id, groups: new Set(groups === '' ? [] : groups.split(' ')) });
  }
}
// Of two ids with one name, calls and bills use the dated or versioned one.
for (const model of [...BY_ID.values()].sort((a, b) => rankOf(b.id) - rankOf(a.id))) {
  const dot = model.id.indexOf('.');
  const name = withoutVersion(model.id.slice(dot + 1));
  // `DeepSeekR1`, `MetaLlama3`: some names begin with the maker.
  for (const key of [nameKey(name), nameKey(`${model.id.slice(0, dot)} ${name}`)])
    if (!BY_NAME.has(key)) BY_NAME.set(key, model);
}

function rankOf(id: string): number {
  return (/-v\d+:\d+$/.test(id) ? 1_000 : 0) + id.length;
}

/** Bills omit the number of a model's first version and the date of a snapshot. */
function withoutVersion(name: string): string {
  const dateless = name.replace(/-20\d{6}(?=-|$)/, '');
  const short = dateless.replace(/:0$/, '').replace(/-v1$/, '');
  return /\d/.test(short) || short.includes('-') ? short : dateless;
}

/** Equal for every spelling of a name: letters in order, then numbers in order. */
function nameKey(name: string): string {
  const parts = name.match(/[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+/g) ?? [];
  const words = parts.filter((part) => !/\d/.test(part)).map((word) => word.toLowerCase());
  const numbers = parts.filter((part) => /\d/.test(part)).map((digits) => digits.replace(/^0+(?=\d)/, ''));
  // `2.0` is `2`.
  const significant = numbers.filter((digits, at) => at === 0 || digits !== '0');
  return `${words.filter((word) => !EMPTY_WORDS.has(word)).join('')}#${significant.join('.')}`;
}

/** The id of a billed name in a region (`USE1`; '': unknown) or globally; null: the name is unknown. */
export function bedrockModelOf(name: string, regionCode: string, isGlobal: boolean): string | null {
  const model = BY_ID.get(name) ?? BY_NAME.get(nameKey(name)) ?? BY_NAME.get(nameKey(withoutVendor(name)));
  if (!model) return null;
  const candidates = isGlobal ? ['global'] : (GROUPS.find(([codes]) => codes.test(regionCode))?.[1] ?? []);
  const group = candidates.find((candidate) => model.groups.has(candidate));
  return group === undefined ? model.id : `${group}.${model.id}`;
}

function withoutVendor(name: string): string {
  const dot = name.indexOf('.');
  return dot > 0 && name.slice(0, dot) in MODELS ? name.slice(dot + 1) : name;
}

/** Every id of the table with each of its groups, to compare with the price list. */
export function bedrockModelIds(): string[] {
  return [...BY_ID.values()].flatMap(({ id, groups }) => [
    id,
    ...[...groups].map((group) => `${group}.${id}`),
  ]);
}
