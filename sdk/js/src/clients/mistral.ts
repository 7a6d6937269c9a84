import type { Reading, Recorder } from '../calls.js';
import { type Labels, mergeLabels, ownLabels, withoutOption } from '../labels.js';
import { define, tapStream } from './iterate.js';
import { list, merge, numberOf, object, text } from './readings.js';
import { quietly } from './tap.js';

/** The client of Mistral: its methods take the parameters first and answer in camel case. */

type Loose = Record<string, unknown>;
type Method = (params: unknown, options?: unknown) => Promise<unknown>;

/** Methods that call a model, by the part of the client that has them. */
const METHODS: readonly (readonly [part: string, methods: readonly string[]])[] = [
  ['chat', ['complete', 'stream', 'parse', 'parseStream']],
  ['fim', ['complete', 'stream']],
  ['agents', ['complete', 'stream']],
  ['embeddings', ['create']],
];

export function isMistral(client: Loose): boolean {
  return typeof object(client.chat)?.complete === 'function' && object(client.fim) !== undefined;
}

export function attachMistral(client: Loose, recorder: Recorder, labels: Labels): void {
  for (const [name, methods] of METHODS) {
    const part = client[name] as Loose | undefined;
    if (typeof part !== 'object' || part === null) continue;
    for (const methodName of methods) {
      const method = part[methodName] as Method | undefined;
      if (typeof method !== 'function') continue;
      const isStream = /stream$/i.test(methodName);
      define(part, methodName, (params: unknown, options?: unknown) =>
        callOf(method.bind(part), params, options, { client, recorder, labels, isStream }),
      );
    }
  }
}

async function callOf(
  method: Method,
  params: unknown,
  options: unknown,
  place: { client: Loose; recorder: Recorder; labels: Labels; isStream: boolean },
): Promise<unknown> {
  const given = object(params) ?? {};
  const call = place.recorder.begin({
    provider: 'mistral',
    model: text(given.model) ?? text(given.agentId) ?? 'unknown',
    baseUrl: baseUrlOf(place.client, options),
    body: given,
    maxOutputTokens: numberOf(given.maxTokens),
    clientLabels: place.labels,
    labels: mergeLabels(ownLabels(params), ownLabels(options)),
  });
  const plain = withoutOption(params) as Loose;
  const sent = call.newModel === undefined ? plain : { ...plain, model: call.newModel };
  let answer: unknown;
  try {
    answer = await method(sent, withoutOption(options));
  } catch (error) {
    call.fail(error);
    throw error;
  }
  const reading: Reading = {};
  if (place.isStream) {
    const note = (event: unknown) => merge(reading, readMistral(object(event)?.data ?? event));
    quietly(() => tapStream(answer, call, reading, note));
  } else {
    quietly(() => merge(reading, readMistral(answer)));
    if (call.capturesPayloads) reading.answer = answer;
    call.end('ok', reading);
  }
  return answer;
}

function readMistral(value: unknown): Reading {
  const answer = object(value);
  if (answer === undefined) return {};
  return {
    responseId: text(answer.id),
    responseModel: text(answer.model),
    usage: object(answer.usage),
    stopReason: list(answer.choices)
      .map((choice) => text(object(choice)?.finishReason))
      .find((reason) => reason !== undefined),
  };
}

function baseUrlOf(client: Loose, options: unknown): string | undefined {
  const own = text(object(options)?.serverURL);
  const base = client._baseURL;
  return own ?? (base instanceof URL ? base.href : text(base));
}
