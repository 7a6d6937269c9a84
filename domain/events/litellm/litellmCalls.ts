/**
 * Calls in the requests of LiteLLM's callback `generic_api`: its StandardLoggingPayload, one for each call of its proxy
 * or package. Answers from its cache and requests that call no model are ignored. Pure.
 *
 * Source of the names: LiteLLM 1.108.7, as its proxy sends them.
 */
import { isGatewayWord } from '../../gateways.js';
import { isoFromMicros } from '../../period.js';
import type { CallRecord, Json, MappedBatch } from '../event.js';
import {
  fieldOf,
  ItemFault,
  isJsonObject,
  type JsonObject,
  type MapContext,
  shown,
  textOf,
} from '../itemFault.js';
import { stripJson } from '../jsonValues.js';
import { callOfSdkEvent } from '../sdkEvents.js';
import { readObjectText } from './pythonLiteral.js';

const SOURCE = { serviceName: 'litellm', scopeName: 'litellm', scopeVersion: '' };

/** Kinds of requests that sum up other calls, or are none. */
const NO_CALLS = /batch|mcp|file|list_|vector_store|moderation|health|assistant|thread|fine_tun|container/;

/** Maps payloads in order; a wrong one is rejected with its index and does not affect the others. */
export function mapLiteLlmPayloads(items: readonly unknown[], context: MapContext): MappedBatch {
  const batch: MappedBatch = { calls: [], rejections: [], ignored: 0, links: [] };
  items.forEach((item, index) => {
    let label = '';
    try {
      const payload = stripJson(item);
      if (!isJsonObject(payload)) throw new ItemFault('invalid_field', 'the payload is not an object');
      const id = fieldOf(payload, 'id');
      if (typeof id === 'string') label = `call ${shown(id)}`;
      if (isCall(payload)) batch.calls.push(callOf(payload, context));
      else batch.ignored += 1;
    } catch (fault) {
      if (!(fault instanceof ItemFault)) throw fault;
      const { reason, message } = fault;
      batch.rejections.push({ index, label, reason, message, ...SOURCE });
    }
  });
  return batch;
}

/** A request that failed before the proxy had a model for it called no provider. Error: an answer without its model. */
function isCall(payload: JsonObject): boolean {
  if (fieldOf(payload, 'cache_hit') === true || NO_CALLS.test(textOf(payload, 'call_type') ?? ''))
    return false;
  if (textOf(payload, 'model') !== undefined) return true;
  if (textOf(payload, 'status') === 'failure') return false;
  throw new ItemFault('missing_field', 'model is missing');
}

function callOf(payload: JsonObject, context: MapContext): CallRecord {
  const metadata = objectAt(payload, 'metadata');
  const requested = objectAt(metadata, 'requester_metadata');
  const isError = textOf(payload, 'status') === 'failure';
  const usage = usageOf(payload, metadata);
  const isFree = isError || (Number(fieldOf(payload, 'response_cost') ?? 0) === 0 && usage !== undefined);
  const provider = textOf(payload, 'custom_llm_provider');
  const label = (name: string) => textOf(requested, name) ?? null;
  const event: JsonObject = {
    ...modelOf(payload, provider, context),
    request_id: textOf(payload, 'id') ?? null,
    timestamp: timeAt(payload, 'startTime'),
    end_at: timeAt(payload, 'endTime'),
    base_url: textOf(payload, 'api_base') ?? null,
    usage: isError ? null : (usage ?? null),
    // LiteLLM reports 0 for a model whose price it does not know.
    cost_usd: isFree ? null : (fieldOf(payload, 'response_cost') ?? null),
    ...(isError ? failureOf(payload) : {}),
    stop_reason: stopReasonIn(payload),
    session_id: label('session_id') ?? textOf(payload, 'session_id') ?? textOf(payload, 'trace_id') ?? null,
    user_id: textOf(payload, 'end_user') ?? textOf(metadata, 'user_api_key_end_user_id') ?? label('user_id'),
    team_id: textOf(metadata, 'user_api_key_team_id') ?? textOf(metadata, 'team_id') ?? label('team_id'),
    feature: label('feature'),
    project_id: label('project_id'),
    provider_account_id: label('provider_account_id'),
    _service: { name: SOURCE.serviceName, environment: label('environment') },
    payload: contentOf(payload),
  };
  const call = callOfSdkEvent(event, SOURCE, context);
  return { ...call, origin: { ...call.origin, usageSource: 'litellm' } };
}

/** The provider's word, and the model without it: a gateway's models keep the maker's name. */
function modelOf(payload: JsonObject, provider: string | undefined, context: MapContext): JsonObject {
  const named = textOf(payload, 'model') as string;
  const prefix = `${provider ?? ''}/`;
  const model = provider !== undefined && named.startsWith(prefix) ? named.slice(prefix.length) : named;
  const word = provider ?? context.inferProvider(model) ?? null;
  return { provider: word, model: word !== null && isGatewayWord(word) ? named : model };
}

function objectAt(holder: JsonObject | undefined, name: string): JsonObject | undefined {
  const value = fieldOf(holder, name);
  if (isJsonObject(value)) return value;
  return typeof value === 'string' ? readObjectText(value) : undefined;
}

/** The usage in LiteLLM's form, in which the prompt contains cached tokens; undefined: no tokens were counted. */
function usageOf(payload: JsonObject, metadata: JsonObject | undefined): JsonObject | undefined {
  const own: JsonObject = {};
  for (const name of ['prompt_tokens', 'completion_tokens', 'total_tokens']) {
    const count = fieldOf(payload, name);
    if (count !== undefined) own[name] = count;
  }
  const usage = objectAt(metadata, 'usage_object') ?? objectAt(objectAt(payload, 'response'), 'usage') ?? own;
  const hasTokens = Object.values(usage).some((count) => typeof count === 'number' && count > 0);
  return hasTokens ? usage : undefined;
}

/** Times are seconds since 1970 with a fraction, or ISO 8601. */
function timeAt(payload: JsonObject, name: string): Json {
  const value = fieldOf(payload, name);
  if (typeof value !== 'number') return value ?? null;
  if (!(value >= 0 && value < 1e11)) throw new ItemFault('invalid_field', `${name}: ${value} is no time`);
  return isoFromMicros(BigInt(Math.round(value * 1e6)));
}

function failureOf(payload: JsonObject): JsonObject {
  const code = Number(fieldOf(objectAt(payload, 'error_information'), 'error_code'));
  const isHttp = Number.isInteger(code) && code >= 100 && code <= 599;
  return { status: 'error', http_status: isHttp ? code : null };
}

function stopReasonIn(payload: JsonObject): Json {
  const choices = fieldOf(objectAt(payload, 'response'), 'choices');
  const first = Array.isArray(choices) ? choices[0] : undefined;
  return (isJsonObject(first) ? fieldOf(first, 'finish_reason') : undefined) ?? null;
}

/** Content for policies and readers; the answer stays behind. */
function contentOf(payload: JsonObject): Json {
  const kept = ['messages', 'request_tags', 'model_group', 'call_type', 'error_str'];
  const found = kept.flatMap((name): [string, Json][] => {
    const value = fieldOf(payload, name);
    return value === undefined ? [] : [[name, value]];
  });
  return found.length === 0 ? null : Object.fromEntries(found);
}
