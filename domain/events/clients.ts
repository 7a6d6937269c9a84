/**
 * Clients as measured at the named versions: scope, whether their input includes cached tokens, and the classes
 * that they cannot send.
 */

import type { CountedScope } from '../installation/settings.js';
import type { Provider } from '../providers.js';
import type { CallRecord, InputSemantics } from './event.js';

/** A token class as `usage_missing` names it. */
export type MissingClass =
  | 'input'
  | 'output'
  | 'cache_read'
  | 'cache_write_5m'
  | 'cache_write_1h'
  | 'reasoning';

export interface Client {
  scope: string;
  /** The row applies below this version; absent: to all later ones. */
  below?: string;
  /** The convention, as `usage_source` shows it. */
  source: string;
  semantics: InputSemantics;
  /** Providers whose exclusive counts this inclusive client passes on unchanged. */
  exclusiveFor?: readonly Provider[];
  missing: readonly MissingClass[];
  /** The API of the instrumented library, from which the provider is inferred if nothing else names one. */
  api?: Provider;
}

/** Clients of OpenAI's API that send the whole input and output but none of their parts. */
const NO_CACHE_NO_REASONING = ['cache_read', 'cache_write_5m', 'reasoning'] as const;

/** Rows of one scope are ordered by `below`, ascending. */
export const CLIENTS: readonly Client[] = [
  {
    scope: 'com.anthropic.sdk.python',
    source: 'anthropic_sdk',
    semantics: 'inclusive',
    missing: [],
    api: 'anthropic',
  },
  // From 0.136 on, the TypeScript client sends the same spans as the Python client.
  {
    scope: 'com.anthropic.sdk.typescript',
    source: 'anthropic_sdk',
    semantics: 'inclusive',
    missing: [],
    api: 'anthropic',
  },
  // 4.2.7 omits OpenAI's cache writes.
  {
    scope: '@arizeai/openinference-instrumentation-openai',
    source: 'openinference',
    semantics: 'inclusive',
    missing: ['cache_write_5m'],
    api: 'openai',
  },
  // Up to 0.1.22 (published) it sends the raw input of the response and no cache fields; 0.2.8 sums them.
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
  // 0.27.0 sends the raw input beside both cache counts; later versions sum them.
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
  // 0.62.4 sends no cache writes, and no reasoning of chat streams.
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
  // It sums input and cache itself; in streams it reports one output token too many (0.62.4).
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
  // Older spans of the AI SDK: before version 6 they pass on the counts of Anthropic and Bedrock unchanged.
  {
    scope: 'ai',
    source: 'ai_sdk',
    semantics: 'inclusive',
    exclusiveFor: ['anthropic', 'aws_bedrock'],
    missing: [],
  },
  // Passed-on usage objects contain the reasoning; counts that the application sets do not.
  { scope: 'langfuse-sdk', source: 'langfuse', semantics: 'inclusive', missing: ['reasoning'] },
  { scope: 'pydantic-ai', source: 'pydantic_ai', semantics: 'inclusive', missing: [] },
  {
    scope: 'litellm',
    source: 'litellm',
    semantics: 'inclusive',
    missing: ['cache_read', 'cache_write_5m', 'cache_write_1h', 'reasoning'],
  },
];

/**
 * Trust in a convention by its closeness to the provider's counts. The more trusted report's output counts
 * (Traceloop adds a token).
 */
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

/** The row of a scope and version; no version means the newest. Undefined: the client was never measured. */
export function findClient(scope: string, version: string): Client | undefined {
  return BY_SCOPE.get(scope)?.find(
    ({ below }) => below === undefined || (version !== '' && isBelow(version, below)),
  );
}

/** Whether a dotted version is below another, number by number; a pre-release compares like its release. */
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

/** Reason for leaving out a call that another instrumentation reports too; counted beside the rejection reasons. */
export const SCOPE_NOT_COUNTED = 'scope_not_counted';

type ScopedCall = Pick<CallRecord, 'serviceName' | 'scopeName'>;

/** A service in the list counts only by its named scopes, others by all. The result depends on the call alone. */
export function countedBy(countedScopes: readonly CountedScope[]): (call: ScopedCall) => boolean {
  const scopesByService = new Map<string, Set<string>>();
  for (const { service, scope } of countedScopes) {
    const scopes = scopesByService.get(service ?? '');
    if (scopes) scopes.add(scope);
    else scopesByService.set(service ?? '', new Set([scope]));
  }
  return ({ serviceName, scopeName }) => scopesByService.get(serviceName)?.has(scopeName) ?? true;
}
