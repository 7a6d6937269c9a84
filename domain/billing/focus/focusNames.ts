import type { Provider } from '../../providers.js';
import type { BilledClass } from '../billedRow.js';

/** How FOCUS names who sells a model, and the service that is sold. */
export interface FocusSeller {
  /** ProviderName until 1.2, ServiceProviderName from 1.3; it also issues the invoice. */
  provider: string;
  service: string;
}

export const FOCUS_SELLERS: Readonly<Record<Provider, FocusSeller>> = {
  openai: { provider: 'OpenAI', service: 'OpenAI API' },
  anthropic: { provider: 'Anthropic', service: 'Claude API' },
  google: { provider: 'Google Cloud', service: 'Gemini and Vertex AI' },
  azure_openai: { provider: 'Microsoft', service: 'Azure OpenAI' },
  aws_bedrock: { provider: 'AWS', service: 'Amazon Bedrock' },
  mistral: { provider: 'Mistral AI', service: 'Mistral API' },
  cohere: { provider: 'Cohere', service: 'Cohere API' },
  xai: { provider: 'xAI', service: 'xAI API' },
};

/** Makers as Amazon Bedrock writes them before the first dot of a model id. */
const BEDROCK_MAKERS: Readonly<Record<string, string>> = {
  ai21: 'AI21 Labs',
  amazon: 'AWS',
  anthropic: 'Anthropic',
  cohere: 'Cohere',
  deepseek: 'DeepSeek',
  meta: 'Meta',
  mistral: 'Mistral AI',
  openai: 'OpenAI',
  qwen: 'Alibaba Cloud',
  stability: 'Stability AI',
};

/** PublisherName: who makes the model, where its id says so; else whoever sells it. */
export function publisherOf(provider: Provider, model: string | null): string {
  if (provider === 'azure_openai') return FOCUS_SELLERS.openai.provider;
  const words = provider === 'aws_bedrock' ? (model ?? '').split('.') : [];
  const maker = words.map((word) => BEDROCK_MAKERS[word]).find((name) => name !== undefined);
  return maker ?? FOCUS_SELLERS[provider].provider;
}

/** SkuMeter of each class. Thirty minutes and five minutes are both the ordinary cache write. */
export const FOCUS_METERS: Readonly<Record<BilledClass, string>> = {
  input: 'Input Tokens',
  cache_read: 'Cache Read Tokens',
  cache_write_5m: 'Cache Write Tokens',
  cache_write_1h: 'Cache Write Tokens, 1 Hour',
  output: 'Output Tokens',
  input_audio: 'Audio Input Tokens',
  output_audio: 'Audio Output Tokens',
  requests: 'Requests',
  other: 'Other',
};
