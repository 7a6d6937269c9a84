/** The eight providers with aliases seen in clients and hosts from their documentation (docs/ingest.md). */
export const PROVIDERS = [
  'openai',
  'anthropic',
  'google',
  'azure_openai',
  'aws_bedrock',
  'mistral',
  'cohere',
  'xai',
] as const;

export type Provider = (typeof PROVIDERS)[number];

/** Who issues the bill for a call: a provider, or `unknown` for a host that is none of the eight. */
export type Biller = Provider | 'unknown';

interface ProviderFacts {
  slug: Provider;
  displayName: string;
  /** What it calls the parts of an account that its bill names. */
  projectsName: string;
  aliases: readonly string[];
  /** Spend can be polled over HTTP, so the gap explorer takes it as a filter. */
  hasBillingFeed: boolean;
  /** Host suffixes or patterns whose owner bills the call. */
  hosts: readonly RegExp[];
}

export const PROVIDER_FACTS: readonly ProviderFacts[] = [
  {
    slug: 'openai',
    displayName: 'OpenAI',
    projectsName: 'Projects',
    aliases: [],
    hasBillingFeed: true,
    hosts: [/^(?:[a-z]{2}\.)?api\.openai\.com$/],
  },
  {
    slug: 'anthropic',
    displayName: 'Anthropic',
    projectsName: 'Workspaces',
    aliases: [],
    hasBillingFeed: true,
    hosts: [/^api\.anthropic\.com$/],
  },
  {
    slug: 'google',
    displayName: 'Google',
    projectsName: 'Projects',
    aliases: [
      'gcp.vertex_ai',
      'vertex_ai',
      'gcp.gemini',
      'gemini',
      'gcp.gen_ai',
      'google_genai',
      'google-vertex',
      'vertexai',
      'vertex',
      'google_vertexai',
    ],
    hasBillingFeed: false,
    hosts: [/^generativelanguage\.googleapis\.com$/, /^(?:[a-z0-9-]+-)?aiplatform\.googleapis\.com$/],
  },
  {
    slug: 'azure_openai',
    displayName: 'Azure OpenAI',
    projectsName: 'Resources',
    aliases: [
      'az.ai.openai',
      'azure.ai.openai',
      'az.ai.inference',
      'azure.ai.inference',
      'azure_ai',
      'azure',
      'azure-openai',
    ],
    hasBillingFeed: true,
    hosts: [/\.openai\.azure\.com$/, /\.cognitiveservices\.azure\.com$/],
  },
  {
    slug: 'aws_bedrock',
    displayName: 'AWS Bedrock',
    projectsName: 'Accounts',
    aliases: [
      'aws.bedrock',
      'bedrock',
      'bedrock_converse',
      'amazon',
      'amazon-bedrock',
      'amazon_bedrock',
      'aws',
    ],
    hasBillingFeed: true,
    hosts: [/^bedrock-runtime(?:-fips)?\.[a-z0-9-]+\.amazonaws\.com$/],
  },
  {
    slug: 'mistral',
    displayName: 'Mistral',
    projectsName: 'Workspaces',
    aliases: ['mistral_ai', 'mistralai'],
    hasBillingFeed: false,
    hosts: [/^api\.mistral\.ai$/],
  },
  {
    slug: 'cohere',
    displayName: 'Cohere',
    projectsName: 'Projects',
    aliases: ['cohere_chat'],
    hasBillingFeed: false,
    hosts: [/^api\.cohere\.com$/],
  },
  {
    slug: 'xai',
    displayName: 'xAI',
    projectsName: 'Projects',
    aliases: ['x_ai', 'grok'],
    hasBillingFeed: false,
    hosts: [/^api\.x\.ai$/],
  },
];

export const GAP_PROVIDERS = [
  'openai',
  'anthropic',
  'aws_bedrock',
  'azure_openai',
] as const satisfies readonly Provider[];
export type GapProvider = (typeof GAP_PROVIDERS)[number];

const BY_ALIAS = new Map<string, Provider>(
  PROVIDER_FACTS.flatMap((facts) =>
    [facts.slug, ...facts.aliases].map((name) => [name, facts.slug] as const),
  ),
);

/** The provider that a client's word means: compared whole, then by the part before its first dot. */
export function findProvider(word: string): Provider | undefined {
  const name = word.trim().toLowerCase();
  const whole = BY_ALIAS.get(name);
  if (whole) return whole;
  const dot = name.indexOf('.');
  return dot > 0 ? BY_ALIAS.get(name.slice(0, dot)) : undefined;
}

/** The provider whose host this is; undefined for a host that is none of the eight. Takes a bare host name. */
export function findProviderByHost(host: string): Provider | undefined {
  const name = host.trim().toLowerCase().replace(/\.$/, '');
  return PROVIDER_FACTS.find((facts) => facts.hosts.some((pattern) => pattern.test(name)))?.slug;
}

export function isProvider(value: string): value is Provider {
  return (PROVIDERS as readonly string[]).includes(value);
}
