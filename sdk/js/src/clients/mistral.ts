import type { Reading, Recorder } from '../calls.js';
import { type Labels, mergeLabels, ownLabels, withoutOption } from '../labels.js';
import { type BatchPlace, noteFiles, recordOpenAiItem, recordOpenAiResult } from './batches.js';
import { define, tapStream } from './iterate.js';
import { list, merge, numberOf, object, text } from './readings.js';
import { onlyLines, quietly, tapBody } from './tap.js';

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
  attachBatches(client, recorder, labels);
}

/** Results of batches are files, or part of the job where it was fetched with them. */
function attachBatches(client: Loose, recorder: Recorder, labels: Labels): void {
  const placeFor = (options: unknown): BatchPlace => ({
    recorder,
    labels,
    provider: 'mistral',
    baseUrl: baseUrlOf(client, options),
  });
  const jobs = object(object(client.batch)?.jobs) ?? {};
  for (const name of ['get', 'list', 'create', 'cancel'])
    readAlong(jobs, name, (answer, _, options) => {
      const jobsOfAnswer = list(object(answer)?.data);
      for (const job of jobsOfAnswer.length > 0 ? jobsOfAnswer : [answer]) noteJob(job, placeFor(options));
      return answer;
    });
  const files = object(client.files) ?? {};
  readAlong(files, 'download', (answer, params, options) => {
    const fileId = text(object(params)?.fileId);
    if (!(answer instanceof ReadableStream) || answer.locked || fileId === undefined) return answer;
    const place = placeFor(options);
    return tapBody(
      answer,
      'lines',
      onlyLines((line) => recordOpenAiResult(line, fileId, place)),
    );
  });
}

/** Changes a method: its answer is read along, or replaced by one with the same content. */
function readAlong(
  part: Loose,
  name: string,
  read: (answer: unknown, params: unknown, options: unknown) => unknown,
): void {
  const method = part[name] as Method | undefined;
  if (typeof method !== 'function') return;
  define(part, name, async (params: unknown, options?: unknown) => {
    const answer = await method.call(part, params, options);
    try {
      return read(answer, params, options);
    } catch {
      // An answer of an unknown form is returned as it is.
      return answer;
    }
  });
}

function noteJob(value: unknown, place: BatchPlace): void {
  const job = object(value);
  const id = text(job?.id);
  if (job === undefined || id === undefined) return;
  const batch = { id, completedAt: numberOf(job.completedAt) ?? undefined, model: text(job.model) };
  noteFiles([job.outputFile, job.errorFile], batch);
  for (const item of list(job.outputs)) quietly(() => recordOpenAiItem(item, batch, id, place));
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
