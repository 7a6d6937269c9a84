/** Clients as measured at the named versions: scope, whether input includes cached tokens, classes they cannot send. */

import type { CountedScope } from '../installation/settings.js';
import type { Provider } from '../providers.js';
import type { CallRecord, InputSemantics } from './event.js';

/** A class as `usage_missing` names it. */
export type MissingClass =
  | 'input'
  | 'output'
  | 'cache_read'
  | 'cache_write_5m'
  | 'cache_write_1h'
  | 'reasoning';

export interface Client {
  scope: string;
  /** The rule holds below this version; absent: for all later ones. */
  below?: string;
  /** Convention, as `usage_source` shows it. */
  source: string;
  semantics: InputSemantics;
  /** Providers whose counts this client passes on as they are although its convention is inclusive. */
  exclusiveFor?: readonly Provider[];
  missing: readonly MissingClass[];
  /** The API that the instrumented library speaks: the last word on the provider when no other names one of ours. */
  api?: Provider;
}

/** Clients of OpenAI's API that tell its whole input and output and nothing of what is inside. */
const NO_CACHE_NO_REASONING = ['cache_read', 'cache_write_5m', 'reasoning'] as const;

/** Rows of one scope stand in rising order of `below`. */
export const CLIENTS: readonly Client[] = [
  {
    scope: 'com.anthropic.sdk.python',
    source: 'anthropic_sdk',
    semantics: 'inclusive',
    missing: [],
    api: 'anthropic',
  },
  // The TypeScript client traces itself as the Python one does, from 0.136 on.
  {
    scope: 'com.anthropic.sdk.typescript',
    source: 'anthropic_sdk',
    semantics: 'inclusive',
    missing: [],
    api: 'anthropic',
  },
  // 4.2.7 leaves out what OpenAI wrote to its cache.
  {
    scope: '@arizeai/openinference-instrumentation-openai',
    source: 'openinference',
    semantics: 'inclusive',
    missing: ['cache_write_5m'],
    api: 'openai',
  },
  // Up to 0.1.22 (published) the raw input of the response and no cache fields; 0.2.8 sums them.
  {
    scope: '@arizeai/openinference-instrumentation-anthropic',
    below: '0.2.0',
    source: 'openinference',
    semantics: 'exclusive',
    missing: ['cache_read', 'cache_write_5m', 'cache_write_1h', 'reasoning'],
    api: 'anthropic',
  },
  {
    scope: '@arizeai/openinference-instrumentation-anthropic',
    source: 'openinference',
    semantics: 'inclusive',
    missing: ['reasoning'],
    api: 'anthropic',
  },
  {
    scope: 'openinference.instrumentation.openai',
    source: 'openinference',
    semantics: 'inclusive',
    missing: [],
    api: 'openai',
  },
  {
    scope: 'openinference.instrumentation.anthropic',
    source: 'openinference',
    semantics: 'inclusive',
    missing: [],
    api: 'anthropic',
  },
  {
    scope: '@traceloop/instrumentation-openai',
    source: 'traceloop',
    semantics: 'inclusive',
    missing: NO_CACHE_NO_REASONING,
    api: 'openai',
  },
  // 0.27.0 sends the raw input beside both cache counts; later sources sum them.
  {
    scope: '@traceloop/instrumentation-anthropic',
    below: '0.27.1',
    source: 'traceloop',
    semantics: 'exclusive',
    missing: ['reasoning'],
    api: 'anthropic',
  },
  {
    scope: '@traceloop/instrumentation-anthropic',
    source: 'traceloop',
    semantics: 'inclusive',
    missing: ['reasoning'],
    api: 'anthropic',
  },
  // 0.62.4 tells no cache writes, and no reasoning of chat streams.
  {
    scope: 'opentelemetry.instrumentation.openai.v1',
    source: 'traceloop',
    semantics: 'inclusive',
    missing: ['cache_write_5m', 'reasoning'],
    api: 'openai',
  },
  {
    scope: 'opentelemetry.instrumentation.openai.v0',
    source: 'traceloop',
    semantics: 'inclusive',
    missing: ['cache_write_5m', 'reasoning'],
    api: 'openai',
  },
  // Sums input and cache itself; in streams it reports one output token too many (0.62.4).
  {
    scope: 'opentelemetry.instrumentation.anthropic',
    source: 'traceloop',
    semantics: 'inclusive',
    missing: ['reasoning'],
    api: 'anthropic',
  },
  {
    scope: '@opentelemetry/instrumentation-openai',
    source: 'otel',
    semantics: 'inclusive',
    missing: NO_CACHE_NO_REASONING,
    api: 'openai',
  },
  // @ai-sdk/otel 1: inclusive for every provider; reasoning only as a supplemental attribute.
  { scope: 'gen_ai', source: 'ai_sdk', semantics: 'inclusive', missing: ['reasoning'] },
  // The AI SDK's older spans: until its version 6 the counts of Anthropic and Bedrock as they came.
  {
    scope: 'ai',
    source: 'ai_sdk',
    semantics: 'inclusive',
    exclusiveFor: ['anthropic', 'aws_bedrock'],
    missing: [],
  },
  // Reasoning stands in the usage objects that it passes on, and not in counts that are written by hand.
  { scope: 'langfuse-sdk', source: 'langfuse', semantics: 'inclusive', missing: ['reasoning'] },
  { scope: 'pydantic-ai', source: 'pydantic_ai', semantics: 'inclusive', missing: [] },
  {
    scope: 'litellm',
    source: 'litellm',
    semantics: 'inclusive',
    missing: ['cache_read', 'cache_write_5m', 'cache_write_1h', 'reasoning'],
  },
];

/** How close a convention is to the provider's counts; the closer report's output counts (Traceloop adds a token). */
const TRUST: Readonly<Record<string, number>> = {
  anthropic_sdk: 9,
  anthropic: 8,
  openai: 8,
  google: 8,
  cohere: 8,
  provider: 8,
  event: 7,
  openinference: 6,
  otel: 5,
  ai_sdk: 5,
  pydantic_ai: 5,
  langfuse: 4,
  litellm: 4,
  traceloop: 3,
};
const UNKNOWN_TRUST = 4;

/** The trust in a usage by its `usage_source`. */
export function trustIn(usageSource: string): number {
  return TRUST[usageSource] ?? UNKNOWN_TRUST;
}

const BY_SCOPE = new Map<string, Client[]>();
for (const client of CLIENTS) BY_SCOPE.set(client.scope, [...(BY_SCOPE.get(client.scope) ?? []), client]);

/** The row of a scope at a version; undefined for a client that was never measured. No version means the newest. */
export function findClient(scope: string, version: string): Client | undefined {
  return BY_SCOPE.get(scope)?.find(
    ({ below }) => below === undefined || (version !== '' && isBelow(version, below)),
  );
}

/** Compares dotted versions number by number; a pre-release counts as its release. */
export function isBelow(version: string, bound: string): boolean {
  const left = numbersOf(version);
  const right = numbersOf(bound);
  for (let index = 0; index < 3; index += 1) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}

function numbersOf(version: string): number[] {
  return (version.replace(/^v/, '').split(/[-+]/)[0] ?? '')
    .split('.')
    .map((part) => Number.parseInt(part, 10) || 0);
}

/** Why a call is left out that another instrumentation is to tell: counted beside the reasons of rejections. */
export const SCOPE_NOT_COUNTED = 'scope_not_counted';

type ScopedCall = Pick<CallRecord, 'serviceName' | 'scopeName'>;

/** A service in the list counts by its named scopes only, others by all: it depends on the call alone. */
export function countedBy(countedScopes: readonly CountedScope[]): (call: ScopedCall) => boolean {
  const scopesByService = new Map<string, Set<string>>();
  for (const { service, scope } of countedScopes) {
    const scopes = scopesByService.get(service ?? '');
    if (scopes) scopes.add(scope);
    else scopesByService.set(service ?? '', new Set([scope]));
  }
  return ({ serviceName, scopeName }) => scopesByService.get(serviceName)?.has(scopeName) ?? true;
}
