/**
 * Resolves the provider and the biller of a call. The host decides before any word does, since half of the
 * endpoints that call themselves OpenAI belong to other billers (docs/ingest.md).
 */
import { isGatewayHost, isGatewayWord, makerOfModel } from '../gateways.js';
import { type Biller, findProvider, findProviderByHost, type Provider } from '../providers.js';
import { remember } from '../remember.js';
import type { CallRecord } from './event.js';

/** Framework names that clients send as the provider; they do not identify the called provider. */
const FRAMEWORKS = new Set([
  'langchain',
  'llamaindex',
  'llama_index',
  'litellm',
  'vercel',
  'unknown',
  'other',
  '_other',
]);

export interface BillerHints {
  /** The client's words for the provider, by priority. */
  words: readonly string[];
  /** Hosts, addresses or base URLs of the call, by priority. */
  hosts: readonly string[];
  /** Models from which a provider is inferred if no word or host names one. */
  models: readonly string[];
  /** The API that the instrumented library speaks. */
  api?: Provider | undefined;
}

export interface BilledCall {
  provider: Provider;
  billedBy: Biller;
  billerFromHost: boolean;
}

/** What a client's word for the provider means. */
const meaningOf = remember((word) => ({
  provider: findProvider(word),
  isFramework: FRAMEWORKS.has(word.trim().toLowerCase()),
  isGateway: isGatewayWord(word),
}));

/** Whose the host of an address is; null: the address has none. */
const ownerOf = remember((address) => {
  const host = hostOf(address);
  return host === undefined ? null : { provider: findProviderByHost(host), isGateway: isGatewayHost(host) };
});

/**
 * Undefined: `unknown_provider`. A foreign host, a gateway, or a foreign word before a known one gives the biller
 * `unknown`. At a gateway the maker in the model's id is the provider.
 */
export function resolveBiller(
  hints: BillerHints,
  inferProvider: (model: string) => Provider | undefined,
): BilledCall | undefined {
  const hosts = hints.hosts.flatMap((address) => ownerOf(address) ?? []);
  const said = hints.words.map(meaningOf);
  const fromHost = firstOf(hosts, ({ provider }) => provider);
  const atGateway = fromHost === undefined && [...hosts, ...said].some(({ isGateway }) => isGateway);
  const words = said.filter(({ isFramework, isGateway }) => !isFramework && !isGateway);
  const named = firstOf(words, ({ provider }) => provider);
  const isForeign = words.length > 0 && words[0]?.provider === undefined;
  const inferred = words.length === 0 && fromHost === undefined;
  const provider =
    (atGateway ? firstOf(hints.models, makerOfModel) : undefined) ??
    named ??
    fromHost ??
    (inferred ? firstOf(hints.models, inferProvider) : undefined) ??
    hints.api;
  if (provider === undefined) return undefined;
  if (hosts.length > 0) return { provider, billedBy: fromHost ?? 'unknown', billerFromHost: true };
  return { provider, billedBy: isForeign || atGateway ? 'unknown' : provider, billerFromHost: false };
}

function firstOf<I, T>(items: readonly I[], find: (item: I) => T | undefined): T | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The host name in a host, an address with a port, or a URL; undefined if there is none. */
export function hostOf(address: string): string | undefined {
  const afterScheme = address.trim().replace(/^[a-z][a-z0-9+.-]*:\/\//i, '');
  const authority = afterScheme.split(/[/?#]/, 1)[0] ?? '';
  const host = authority.slice(authority.lastIndexOf('@') + 1);
  const bare = host.startsWith('[') ? host.slice(1).split(']', 1)[0] : host.replace(/:\d+$/, '');
  return bare === '' || bare === undefined ? undefined : bare.toLowerCase();
}

/** The namespace of a response id, so that reports with a gateway's host and reports without a host share one id. */
export function identityBiller(call: Pick<CallRecord, 'provider' | 'billedBy' | 'billerFromHost'>): Biller {
  return call.billerFromHost && call.billedBy !== 'unknown' ? call.billedBy : call.provider;
}

/** A model id without vendor prefix, region, date and revision; used only to compare spans, never for prices. */
const VENDOR_PREFIX =
  /^(?:(?:us-gov|us|eu|apac|jp|au|ca|global)\.)?(?:anthropic|amazon|openai|google|meta|mistral|cohere|deepseek|xai|ai21|qwen|zai|moonshotai)[./]/;
const DATE_SUFFIX = /[-@:](?:20\d{2}-?\d{2}-?\d{2}|\d{2}-20\d{2}|\d{2}-\d{2}|\d{4})$/;
const REVISION_SUFFIX = /(?:-v\d+(?::\d+)?|:\d+[a-z]*|-latest|-preview|-exp|-experimental|-\d{3})$/;
const DATED = /20\d{2}-?\d{2}-?\d{2}|[-@]\d{4}$/;

/** e.g. `us.anthropic.claude-sonnet-4-5-20250929-v1:0` and `claude-sonnet-4-5` → `claude-sonnet-4-5`. */
export const modelFamily = remember((model) => {
  const slash = model.lastIndexOf('/');
  let name = (slash >= 0 ? model.slice(slash + 1) : model).toLowerCase().replace(VENDOR_PREFIX, '');
  for (let before = ''; before !== name; ) {
    before = name;
    const shorter = name.replace(REVISION_SUFFIX, '').replace(DATE_SUFFIX, '');
    if (shorter !== '') name = shorter;
  }
  // Azure writes gpt-35 for OpenAI's gpt-3.5; Google's and Bedrock's Claude ids use dots and dashes
  // interchangeably.
  return name.replace(/^gpt-35/, 'gpt-3.5').replaceAll('.', '-');
});

/** Whether the id names a dated release rather than a family or an alias. */
export function isDatedModel(model: string): boolean {
  return DATED.test(model);
}
