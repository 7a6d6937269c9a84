/** The counts that a span tells, by whichever client it is. */
import type { Provider } from '../providers.js';
import { mapOf } from './anyValue.js';
import { type Meaning, USAGE_MEANINGS } from './attributeTable.js';
import type { Client } from './clients.js';
import type { InputSemantics, Json } from './event.js';
import { readTokens } from './itemFault.js';
import type { Told } from './meteredUsage.js';
import type { SpanAttributes } from './spanAttributes.js';
import { stripJson } from './stripText.js';
import { isTold, type ToldUsage } from './usage.js';
import { type ReadUsage, readUsageObject } from './usageObjects.js';

const COUNTS = [
  ['inputTokens', 'input'],
  ['outputTokens', 'output'],
  ['cacheRead', 'cacheRead'],
  ['cacheWrite', 'cacheWrite'],
  ['cacheWrite5m', 'cacheWrite5m'],
  ['cacheWrite1h', 'cacheWrite1h'],
  ['reasoning', 'reasoning'],
  ['totalTokens', 'total'],
  ['inputAudio', 'inputAudio'],
  ['outputAudio', 'outputAudio'],
] as const satisfies readonly (readonly [Meaning, keyof ToldUsage])[];

/** Conventions by the first words of their attribute names. */
const CONVENTIONS = [
  ['gen_ai.usage.', 'otel'],
  ['llm.token_count.', 'openinference'],
  ['ai.usage.', 'ai_sdk'],
  ['llm.usage.', 'traceloop'],
] as const;

export interface SpanUsage extends Told {
  isBatch: boolean;
  serviceTier: string | undefined;
}

/**
 * Reads the usage of a span: its attributes by the table, else the JSON text that Langfuse writes.
 * @throws ItemFault invalid_number.
 */
export function usageOfSpan(
  attributes: SpanAttributes,
  client: Client | undefined,
  provider: Provider,
): SpanUsage {
  const told: ToldUsage = {};
  const raw: { [name: string]: unknown } = {};
  for (const [meaning, count] of COUNTS) {
    const value = attributes.get(meaning);
    if (value === undefined) continue;
    const name = attributes.nameOf(meaning);
    told[count] = readTokens(value, name);
    raw[name] = value;
  }
  const isInputOnly = isEmbedding(attributes);
  if (!isTold(told)) {
    const read = detailsOf(attributes);
    if (read) return { ...read, isInputOnly, cannotSend: client?.missing ?? [] };
  }
  if (attributes.has('providerMetadata')) addProviderMetadata(told, attributes);
  return {
    told,
    expected: semanticsOf(attributes, client, provider),
    source: client?.source ?? conventionOf(attributes),
    cannotSend: client?.missing ?? [],
    raw: hasUsage(attributes) ? raw : null,
    isInputOnly,
    isBatch: false,
    serviceTier: undefined,
  };
}

function hasUsage(attributes: SpanAttributes): boolean {
  return USAGE_MEANINGS.some((meaning) => attributes.has(meaning));
}

function detailsOf(attributes: SpanAttributes): Omit<SpanUsage, 'cannotSend' | 'isInputOnly'> | undefined {
  const details = mapOf(attributes.get('usageDetails'));
  if (details === undefined) return undefined;
  const raw = stripJson(details) as { [key: string]: Json };
  const read: ReadUsage | undefined = readUsageObject(raw, attributes.nameOf('usageDetails'));
  if (read === undefined) return undefined;
  return {
    told: read.told,
    expected: read.semantics,
    source: 'langfuse',
    raw,
    isBatch: read.isBatch,
    serviceTier: read.serviceTier,
  };
}

function semanticsOf(
  attributes: SpanAttributes,
  client: Client | undefined,
  provider: Provider,
): InputSemantics {
  if (client === undefined) return 'inclusive';
  const passesOn = client.exclusiveFor?.includes(provider) === true && !attributes.has('uncachedTokens');
  return passesOn ? 'exclusive' : client.semantics;
}

function conventionOf(attributes: SpanAttributes): string {
  const name = attributes.nameOf(attributes.has('inputTokens') ? 'inputTokens' : 'outputTokens');
  return CONVENTIONS.find(([prefix]) => name.startsWith(prefix))?.[1] ?? 'otel';
}

function isEmbedding(attributes: SpanAttributes): boolean {
  return (
    attributes.get('operation') === 'embeddings' ||
    attributes.label('spanKind')?.toUpperCase() === 'EMBEDDING' ||
    attributes.label('observationType')?.toLowerCase() === 'embedding' ||
    attributes.label('aiOperation')?.endsWith('.doEmbed') === true
  );
}

/** The AI SDK passes on Anthropic's own usage beside its counts: cache writes and their lifetimes are only there. */
function addProviderMetadata(told: ToldUsage, attributes: SpanAttributes): void {
  const anthropic = mapOf(mapOf(attributes.get('providerMetadata'))?.anthropic);
  const usage = mapOf(anthropic?.usage);
  const written =
    (usage && readUsageObject(usage, 'ai.response.providerMetadata.anthropic.usage')?.told) ?? {};
  const own = anthropic?.cacheCreationInputTokens ?? undefined;
  const ownWrite =
    own === undefined
      ? undefined
      : readTokens(own, 'ai.response.providerMetadata.anthropic.cacheCreationInputTokens');
  const write = written.cacheWrite ?? ownWrite;
  if (write !== undefined) told.cacheWrite ??= write;
  if (written.cacheWrite === undefined || written.cacheWrite !== told.cacheWrite) return;
  if (written.cacheWrite5m !== undefined) told.cacheWrite5m ??= written.cacheWrite5m;
  if (written.cacheWrite1h !== undefined) told.cacheWrite1h ??= written.cacheWrite1h;
}
