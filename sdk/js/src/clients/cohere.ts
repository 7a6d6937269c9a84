import type { OpenCall, Reading, Recorder } from '../calls.js';
import { type Labels, mergeLabels, ownLabels, withoutOption } from '../labels.js';
import { define, tapStream } from './iterate.js';
import { merge, numberOf, object, text } from './readings.js';
import { quietly } from './tap.js';

/** The clients of Cohere, versions 1 and 2 of its API. */

type Loose = Record<string, unknown>;
type Method = (params: unknown, options?: unknown) => PromiseLike<unknown>;

const METHODS = ['chat', 'chatStream', 'generate', 'generateStream', 'embed', 'rerank'] as const;

export function isCohere(client: Loose): boolean {
  return typeof client.chatStream === 'function' && typeof client.embed === 'function';
}

export function attachCohere(client: Loose, recorder: Recorder, labels: Labels): void {
  for (const name of METHODS) {
    const method = client[name] as Method | undefined;
    if (typeof method !== 'function') continue;
    const place = { client, recorder, labels, isStream: name.endsWith('Stream') };
    define(client, name, (params: unknown, options?: unknown) =>
      callOf(method.bind(client), params, options, place),
    );
  }
  // The older client has the newer API inside.
  const inner = object(client.v2);
  if (inner && isCohere(inner)) attachCohere(inner, recorder, labels);
}

function callOf(
  method: Method,
  params: unknown,
  options: unknown,
  place: { client: Loose; recorder: Recorder; labels: Labels; isStream: boolean },
): unknown {
  const given = object(params) ?? {};
  let call: OpenCall;
  try {
    call = place.recorder.begin({
      provider: 'cohere',
      model: text(given.model) ?? 'unknown',
      baseUrl: baseUrlOf(place.client),
      body: given,
      maxOutputTokens: numberOf(given.maxTokens),
      clientLabels: place.labels,
      labels: mergeLabels(ownLabels(params), ownLabels(options)),
    });
  } catch (error) {
    // A method of this client never throws; its promise does.
    const refused = Promise.reject(error);
    return Object.assign(refused, { withRawResponse: () => refused });
  }
  const plain = withoutOption(params) as Loose;
  const sent = call.newModel === undefined ? plain : { ...plain, model: call.newModel };
  // The client's own promise has methods of its own: it is returned as it is, and observed beside it.
  const promise = method(sent, withoutOption(options));
  const reading: Reading = {};
  promise.then(
    (answer) => {
      quietly(() => {
        if (place.isStream) tapStream(answer, call, reading, (event) => merge(reading, readCohere(event)));
        else merge(reading, readCohere(answer));
      });
      if (call.capturesPayloads && !place.isStream) reading.answer = answer;
      if (!place.isStream) call.end('ok', reading);
    },
    (error: unknown) => call.fail(error),
  );
  return promise;
}

/** An answer, or an event of a stream: usage is billed units beside the tokens that were counted. */
function readCohere(value: unknown): Reading {
  const given = object(value);
  if (given === undefined) return {};
  const isStart = given.type === 'message-start' || given.eventType === 'stream-start';
  const answer = object(given.delta) ?? object(given.response) ?? given;
  const finish = text(answer.finishReason);
  return {
    responseId: text(given.id) ?? (isStart ? text(given.generationId) : text(answer.generationId)),
    usage: usageOf(object(answer.usage) ?? object(answer.meta)),
    stopReason: finish === 'TOOL_CALL' ? 'tool_calls' : finish,
  };
}

function usageOf(given: Loose | undefined): object | undefined {
  const billedUnits = object(given?.billedUnits);
  const tokens = object(given?.tokens);
  if (billedUnits === undefined && tokens === undefined) return undefined;
  return { ...(billedUnits ? { billedUnits } : {}), ...(tokens ? { tokens } : {}) };
}

function baseUrlOf(client: Loose): string | undefined {
  const options = object(client._options);
  const environment = options?.baseUrl ?? options?.environment;
  return text(environment) ?? 'https://api.cohere.com';
}
