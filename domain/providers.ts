/** The eight providers, with aliases seen in clients and hosts from their documentation (docs/ingest.md). */
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

/** The issuer of the bill for a call; `unknown`: the host belongs to none of the eight providers. */
export type Biller = Provider | 'unknown';

interface ProviderFacts {
  slug: Provider;
  displayName: string;
  /** The provider's word for the parts of an account that its bill names. */
  projectsName: string;
  aliases: readonly string[];
  /** The provider has an HTTP API for spend, so the gap explorer offers it as a filter. */
  hasBillingFeed: boolean;
  /** Hosts, by suffix or pattern, whose calls the provider bills. */
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
    aliases: ['x_ai', 'x-ai', 'grok'],
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

const BY_ALIAS = new Map<string, Provider>(
  PROVIDER_FACTS.flatMap((facts) =>
    [facts.slug, ...facts.aliases].map((name) => [name, facts.slug] as const),
  ),
);

/** The provider of a client's word. Compares the whole word, then its part before the first dot. */
export function findProvider(word: string): Provider | undefined {
  const name = word.trim().toLowerCase();
  const whole = BY_ALIAS.get(name);
  if (whole) return whole;
  const dot = name.indexOf('.');
  return dot > 0 ? BY_ALIAS.get(name.slice(0, dot)) : undefined;
}

/** The provider of a bare host name; undefined if the host belongs to none of the eight. */
export function findProviderByHost(host: string): Provider | undefined {
  const name = host.trim().toLowerCase().replace(/\.$/, '');
  return PROVIDER_FACTS.find((facts) => facts.hosts.some((pattern) => pattern.test(name)))?.slug;
}

export function isProvider(value: string): value is Provider {
  return (PROVIDERS as readonly string[]).includes(value);
}
