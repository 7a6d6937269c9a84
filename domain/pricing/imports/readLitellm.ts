import type { PageObject, PageValue } from '../../billing/exactNumber.js';
import type { Provider } from '../../providers.js';
import type { PriceMode, RateClass } from '../prices.js';
import {
  isOpenAiModel,
  type ListedCollection,
  type ListedModel,
  ratesFrom,
  readObject,
  readRate,
  readTokens,
  tierFrom,
} from './collection.js';

/** Keys that hold no model. */
const NO_MODELS = new Set(['sample_spec', 'fallback_generalizations']);
/** Dollars per token → pico-dollars per million. */
const PER_TOKEN_DIGITS = 18;

const PROVIDERS_OF: Readonly<Record<string, Provider>> = {
  openai: 'openai',
  'text-completion-openai': 'openai',
  anthropic: 'anthropic',
  azure: 'azure_openai',
  bedrock: 'aws_bedrock',
  bedrock_converse: 'aws_bedrock',
  gemini: 'google',
  'vertex_ai-language-models': 'google',
  'vertex_ai-anthropic_models': 'google',
  'vertex_ai-embedding-models': 'google',
  mistral: 'mistral',
  cohere: 'cohere',
  cohere_chat: 'cohere',
  xai: 'xai',
};

const MODES: Readonly<Record<string, PriceMode>> = {
  chat: 'chat',
  completion: 'chat',
  responses: 'chat',
  embedding: 'embedding',
};

/** A price field: what it counts, for how long a request, in which tier. */
const FIELD =
  /^(input_cost_per_token|output_cost_per_token|cache_read_input_token_cost|cache_creation_input_token_cost|cache_creation_input_token_cost_above_1hr|input_cost_per_audio_token|output_cost_per_audio_token|cache_read_input_audio_token_cost)(?:_above_(\d+)k_tokens)?(?:_(batches|flex|priority))?$/;
const CLASSES: Readonly<Record<string, RateClass>> = {
  input_cost_per_token: 'input',
  output_cost_per_token: 'output',
  cache_read_input_token_cost: 'cache_read',
  cache_creation_input_token_cost: 'cache_write_5m',
  cache_creation_input_token_cost_above_1hr: 'cache_write_1h',
  input_cost_per_audio_token: 'input_audio',
  output_cost_per_audio_token: 'output_audio',
  cache_read_input_audio_token_cost: 'cache_read_audio',
};
const TIERS: Readonly<Record<string, string>> = { batches: 'batch', flex: 'flex', priority: 'priority' };
/** xAI's boundary is "200k or more". */
const EXCLUSIVE_BOUNDARY: ReadonlySet<Provider> = new Set(['xai']);

/**
 * LiteLLM's `model_prices_and_context_window.json`: an object by model id, dollars per token. Fields that are no token
 * price are passed over, since the file grows new ones. Throws RangeError with the place of the first fault.
 */
export function readLitellm(file: PageObject): ListedCollection {
  const models: ListedModel[] = [];
  let otherEntries = 0;
  for (const [key, value] of Object.entries(file)) {
    if (NO_MODELS.has(key)) continue;
    const model = readModel(key, readObject(value, `"${key}"`));
    if (model) models.push(model);
    else otherEntries += 1;
  }
  return { source: 'litellm', models: withoutVertexCopies(models), otherEntries };
}

function readModel(key: string, entry: PageObject): ListedModel | undefined {
  const provider = named(PROVIDERS_OF, entry.litellm_provider);
  const mode = named(MODES, entry.mode);
  if (!provider || !mode) return undefined;
  const place = placeOf(provider, key);
  if (!place || (provider === 'azure_openai' && !isOpenAiModel(place.model))) return undefined;
  const byTier = new Map<string, Partial<Record<RateClass, bigint | null>>>();
  for (const [field, value] of Object.entries(entry)) {
    const match = FIELD.exec(field);
    if (!match) continue;
    const [, name = '', thousands, tierWord] = match;
    const above =
      thousands === undefined ? 0 : Number(thousands) * 1_000 - Number(EXCLUSIVE_BOUNDARY.has(provider));
    const tier = `${tierWord === undefined ? '' : TIERS[tierWord]}|${above}`;
    const rates = byTier.get(tier) ?? {};
    rates[CLASSES[name] as RateClass] = readRate(value, PER_TOKEN_DIGITS, `"${key}".${field}`);
    byTier.set(tier, rates);
  }
  const rates = ratesFrom(byTier.get('|0') ?? {});
  // Zero for both is "no information", never free.
  if (rates.input === null || (rates.output === null && mode !== 'embedding')) return undefined;
  if (rates.input === 0n && (rates.output ?? 0n) === 0n) return undefined;
  const standard = { ...rates, output: rates.output ?? 0n };
  const tiers = [...byTier].flatMap(([tier, given]) => {
    if (tier === '|0') return [];
    const [serviceTier = '', above = '0'] = tier.split('|');
    return [
      tierFrom(
        {
          serviceTier: serviceTier === '' ? null : serviceTier,
          aboveInputTokens: above === '0' ? null : Number(above),
        },
        given,
        standard,
      ),
    ];
  });
  const contextWindow = readTokens(entry.max_input_tokens) ?? readTokens(entry.max_tokens);
  return { ...place, provider, key, rates: standard, tiers, mode, contextWindow };
}

/** What a table has under a word; words such as `constructor` are in none. */
function named<T>(table: Readonly<Record<string, T>>, word: PageValue | undefined): T | undefined {
  return typeof word === 'string' && Object.hasOwn(table, word) ? table[word] : undefined;
}

/** The provider's own id behind LiteLLM's prefixes, and the region in between. */
function placeOf(provider: Provider, key: string): { model: string; region: string | null } | undefined {
  const parts = key.split('/');
  const model = parts.at(-1) ?? '';
  // Image sizes and the like stand in front where the price is for something else.
  if (model === '' || /^\d|x-\d/.test(parts[0] ?? '')) return undefined;
  if (provider === 'openai' || provider === 'anthropic')
    return parts.length === 1 ? { model, region: null } : undefined;
  if (provider === 'azure_openai') {
    const [, ...middle] = parts.slice(0, -1);
    const region = middle.filter((part) => part !== 'global' && part !== 'global-standard').join('/');
    return { model, region: region === '' ? null : region };
  }
  if (provider === 'aws_bedrock')
    return { model, region: parts.length === 1 ? null : parts.slice(0, -1).join('/') };
  return parts.length <= 2 ? { model, region: null } : undefined;
}

/** Gemini models stand twice, for the Gemini API and for Vertex AI: the first is the list. */
function withoutVertexCopies(models: readonly ListedModel[]): ListedModel[] {
  const chosen = new Map<string, ListedModel>();
  for (const model of models) {
    const id = `${model.provider}\n${model.region ?? ''}\n${model.model}`;
    const before = chosen.get(id);
    if (!before || (model.key.startsWith('gemini/') && !before.key.startsWith('gemini/')))
      chosen.set(id, model);
  }
  return [...chosen.values()];
}
