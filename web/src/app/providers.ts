/** Providers whose bills and invoices the service reads, with their names. */
const NAMES = {
  openai: 'OpenAI',
  anthropic: 'Anthropic',
  google: 'Google',
  azure_openai: 'Azure OpenAI',
  aws_bedrock: 'AWS Bedrock',
  mistral: 'Mistral',
  cohere: 'Cohere',
  xai: 'xAI',
} as const;

export type Provider = keyof typeof NAMES;

export const PROVIDER_OPTIONS = Object.entries(NAMES).map(([value, label]) => ({
  value: value as Provider,
  label,
}));

/** The provider's name; an unknown one keeps its word. */
export const providerName = (slug: string): string => (NAMES as Record<string, string>)[slug] ?? slug;
