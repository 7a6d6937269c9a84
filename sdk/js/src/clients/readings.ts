import type { Reading } from '../calls.js';

/** Reads the facts in the answers of the providers: one reader for each form of answer. */

type Loose = Record<string, unknown>;

export const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;
export const object = (value: unknown): Loose | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Loose) : undefined;
export const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);

export const isObject = (value: unknown): value is Loose => typeof value === 'object' && value !== null;
/** null: no number. */
export const numberOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) ? value : null;

/** Adds what is known now; what was known before stays. */
export function merge(reading: Reading, more: Reading): void {
  for (const [name, value] of Object.entries(more)) if (value !== undefined) (reading as Loose)[name] = value;
}

/** Chat completions, completions, embeddings, images and transcriptions of OpenAI and of its kin. */
export function readOpenAi(value: unknown): Reading {
  const answer = object(value);
  if (answer === undefined) return {};
  if (answer.object === 'response' || object(answer.response)?.object === 'response')
    return readResponse(object(answer.response) ?? answer);
  const finish = list(answer.choices)
    .map((choice) => text(object(choice)?.finish_reason))
    .find((reason) => reason !== undefined);
  return {
    responseId: text(answer.id),
    responseModel: text(answer.model),
    usage: object(answer.usage),
    stopReason: finish,
    serviceTier: text(answer.service_tier),
  };
}

/** Stop reasons of responses that have ended. */
const ENDS: Record<string, string> = {
  completed: 'stop',
  incomplete: 'incomplete',
  failed: 'error',
  cancelled: 'cancelled',
};

/** The Responses API: a call for a tool is an item of the output. */
function readResponse(answer: Loose): Reading {
  const asksForTool = list(answer.output).some((item) => {
    const type = object(item)?.type;
    return type === 'function_call' || type === 'custom_tool_call';
  });
  const status = text(answer.status);
  const reason = text(object(answer.incomplete_details)?.reason);
  return {
    responseId: text(answer.id),
    responseModel: text(answer.model),
    usage: object(answer.usage),
    stopReason: asksForTool ? 'tool_calls' : (reason ?? (status === undefined ? undefined : ENDS[status])),
    serviceTier: text(answer.service_tier),
  };
}

/** Anthropic's messages: whole, or the first and the last event of a stream. */
export function readAnthropic(value: unknown, before: Reading = {}): Reading {
  const event = object(value);
  if (event === undefined) return {};
  const message = object(event.message) ?? (event.type === 'message_delta' ? {} : event);
  const delta = object(event.delta) ?? {};
  const usage = object(event.usage) ?? object(message.usage);
  return {
    responseId: text(message.id),
    responseModel: text(message.model),
    // The last event has the final counts; those that it omits are of the first.
    usage: usage && { ...before.usage, ...withoutNulls(usage) },
    stopReason: text(delta.stop_reason) ?? text(message.stop_reason),
    serviceTier: text(usage?.service_tier),
  };
}

function withoutNulls(given: Loose): Loose {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
}
