/** A client under test: its program, its task, how it reaches Trueup, and what it reports. */
import type { CallApi } from '../../fakes/plannedCall.js';
import type { ClientFacts } from './clientFacts.js';
import type { PlanScope } from './drawPlan.js';

export interface ClientCase {
  name: string;
  program: string;
  scope: PlanScope;
  facts: ClientFacts;
  environment(baseUrl: string, ingestKey: string): Record<string, string>;
}

/** The exporters' standard settings; `path` is the user's endpoint, below the base URL. */
export function otlp(protocol: 'http/json' | 'http/protobuf', compression: 'gzip' | 'none', path = '') {
  return (baseUrl: string, ingestKey: string): Record<string, string> => ({
    OTEL_EXPORTER_OTLP_ENDPOINT: baseUrl + path,
    OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
    OTEL_EXPORTER_OTLP_COMPRESSION: compression,
    OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer ${ingestKey}`,
  });
}

/** Langfuse's own settings: the secret key is Trueup's ingest key, the public key may be anything. */
export function langfuse(baseUrl: string, ingestKey: string): Record<string, string> {
  return {
    LANGFUSE_BASE_URL: baseUrl,
    LANGFUSE_PUBLIC_KEY: 'pk-lf-any',
    LANGFUSE_SECRET_KEY: ingestKey,
  };
}

/** The same settings under the names of Langfuse's clients before version 4. */
export function langfuseLegacy(baseUrl: string, ingestKey: string): Record<string, string> {
  return {
    LANGFUSE_BASEURL: baseUrl,
    LANGFUSE_HOST: baseUrl,
    LANGFUSE_PUBLIC_KEY: 'pk-lf-any',
    LANGFUSE_SECRET_KEY: ingestKey,
  };
}

/** Disables the spans that the Anthropic client itself creates. */
export function alone(environment: ClientCase['environment']): ClientCase['environment'] {
  return (baseUrl, ingestKey) => ({
    ...environment(baseUrl, ingestKey),
    ANTHROPIC_OPEN_TELEMETRY: 'false',
  });
}

export function planScope(apis: readonly CallApi[], details: Partial<PlanScope> = {}): PlanScope {
  return { apis, hasStreams: true, hasStreamHelper: false, ...details };
}
