import { ExactNumber, type PageObject, type PageValue } from '../../billing/exactNumber.js';
import type { Provider } from '../../providers.js';
import type { PriceTier, RateClass, Rates } from '../prices.js';
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

/** Dollars per million tokens → pico-dollars per million. */
const PER_MTOK_DIGITS = 12;
/** The length that `context_over_200k` speaks of. */
const OVER_200K = 200_000;

/** In the order in which they are asked for a model that stands under several. */
const PROVIDERS_OF: readonly (readonly [string, Provider])[] = [
  ['openai', 'openai'],
  ['anthropic', 'anthropic'],
  ['google', 'google'],
  ['google-vertex', 'google'],
  ['google-vertex-anthropic', 'google'],
  ['azure', 'azure_openai'],
  ['amazon-bedrock', 'aws_bedrock'],
  ['mistral', 'mistral'],
  ['cohere', 'cohere'],
  ['xai', 'xai'],
];

const CLASSES: readonly (readonly [string, RateClass])[] = [
  ['input', 'input'],
  ['output', 'output'],
  ['cache_read', 'cache_read'],
  ['cache_write', 'cache_write_5m'],
  ['input_audio', 'input_audio'],
  ['output_audio', 'output_audio'],
];

/**
 * models.dev's `api.json`: providers with their models, dollars per million tokens. Throws RangeError with the place of
 * the first fault.
 */
export function readModelsDev(file: PageObject): ListedCollection {
  const models = new Map<string, ListedModel>();
  const known = new Set(PROVIDERS_OF.map(([name]) => name));
  let otherEntries = 0;
  for (const [name, value] of Object.entries(file)) {
    if (!known.has(name))
      otherEntries += Object.keys(readObject(readObject(value, name).models, `${name}.models`)).length;
  }
  for (const [name, provider] of PROVIDERS_OF) {
    if (file[name] === undefined) continue;
    const listed = readObject(readObject(file[name], name).models, `${name}.models`);
    for (const [id, value] of Object.entries(listed)) {
      const model = readModel(provider, `${name}/${id}`, id, readObject(value, `${name}.models.${id}`));
      if (!model) otherEntries += 1;
      else if (!models.has(`${provider}\n${id}`)) models.set(`${provider}\n${id}`, model);
    }
  }
  return { source: 'models_dev', models: [...models.values()], otherEntries };
}

function readModel(
  provider: Provider,
  key: string,
  model: string,
  entry: PageObject,
): ListedModel | undefined {
  if (entry.cost === undefined || entry.cost === null) return undefined;
  if (provider === 'azure_openai' && !isOpenAiModel(model)) return undefined;
  const cost = readObject(entry.cost, `${key}.cost`);
  const rates = ratesFrom(readRates(cost, `${key}.cost`));
  if (rates.input === null || rates.output === null) return undefined;
  // Zero for both is "no information", never free.
  if (rates.input === 0n && rates.output === 0n) return undefined;
  const limit = entry.limit === undefined ? {} : readObject(entry.limit, `${key}.limit`);
  return {
    provider,
    model,
    key,
    region: null,
    rates,
    tiers: readTiers(cost, key, rates),
    mode: rates.output === 0n && /embed/.test(model) ? 'embedding' : 'chat',
    contextWindow: readTokens(limit.context),
  };
}

function readRates(cost: PageObject, place: string): Partial<Record<RateClass, bigint | null>> {
  return Object.fromEntries(
    CLASSES.map(([field, name]) => [name, readRate(cost[field], PER_MTOK_DIGITS, `${place}.${field}`)]),
  );
}

function readTiers(cost: PageObject, key: string, standard: Rates): PriceTier[] {
  const tiers = new Map<number, PriceTier>();
  const add = (above: number, given: PageValue, place: string): void => {
    const rates = readRates(readObject(given, place), place);
    tiers.set(above, tierFrom({ serviceTier: null, aboveInputTokens: above }, rates, standard));
  };
  if (cost.context_over_200k !== undefined)
    add(OVER_200K, cost.context_over_200k, `${key}.cost.context_over_200k`);
  const listed = Array.isArray(cost.tiers) ? cost.tiers : [];
  listed.forEach((item, index) => {
    const place = `${key}.cost.tiers.${index}`;
    const tier = readObject(readObject(item, place).tier, `${place}.tier`);
    const size = tier.size instanceof ExactNumber ? readTokens(tier.size) : null;
    if (tier.type === 'context' && size !== null) add(size, item, place);
  });
  return [...tiers.values()];
}
