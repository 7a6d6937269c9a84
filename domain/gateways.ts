/**
 * Gateways that sell the models of several makers under their own bill. Their calls are priced by the maker's list
 * and are never compared with the maker's bill (docs/ingest.md).
 */
import { findProvider, type Provider } from './providers.js';

interface GatewayFacts {
  displayName: string;
  /** Words by which clients name it as the provider. */
  words: readonly string[];
  hosts: readonly RegExp[];
}

export const GATEWAYS: readonly GatewayFacts[] = [
  { displayName: 'OpenRouter', words: ['openrouter'], hosts: [/^(?:[a-z]{2}\.)?openrouter\.ai$/] },
  {
    displayName: 'Vercel AI Gateway',
    words: ['gateway', 'vercel_ai_gateway', 'vercel-ai-gateway'],
    hosts: [/^ai-gateway\.vercel\.sh$/],
  },
];

const WORDS = new Set(GATEWAYS.flatMap(({ words }) => words));

/** Whether a client's word names a gateway. Compares the whole word, then its part before the first dot. */
export function isGatewayWord(word: string): boolean {
  const name = word.trim().toLowerCase();
  return WORDS.has(name) || WORDS.has(name.split('.', 1)[0] as string);
}

/** Whether a bare host name is a gateway's. */
export function isGatewayHost(host: string): boolean {
  const name = host.trim().toLowerCase().replace(/\.$/, '');
  return GATEWAYS.some(({ hosts }) => hosts.some((pattern) => pattern.test(name)));
}

/** The maker in a gateway's model id, e.g. of `anthropic/claude-sonnet-4.5`; undefined: it is none of the eight. */
export function makerOfModel(model: string): Provider | undefined {
  const parts = model.trim().toLowerCase().split('/');
  const maker = parts.slice(0, -1).find((part) => !isGatewayWord(part));
  return maker === undefined ? undefined : findProvider(maker);
}
