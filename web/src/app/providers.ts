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

const PROVIDER_IN_NAME: [RegExp, Provider][] = [
  [/azure/i, 'azure_openai'],
  [/openai/i, 'openai'],
  [/anthropic|claude/i, 'anthropic'],
  [/google|gcp|vertex|gemini/i, 'google'],
  [/aws|amazon|bedrock/i, 'aws_bedrock'],
  [/mistral/i, 'mistral'],
  [/cohere/i, 'cohere'],
  [/x\.?ai|grok/i, 'xai'],
];

/** The provider that a file name suggests; OpenAI where it suggests none. */
export const guessProvider = (filename: string): Provider =>
  PROVIDER_IN_NAME.find(([pattern]) => pattern.test(filename))?.[1] ?? 'openai';
