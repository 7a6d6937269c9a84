/**
 * Calls in the logs that coding agents send over OTLP: Claude Code, Codex CLI and Gemini CLI. Other records are no
 * calls and are ignored. Prompts that an agent logs are not read. Pure.
 *
 * Sources of the names: Claude Code, "Monitoring"; Codex, docs/config.md "otel"; Gemini CLI, docs/cli/telemetry.md.
 */
import { isoFromMicros, parseInstant } from '../period.js';
import type { Json, MappedBatch } from './event.js';
import { ItemFault, type JsonObject, type MapContext } from './itemFault.js';
import { type AttributeValue, jsonOf, labelOf, readAnyValue, stripText } from './jsonValues.js';
import { type GroupNames, groupsOf, isObject, type OtlpSource } from './otlpGroups.js';
import { callOfSdkEvent } from './sdkEvents.js';
import { SpanAttributes } from './spanAttributes.js';

/** The lists of a request that hold log records. */
export const LOG_GROUPS: GroupNames = { resources: 'resourceLogs', scopes: 'scopeLogs', items: 'logRecords' };

/** A record's attributes by name. */
type Attributes = ReadonlyMap<string, AttributeValue>;

/** The contents of an agent's record of a call: the fields of a wrapper's event. Absent ones are undefined. */
type AgentFields = Readonly<Record<string, Json | undefined>>;

type ReadCall = (record: Attributes) => AgentFields | undefined;

/** Reads the records of calls, by the event's full name; undefined: this record is no call. */
const CALLS: Readonly<Record<string, ReadCall>> = {
  'claude_code.api_request': claudeCall,
  'claude_code.api_error': claudeCall,
  'codex.sse_event': codexCall,
  'gemini_cli.api_response': geminiCall,
  'gemini_cli.api_error': geminiCall,
};

/** Maps records in order; a wrong one is rejected with its index and does not affect the others. */
export function mapLogRequest(request: unknown, context: MapContext): MappedBatch {
  const batch: MappedBatch = { calls: [], rejections: [], ignored: 0, links: [] };
  let index = 0;
  for (const { source, items } of groupsOf(request, LOG_GROUPS))
    for (const record of items) {
      mapRecord(record, source, index, context, batch);
      index += 1;
    }
  return batch;
}

function mapRecord(
  record: unknown,
  source: OtlpSource,
  index: number,
  context: MapContext,
  batch: MappedBatch,
): void {
  const { serviceName, scopeName } = source;
  let label = '';
  try {
    if (!isObject(record)) throw new ItemFault('invalid_field', 'the log record is not an object');
    const attributes = attributesOf(record.attributes);
    const name = nameOf(record, attributes);
    const fields = name === undefined ? undefined : CALLS[name]?.(attributes);
    if (name === undefined || fields === undefined) {
      batch.ignored += 1;
      return;
    }
    label = `log record "${name}"`;
    const labels = new SpanAttributes(record.attributes, source.outer);
    const event = { ...timeOf(record, attributes), ...labelsOf(labels, attributes), ...fields };
    batch.calls.push(callOfSdkEvent(withoutAbsent(event), source, context));
  } catch (fault) {
    if (!(fault instanceof ItemFault)) throw fault;
    const { reason, message } = fault;
    batch.rejections.push({ index, label, reason, message, serviceName, scopeName });
  }
}

function attributesOf(pairs: unknown): Attributes {
  const found = new Map<string, AttributeValue>();
  if (pairs === undefined || pairs === null) return found;
  if (!Array.isArray(pairs))
    throw new ItemFault('invalid_field', 'attributes: must be a list of key and value');
  for (const pair of pairs as ({ key?: unknown; value?: unknown } | null)[])
    if (typeof pair?.key === 'string') found.set(stripText(pair.key), readAnyValue(pair.value));
  return found;
}

/** The event's full name. Claude Code has a short one in `event.name` and the full one in the body. */
function nameOf(record: Record<string, unknown>, attributes: Attributes): string | undefined {
  const names = [labelOf(readAnyValue(record.body)), attributes.get('event.name'), record.eventName];
  return names.find((name): name is string => typeof name === 'string' && Object.hasOwn(CALLS, name));
}

/** Agents log a call when it ends; Codex without its duration. */
function timeOf(record: Record<string, unknown>, attributes: Attributes): AgentFields {
  const text = attributes.get('event.timestamp');
  const named = typeof text === 'string' ? parseInstant(text)?.micros : undefined;
  const endMicros = named ?? microsOfNanos(record.timeUnixNano) ?? microsOfNanos(record.observedTimeUnixNano);
  if (endMicros === undefined) throw new ItemFault('missing_field', 'event.timestamp is missing');
  const lasted = Number(attributes.get('duration_ms') ?? 0);
  const durationMs =
    Number.isFinite(lasted) && lasted > 0 ? Math.min(Math.round(lasted), DURATION_MS_MAX) : 0;
  return {
    timestamp: isoFromMicros(endMicros - BigInt(durationMs) * 1_000n),
    end_at: isoFromMicros(endMicros),
    duration_ms: durationMs,
  };
}

/** A longer duration is a fault of the agent's clock; the call's end is certain. */
const DURATION_MS_MAX = 86_400_000;

function microsOfNanos(value: unknown): bigint | undefined {
  const isNumber = typeof value === 'bigint' || typeof value === 'number';
  if (!isNumber && !(typeof value === 'string' && /^\d{1,20}$/.test(value))) return undefined;
  const nanos = BigInt(typeof value === 'number' ? Math.trunc(value) : value);
  return nanos > 0n ? nanos / 1_000n : undefined;
}

/** Labels that the record or its resource has; the organization sets those of the resource for its agents. */
function labelsOf(labels: SpanAttributes, attributes: Attributes): AgentFields {
  const environment = labels.label('environment') ?? textOf(attributes, 'env');
  return {
    session_id: labels.label('session') ?? textOf(attributes, 'conversation.id'),
    user_id:
      textOf(attributes, 'user.email') ?? labels.label('user') ?? textOf(attributes, 'user.account_id'),
    team_id: labels.label('team'),
    feature: labels.label('feature'),
    project_id: labels.label('projectId'),
    provider_account_id: labels.label('providerAccountId'),
    provider_key_id: labels.label('providerKeyId'),
    _service: withoutAbsent({
      ...labels.service,
      name: labels.label('serviceName'),
      version: textOf(attributes, 'app.version'),
      environment,
    }),
  };
}

/** A failed request has `status_code` and `error`, and no tokens. */
function claudeCall(record: Attributes): AgentFields {
  const model = textOf(record, 'model');
  const speed = textOf(record, 'speed');
  return {
    provider: claudeBiller(model ?? ''),
    model,
    request_id: textOf(record, 'request_id'),
    ...counts(record, {
      input_tokens: 'input_tokens',
      output_tokens: 'output_tokens',
      cache_read: 'cache_read_tokens',
      cache_creation: 'cache_creation_tokens',
    }),
    // `cost_usd` is the agent's estimate from a list of its own; the call is priced here.
    ...(speed === undefined || speed === 'normal' ? {} : { service_tier: speed }),
    ...failureOf(record, 'status_code', record.has('error')),
  };
}

/** Bedrock's and Vertex AI's ids of Claude models show who bills them. */
function claudeBiller(model: string): string {
  if (/(?:^|[./])anthropic\./.test(model)) return 'aws_bedrock';
  return model.includes('@') ? 'google' : 'anthropic';
}

/** The end of a response's stream has its counts; cached tokens are part of the input, reasoning of the output. */
function codexCall(record: Attributes): AgentFields | undefined {
  if (record.get('event.kind') !== 'response.completed') return undefined;
  if (record.get('input_token_count') === undefined) return undefined;
  return {
    provider: 'openai',
    // ChatGPT plans are not billed by tokens.
    ...(/^chatgpt$/i.test(textOf(record, 'auth_mode') ?? '') ? { billed_by: 'unknown' } : {}),
    model: textOf(record, 'model'),
    service_tier: textOf(record, 'service_tier'),
    usage: withoutAbsent({
      input_tokens: record.get('input_token_count') as Json,
      output_tokens: jsonAt(record, 'output_token_count'),
      input_tokens_details: { cached_tokens: jsonAt(record, 'cached_token_count') ?? 0 },
      output_tokens_details: { reasoning_tokens: jsonAt(record, 'reasoning_token_count') ?? 0 },
    }),
  };
}

/** Thoughts are not part of the output, cached content is part of the input, as in Google's usage metadata. */
function geminiCall(record: Attributes): AgentFields {
  const usage = withoutAbsent({
    prompt_token_count: jsonAt(record, 'input_token_count'),
    candidates_token_count: jsonAt(record, 'output_token_count'),
    cached_content_token_count: jsonAt(record, 'cached_content_token_count'),
    thoughts_token_count: jsonAt(record, 'thoughts_token_count'),
    tool_use_prompt_token_count: jsonAt(record, 'tool_token_count'),
    total_token_count: jsonAt(record, 'total_token_count'),
  });
  const hasUsage = Object.keys(usage).length > 0;
  return {
    provider: 'google',
    // A Google account signs in to a plan that is not billed by tokens.
    ...(/oauth/i.test(textOf(record, 'auth_type') ?? '') ? { billed_by: 'unknown' } : {}),
    model: textOf(record, 'model'),
    ...(hasUsage ? { usage } : {}),
    ...failureOf(record, 'status_code', record.has('error') || record.has('error_type')),
  };
}

function failureOf(record: Attributes, name: string, isError: boolean): AgentFields {
  const status = Number(record.get(name));
  const isHttp = Number.isInteger(status) && status >= 100 && status <= 599;
  return {
    ...(isHttp ? { http_status: status } : {}),
    ...(isError || (isHttp && status >= 400) ? { status: 'error' } : {}),
  };
}

/** Counts under the names of a wrapper's event. */
function counts(record: Attributes, names: Readonly<Record<string, string>>): AgentFields {
  return Object.fromEntries(Object.entries(names).map(([own, theirs]) => [own, jsonAt(record, theirs)]));
}

/** A count may come as text. */
function jsonAt(record: Attributes, name: string): Json | undefined {
  const value = record.get(name);
  return value === undefined ? undefined : jsonOf(value);
}

function textOf(record: Attributes, name: string): string | undefined {
  return labelOf(record.get(name));
}

function withoutAbsent(fields: AgentFields): JsonObject {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== ''),
  ) as JsonObject;
}
