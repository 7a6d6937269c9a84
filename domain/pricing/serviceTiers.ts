import type { Provider } from '../providers.js';

/**
 * What clients and providers call a service tier, in one vocabulary: the tier names of the price data, `standard`,
 * and `committed` for capacity that is paid for by the hour or the month and not by these tokens.
 */
const TIER_WORDS: Readonly<Record<string, string>> = {
  // the ordinary service, and requests that leave the choice to the provider
  default: 'standard',
  auto: 'standard',
  standard: 'standard',
  standard_only: 'standard',
  on_demand: 'standard',
  unspecified: 'standard',
  // Vertex AI's traffic types
  on_demand_flex: 'flex',
  on_demand_priority: 'priority',
  // capacity bought ahead: OpenAI scale tier, Azure and Vertex AI provisioned throughput, Bedrock reserved
  scale: 'committed',
  reserved: 'committed',
  provisioned: 'committed',
  provisioned_throughput: 'committed',
  ptu: 'committed',
};

/** Providers whose `fast` is the service that the price data lists as `priority`. */
const FAST_IS_PRIORITY: ReadonlySet<Provider> = new Set(['openai', 'azure_openai']);

export const STANDARD_TIER = 'standard';
export const BATCH_TIER = 'batch';

/**
 * A client's word for a service tier → the price data's word. Case, blanks, `-` and `_` do not matter; a word that is
 * not known comes back as it is and then has no price of its own.
 */
export function normaliseServiceTier(provider: Provider, word: string | null | undefined): string {
  if (word === null || word === undefined) return STANDARD_TIER;
  const direct = KNOWN_SPELLINGS.get(word);
  const name = direct ?? spellTier(word);
  return name === 'fast' && FAST_IS_PRIORITY.has(provider) ? 'priority' : name;
}

/** Whether a client's word is for the ordinary service, as every provider's is. */
export function isStandardTier(word: string): boolean {
  return (KNOWN_SPELLINGS.get(word) ?? spellTier(word)) === STANDARD_TIER;
}

function spellTier(word: string): string {
  const name = word
    .trim()
    .toLowerCase()
    .replace(/^service_tier_/, '')
    .replace(/[\s-]+/g, '_');
  if (name === '') return STANDARD_TIER;
  return TIER_WORDS[name] ?? name;
}

/** The spellings that nearly every call uses, so that pricing one builds no new text. */
const KNOWN_SPELLINGS: ReadonlyMap<string, string> = new Map([
  ...Object.entries(TIER_WORDS),
  ...['batch', 'flex', 'priority', 'fast', 'ultrafast', 'decisions'].map((name) => [name, name] as const),
]);
