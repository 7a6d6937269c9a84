import type { Reading, Recorder } from '../calls.js';
import { type Labels, ownLabels, withLabels, withoutOption } from '../labels.js';
import { batchOf, firstReadOf, noteFiles } from './batches.js';
import { define, tapIterator } from './iterate.js';
import { isObject, list, merge, numberOf, object, text } from './readings.js';
import { onlyLines, parse, quietly, tapResponse } from './tap.js';

/** The client of Google GenAI: every method makes its requests through `apiClient`. */

type Loose = Record<string, unknown>;
type Send = (request: Loose) => Promise<unknown>;

interface ApiClient {
  request: Send;
  requestStream: Send;
  getBaseUrl?: () => string;
}

const CALLS =
  /models\/([^/:]+):(generateContent|streamGenerateContent|embedContent|batchEmbedContents|predict)(?=\?|$)/;
const BATCH = /(?:^|\/)batches\/[^/:?]+(?=\?|$)/;
const DOWNLOAD = /(?:^|\/)(files\/[^/:?]+):download(?=\?|$)/;
const LABELED = ['generateContent', 'generateContentStream', 'embedContent', 'generateImages'] as const;

export function isGoogle(client: Loose): boolean {
  return typeof object(client.apiClient)?.requestStream === 'function' && isObject(client.models);
}

export function attachGoogle(client: Loose, recorder: Recorder, labels: Labels): void {
  const api = client.apiClient as unknown as ApiClient;
  const place = { recorder, labels, api };
  const request = api.request.bind(api);
  const requestStream = api.requestStream.bind(api);
  // A connection that observes the client later reads the same responses.
  if (!recorder.isSilent) {
    define(api, 'request', (given: Loose) => send(given, request, false, place));
    define(api, 'requestStream', (given: Loose) => send(given, requestStream, true, place));
  }
  // The models know the parameters; the requests below them have only the provider's own fields.
  const models = client.models as Loose;
  for (const name of LABELED) {
    const method = models[name];
    if (typeof method !== 'function') continue;
    define(models, name, (params: unknown, ...rest: unknown[]) => {
      const own = ownLabels(params);
      const make = () => method.call(models, withoutOption(params), ...rest) as unknown;
      return own === undefined ? make() : withLabels(own, make);
    });
  }
}

async function send(
  given: Loose,
  make: Send,
  isStream: boolean,
  { recorder, labels, api }: { recorder: Recorder; labels: Labels; api: ApiClient },
): Promise<unknown> {
  const path = typeof given.path === 'string' ? given.path : '';
  const match = CALLS.exec(path);
  if (given.httpMethod === 'GET' && BATCH.test(path)) {
    const answer = await make(given);
    quietly(() =>
      tapJson(
        answer,
        (job) => recordBatch(job, recorder, labels, api),
        () => undefined,
      ),
    );
    return answer;
  }
  const file = given.httpMethod === 'GET' ? DOWNLOAD.exec(path)?.[1] : undefined;
  if (file !== undefined) {
    const answer = await make(given);
    quietly(() => tapFile(answer, file, recorder, labels, api));
    return answer;
  }
  if (!match || given.httpMethod !== 'POST') return make(given);
  const model = match[1] as string;
  const body = typeof given.body === 'string' ? parse(given.body) : given.body;
  const config = object(object(body)?.generationConfig);
  const call = recorder.begin({
    provider: 'google',
    model,
    baseUrl: api.getBaseUrl?.(),
    body,
    maxOutputTokens: numberOf(config?.maxOutputTokens),
    clientLabels: labels,
    labels: undefined,
  });
  const { newModel } = call;
  const request =
    newModel === undefined
      ? given
      : { ...given, path: path.replace(`models/${model}:`, `models/${newModel}:`) };
  const reading: Reading = {};
  let answer: unknown;
  try {
    answer = await make(request);
  } catch (error) {
    call.fail(error);
    throw error;
  }
  const note = (value: unknown) => {
    merge(reading, readGoogle(value));
    if (call.capturesPayloads && !isStream) reading.answer = value;
  };
  quietly(() => {
    if (isStream) {
      tapIterator(answer as AsyncGenerator, call, reading, (chunk) => tapJson(chunk, note, () => undefined));
    } else tapJson(answer, note, () => call.end('ok', reading), call.fail.bind(call));
  });
  return answer;
}

/** A file of a batch's answers as it is downloaded; other files have other lines. */
function tapFile(answer: unknown, file: string, recorder: Recorder, labels: Labels, api: ApiClient): void {
  const response = object(answer)?.responseInternal;
  if (!(response instanceof Response) || response.body === null) return;
  let index = -1;
  const sink = onlyLines((line) => {
    index += 1;
    if (!line.includes('"usageMetadata"')) return;
    const reading = readGoogle(object(parse(line))?.response);
    if (reading.usage === undefined) return;
    const batch = batchOf(file);
    recorder.recordLater({
      ...reading,
      provider: 'google',
      model: reading.responseModel ?? batch?.model ?? 'unknown',
      baseUrl: api.getBaseUrl?.(),
      requestId: `${file}/${index}`,
      batchId: batch?.id,
      isBatch: true,
      at: batch?.completedAt === undefined ? firstReadOf(file) : batch.completedAt * 1_000,
      status: 'ok',
      labels,
    });
  });
  tapResponse(response, 'lines', sink);
}

/** A batch with its answers in it, or in a file; fetched again, each of them counts once. */
function recordBatch(value: unknown, recorder: Recorder, labels: Labels, api: ApiClient): void {
  const job = object(value);
  const metadata = object(job?.metadata);
  const output = object(metadata?.output) ?? object(job?.response);
  const name = text(job?.name);
  const at = Date.parse(text(metadata?.endTime) ?? text(metadata?.updateTime) ?? '');
  if (name === undefined || Number.isNaN(at)) return;
  const modelOfJob = text(metadata?.model)?.replace(/^models\//, '');
  noteFiles([output?.responsesFile], { id: name, completedAt: at / 1_000, model: modelOfJob });
  list(object(output?.inlinedResponses)?.inlinedResponses).forEach((item, index) => {
    const reading = readGoogle(object(item)?.response);
    // An item that failed has no usage and costs nothing.
    if (reading.usage === undefined) return;
    const model = reading.responseModel ?? modelOfJob;
    recorder.recordLater({
      ...reading,
      provider: 'google',
      model: model ?? 'unknown',
      baseUrl: api.getBaseUrl?.(),
      requestId: `${name}/${index}`,
      batchId: name,
      isBatch: true,
      at,
      status: 'ok',
      labels,
    });
  });
}

/** Changes `json` of this response; it is read once. */
function tapJson(
  response: unknown,
  note: (value: unknown) => void,
  end: () => void,
  fail?: (error: unknown) => void,
): void {
  const json = object(response)?.json as (() => Promise<unknown>) | undefined;
  if (typeof json !== 'function') {
    end();
    return;
  }
  define(response as object, 'json', async () => {
    try {
      const value = await json.call(response);
      quietly(() => note(value));
      end();
      return value;
    } catch (error) {
      fail?.(error);
      throw error;
    }
  });
}

export function readGoogle(value: unknown): Reading {
  const answer = object(value);
  if (answer === undefined) return {};
  const [candidate] = list(answer.candidates);
  const parts = list(object(object(candidate)?.content)?.parts);
  const finish = text(object(candidate)?.finishReason);
  const asksForTool = parts.some((part) => isObject(object(part)?.functionCall));
  return {
    responseId: text(answer.responseId),
    responseModel: text(answer.modelVersion),
    usage: object(answer.usageMetadata),
    // Google ends a call for a tool with STOP.
    stopReason: asksForTool ? 'tool_calls' : finish,
  };
}
