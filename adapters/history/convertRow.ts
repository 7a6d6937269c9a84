import { findProvider, type Provider } from '../../domain/providers.js';
import type { HistoryRow } from './rows.js';

/** The products whose exports of calls are read. */
export const HISTORY_SOURCES = ['langfuse', 'litellm', 'helicone'] as const;
export type HistorySource = (typeof HISTORY_SOURCES)[number];

/** The result of a row: an item of `POST /api/v1/ingest/events`, or nothing. */
export type Converted =
  | { event: Record<string, unknown> }
  /** `isFault`: a person has to look at the row; else it is no call of a provider. */
  | { skipped: string; isFault: boolean };

/** The fields that a row does not contain. */
export interface RowContext {
  inferProvider(model: string): Provider | undefined;
  /** Of rows whose provider is neither named nor inferred. */
  defaultProvider: Provider | undefined;
}

/**
 * The call of a row. Ids, times, tokens and costs are the export's own; texts of prompts and answers are left out.
 */
export function convertRow(source: HistorySource, row: HistoryRow, context: RowContext): Converted {
  return CONVERTERS[source](new Fields(row.fields), context);
}

const CONVERTERS: Record<HistorySource, (fields: Fields, context: RowContext) => Converted> = {
  langfuse: convertLangfuse,
  litellm: convertLiteLlm,
  helicone: convertHelicone,
};

type JsonObject = Record<string, unknown>;

/** Reads a row's fields under any of their names. */
class Fields {
  readonly #fields: ReadonlyMap<string, unknown>;

  constructor(fields: ReadonlyMap<string, unknown>) {
    this.#fields = fields;
  }

  /** The first scalar as text. */
  text(...names: string[]): string | undefined {
    for (const name of names) {
      const value = this.#fields.get(name);
      if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
        return String(value);
    }
    return undefined;
  }

  object(...names: string[]): JsonObject {
    for (const name of names) {
      const value = objectOf(this.#fields.get(name));
      if (value) return value;
    }
    return {};
  }

  /** The value as it is, so that the service judges it. */
  value(...names: string[]): unknown {
    return names.map((name) => this.#fields.get(name)).find((value) => value !== undefined);
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** An object, or the object in a text of JSON, which some exports have in its place. */
function objectOf(value: unknown): JsonObject | undefined {
  if (isObject(value)) return value;
  if (typeof value !== 'string' || !value.startsWith('{')) return undefined;
  try {
    return JSON.parse(value) as JsonObject;
  } catch {
    return undefined;
  }
}

function textIn(objects: readonly JsonObject[], ...names: string[]): string | undefined {
  for (const object of objects)
    for (const name of names) {
      const value = object[name];
      if ((typeof value === 'string' && value !== '') || typeof value === 'number') return String(value);
    }
  return undefined;
}

const skip = (skipped: string): Converted => ({ skipped, isFault: false });
const fault = (skipped: string): Converted => ({ skipped, isFault: true });

/** ISO 8601 for the times of SQL databases, which are UTC: `2026-01-31 12:00:00.5` and `…+00`. */
function instantOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const iso = text
    .trim()
    .replace(/^(\d{4}-\d{2}-\d{2})\s+/, '$1T')
    .replace(/\s*UTC$/, 'Z');
  return iso.replace(/([+-]\d{2})$/, (offset) => (iso.includes('T') ? `${offset}:00` : offset));
}

/** A cost that is no placeholder: 0 for a call with tokens means that the product knew no price. */
function costOf(value: unknown, hasTokens: boolean): unknown {
  return value === undefined || (Number(value) === 0 && hasTokens) ? undefined : value;
}

function hasTokens(usage: JsonObject | undefined): boolean {
  return usage !== undefined && Object.values(usage).some((count) => Number(count) > 0);
}

/** The provider's word, else the provider that alone sells the model; a prefix `openai/` counts as a word. */
function providerOf(model: string, word: string | undefined, { inferProvider, defaultProvider }: RowContext) {
  const slash = model.indexOf('/');
  const prefix = slash > 0 ? model.slice(0, slash) : undefined;
  const named = [word, prefix].find((one) => one !== undefined && findProvider(one) !== undefined);
  const bare = prefix !== undefined && findProvider(prefix) !== undefined ? model.slice(slash + 1) : model;
  return { provider: named ?? inferProvider(bare) ?? defaultProvider, model: bare };
}

const unknownProvider = (model: string) =>
  fault(`the provider of ${model.slice(0, 80)} is unknown: name it with --provider`);

/** Without absent fields. */
function eventOf(fields: JsonObject): Converted {
  return { event: Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) };
}

const missing = (name: string) => fault(`${name} is missing: export the file with this column`);

/** Observations of Langfuse: of its user interface, its API, and its export to blob storage. */
function convertLangfuse(fields: Fields, context: RowContext): Converted {
  const type = fields.text('type')?.toUpperCase();
  const model = fields.text('provided_model_name', 'model', 'internal_model');
  if (type === undefined && model === undefined)
    return skip('a trace, whose calls are its observations: export these');
  if (type !== undefined && type !== 'GENERATION' && type !== 'EMBEDDING')
    return skip(`an observation of type ${type.slice(0, 40)}, which is no call`);
  const id = fields.text('id');
  const timestamp = instantOf(fields.text('start_time'));
  if (id === undefined) return missing('id');
  if (timestamp === undefined) return missing('start_time');
  if (model === undefined) return fault('the model is missing: Langfuse has none for this generation');
  const metadata = fields.object('metadata');
  const attributes = objectOf(metadata.attributes) ?? {};
  const named = textIn(
    [metadata, attributes],
    'ls_provider',
    'provider',
    'gen_ai.provider.name',
    'gen_ai.system',
  );
  const made = providerOf(model, named, context);
  if (made.provider === undefined) return unknownProvider(model);
  const usage = langfuseUsage(fields);
  const costs = fields.object('cost_details');
  return eventOf({
    ...made,
    request_id: `langfuse:${id}`,
    timestamp,
    end_at: instantOf(fields.text('end_time')),
    usage,
    cost_usd: costOf(costs.total ?? fields.value('total_cost', 'calculated_total_cost'), hasTokens(usage)),
    status: fields.text('level')?.toUpperCase() === 'ERROR' ? 'error' : 'ok',
    session_id: fields.text('session_id') ?? fields.text('trace_id'),
    user_id: fields.text('user_id'),
    environment: fields.text('environment'),
    team_id: textIn([metadata], 'team_id', 'team'),
    feature: textIn([metadata], 'feature') ?? fields.text('trace_name'),
  });
}

function langfuseUsage(fields: Fields): JsonObject | undefined {
  const details = fields.object('usage_details');
  if (Object.keys(details).length > 0) return details;
  const usage = fields.object('usage');
  const unit = String(usage.unit ?? fields.text('unit', 'usage_unit') ?? 'TOKENS').toUpperCase();
  if (unit !== 'TOKENS') return undefined;
  if (usage.input !== undefined || usage.output !== undefined)
    return withoutAbsent({ input: usage.input, output: usage.output, total: usage.total });
  return withoutAbsent({
    input: fields.value('input_tokens', 'prompt_tokens', 'input_usage'),
    output: fields.value('output_tokens', 'completion_tokens', 'output_usage'),
    total: fields.value('total_tokens', 'total_usage'),
  });
}

function withoutAbsent(fields: JsonObject): JsonObject | undefined {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

/** Rows of the table LiteLLM_SpendLogs. */
function convertLiteLlm(fields: Fields, context: RowContext): Converted {
  const id = fields.text('request_id');
  const timestamp = instantOf(fields.text('start_time', 'starttime'));
  if (id === undefined) return missing('request_id');
  if (timestamp === undefined) return missing('startTime');
  if (/^(?:true|t)$/i.test(fields.text('cache_hit') ?? ''))
    return skip('answered from the proxy’s cache: no provider was called');
  const kind = fields.text('call_type') ?? '';
  if (/batch/.test(kind)) return skip('the sums of a batch, which are no calls');
  if (/mcp/.test(kind) || fields.text('mcp_namespaced_tool_name') !== undefined)
    return skip('a call of a tool, and of no model');
  const model = fields.text('model');
  if (model === undefined) return skip('a request without a model: no provider was called');
  const made = providerOf(model, fields.text('custom_llm_provider'), context);
  if (made.provider === undefined) return unknownProvider(model);
  const metadata = fields.object('metadata');
  const usage = liteLlmUsage(fields, metadata);
  const isError = (fields.text('status') ?? textIn([metadata], 'status')) === 'failure';
  return eventOf({
    ...made,
    request_id: id,
    timestamp,
    end_at: instantOf(fields.text('end_time', 'endtime')),
    usage: isError && !hasTokens(usage) ? undefined : usage,
    cost_usd: isError ? undefined : costOf(fields.value('spend'), hasTokens(usage)),
    status: isError ? 'error' : 'ok',
    base_url: fields.text('api_base'),
    session_id: fields.text('session_id'),
    user_id: fields.text('end_user') ?? fields.text('user'),
    team_id: fields.text('team_id'),
    feature: textIn([metadata, objectOf(metadata.requester_metadata) ?? {}], 'feature'),
  });
}

/** The provider's usage in LiteLLM's form, in which the prompt contains cached tokens; else the columns. */
function liteLlmUsage(fields: Fields, metadata: JsonObject): JsonObject | undefined {
  if (isObject(metadata.usage_object)) return metadata.usage_object;
  const more = isObject(metadata.additional_usage_values) ? metadata.additional_usage_values : {};
  const counts = withoutAbsent({
    prompt_tokens: fields.value('prompt_tokens'),
    completion_tokens: fields.value('completion_tokens'),
    total_tokens: fields.value('total_tokens'),
  });
  return counts && { ...more, ...counts };
}

/** Helicone's reference of a cached answer where there is none. */
const NO_CACHE = /^[0-]*$/;
/** Helicone's own statuses: pending, cancelled by the client, and refused as a threat. */
const PENDING = -2;
const CANCELLED = -3;
const THREAT = -4;

/** Requests of Helicone: of its export tool, and of its API. */
function convertHelicone(fields: Fields, context: RowContext): Converted {
  const id = fields.text('request_id');
  const timestamp = instantOf(fields.text('request_created_at'));
  if (id === undefined) return missing('request_id');
  if (timestamp === undefined) return missing('request_created_at');
  if (!NO_CACHE.test(fields.text('cache_reference_id') ?? ''))
    return skip('answered from Helicone’s cache: no provider was called');
  const status = Number(fields.text('response_status') ?? 200);
  if (status === PENDING) return skip('a request without an answer yet: export it again later');
  if (status === THREAT) return skip('refused by Helicone: no provider was called');
  const model = fields.text('response_model', 'model', 'request_model', 'model_override');
  if (model === undefined) return skip('a request without a model: no provider was called');
  const word = fields.text('provider');
  const made = providerOf(model, word, context);
  if (made.provider === undefined) return unknownProvider(model);
  const body = fields.object('response_body');
  const isError = status >= 400;
  const usage = isError ? undefined : heliconeUsage(fields, body, String(made.provider));
  const labels = [fields.object('properties'), fields.object('request_properties')].map(lowerCase);
  const isHttp = Number.isInteger(status) && status >= 100;
  return eventOf({
    ...made,
    request_id: `helicone:${id}`,
    response_id: typeof body.id === 'string' ? body.id : undefined,
    timestamp,
    duration_ms: fields.value('delay_ms'),
    usage,
    cost_usd: isError ? undefined : costOf(fields.value('cost_usd'), hasTokens(usage)),
    status: status === CANCELLED ? 'cancelled' : isError ? 'error' : 'ok',
    http_status: isHttp ? status : undefined,
    base_url: fields.text('target_url'),
    session_id: textIn(labels, 'helicone-session-id', 'session_id'),
    user_id: fields.text('request_user_id', 'helicone_user', 'user_id'),
    team_id: textIn(labels, 'team_id', 'team'),
    feature: textIn(labels, 'feature', 'helicone-session-name'),
    environment: textIn(labels, 'environment'),
  });
}

function lowerCase(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name.toLowerCase(), value]));
}

/** The provider's usage in the answer, where it was exported; else Helicone's counts in the provider's form. */
function heliconeUsage(fields: Fields, body: JsonObject, provider: string): JsonObject | undefined {
  if (isObject(body.usage)) return body.usage;
  const isAnthropic = findProvider(provider) === 'anthropic';
  return withoutAbsent({
    [isAnthropic ? 'input_tokens' : 'prompt_tokens']: fields.value('prompt_tokens'),
    [isAnthropic ? 'output_tokens' : 'completion_tokens']: fields.value('completion_tokens'),
    cache_read_input_tokens: fields.value('prompt_cache_read_tokens'),
    cache_creation_input_tokens: fields.value('prompt_cache_write_tokens'),
  });
}
