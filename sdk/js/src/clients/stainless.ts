import type { CallRequest, OpenCall, Reading, Recorder } from '../calls.js';
import { type Labels, mergeLabels, OPTION, ownLabels, withoutOption } from '../labels.js';
import { noteBatch, recordAnthropicResult, recordOpenAiResult } from './batches.js';
import { leftAs } from './iterate.js';
import { merge, numberOf, readAnthropic, readOpenAi } from './readings.js';
import { type BodyKind, onlyLines, parse, quietly, type TapSink, tapResponse } from './tap.js';

/**
 * The official clients of OpenAI (with Azure's and those for other hosts) and of Anthropic, which one generator
 * writes. Every method of theirs makes its request through `makeRequest`, which calls itself for each retry: a call is
 * the outermost of them.
 */

type Loose = Record<string, unknown>;
type MakeRequest = (options: unknown, retriesRemaining?: unknown, ...rest: unknown[]) => Promise<Loose>;

interface StainlessClient extends Loose {
  makeRequest: MakeRequest;
  baseURL?: unknown;
  apiKey?: unknown;
  withOptions?: (options: unknown) => object;
}

type Attach = <Client extends object>(client: Client, recorder: Recorder, labels: Labels) => Client;

export function isStainless(client: Loose): boolean {
  return typeof client.makeRequest === 'function' && typeof client.post === 'function';
}

/** Calls of a model, by the end of their path. */
const CALLS_OF_OPENAI =
  /\/(?:chat\/completions|completions|responses|responses\/compact|embeddings|audio\/(?:transcriptions|translations|speech)|images\/(?:generations|edits|variations))\/?$/;
const CALLS_OF_ANTHROPIC = /\/v1\/(?:messages|complete)\/?$/;
const RESULTS_OF_ANTHROPIC = /\/v1\/messages\/batches\/([^/]+)\/results\/?$/;
const BATCHES_OF_OPENAI = /^\/batches(?:\/[^/]+(?:\/cancel)?)?\/?$/;
const FILE_OF_OPENAI = /\/files\/([^/]+)\/content\/?$/;
const RESPONSE_OF_OPENAI = /\/responses\/[^/]+\/?$/;
const HOSTS: readonly (readonly [RegExp, string])[] = [
  [/(?:^|\.)api\.openai\.com$/, 'openai'],
  [/\.(?:openai|cognitiveservices)\.azure\.com$/, 'azure_openai'],
  [/^api\.anthropic\.com$/, 'anthropic'],
  [/^api\.x\.ai$/, 'xai'],
  [/^api\.mistral\.ai$/, 'mistral'],
  [/^bedrock-(?:runtime|mantle)[a-z0-9.-]*$/, 'aws_bedrock'],
  [/(?:^|[.-])aiplatform\.googleapis\.com$|^generativelanguage\.googleapis\.com$/, 'google'],
];
/** Parts of the names of clients for other hosts: AzureOpenAI, BedrockOpenAI, AnthropicBedrock, AnthropicVertex. */
const CLASSES: readonly (readonly [string, string])[] = [
  ['Azure', 'azure_openai'],
  ['Bedrock', 'aws_bedrock'],
  ['Vertex', 'google'],
];
const KEY_PREFIX_CHARS = 8;
/** As clients write an object into a form. */
const LABEL_OF_FORM = /^trueup\[(\w+)\]$/;

export function attachStainless(client: Loose, recorder: Recorder, labels: Labels, attach: Attach): void {
  const observed = client as StainlessClient;
  const original = observed.makeRequest;
  const isAnthropic = observed.messages !== undefined && observed.chat === undefined;
  const makeRequest: MakeRequest = async function (this: unknown, options, retriesRemaining, ...rest) {
    if (retriesRemaining !== null && retriesRemaining !== undefined)
      return original.call(observed, options, retriesRemaining, ...rest);
    const given = (await options) as Loose;
    const request = new StainlessRequest(observed, given, isAnthropic, labels, recorder);
    return request.make((changed) => original.call(observed, changed, retriesRemaining, ...rest));
  };
  hide(observed, 'makeRequest', makeRequest);
  const { withOptions } = observed;
  if (typeof withOptions === 'function')
    hide(observed, 'withOptions', (options: unknown) =>
      attach(withOptions.call(observed, options), recorder, labels),
    );
}

function hide(client: object, name: string, value: unknown): void {
  Object.defineProperty(client, name, { configurable: true, enumerable: false, writable: true, value });
}

class StainlessRequest {
  readonly #client: StainlessClient;
  readonly #options: Loose;
  readonly #isAnthropic: boolean;
  readonly #clientLabels: Labels;
  readonly #recorder: Recorder;

  constructor(
    client: StainlessClient,
    options: Loose,
    isAnthropic: boolean,
    labels: Labels,
    recorder: Recorder,
  ) {
    this.#client = client;
    this.#options = options;
    this.#isAnthropic = isAnthropic;
    this.#clientLabels = labels;
    this.#recorder = recorder;
  }

  async make(send: (options: Loose) => Promise<Loose>): Promise<Loose> {
    if (this.#recorder.isSilent) {
      // Nothing is read along: a connection that observes the client later reads the same response.
      fieldsOf(this.#options.body);
      return send(this.#plainOptions());
    }
    const { method, path } = this.#options;
    const bare = typeof path === 'string' ? (path.split('?', 1)[0] as string) : '';
    if (method === 'post' && (this.#isAnthropic ? CALLS_OF_ANTHROPIC : CALLS_OF_OPENAI).test(bare))
      return this.#call(bare, send);
    const props = await send(this.#plainOptions());
    if (method === 'get' || BATCHES_OF_OPENAI.test(bare)) quietly(() => this.#readAlong(bare, props));
    return props;
  }

  async #call(path: string, send: (options: Loose) => Promise<Loose>): Promise<Loose> {
    const body = this.#options.body;
    const call = this.#recorder.begin(this.#requestOf(fieldsOf(body)));
    const options = this.#plainOptions();
    const { newModel } = call;
    if (newModel !== undefined) {
      if (options.body instanceof FormData) options.body.set('model', newModel);
      else options.body = { ...(options.body as Loose), model: newModel };
    }
    let props: Loose;
    try {
      props = await send(options);
    } catch (error) {
      call.fail(error);
      throw error;
    }
    quietly(() => this.#tap(call, path, props));
    return props;
  }

  #requestOf(given: Loose): CallRequest {
    const { apiKey } = this.#client;
    return {
      provider: this.#provider(),
      model: typeof given.model === 'string' ? given.model : 'unknown',
      baseUrl: this.#baseUrl(),
      body: given,
      maxOutputTokens:
        numberOf(given.max_completion_tokens) ??
        numberOf(given.max_output_tokens) ??
        numberOf(given.max_tokens),
      clientLabels: this.#clientLabels,
      labels: mergeLabels(ownLabels(this.#options), ownLabels(given)),
      keyPrefix: typeof apiKey === 'string' ? apiKey.slice(0, KEY_PREFIX_CHARS) : undefined,
    };
  }

  #baseUrl(): string | undefined {
    const { baseURL } = this.#client;
    return typeof baseURL === 'string' ? baseURL : undefined;
  }

  #provider(): string {
    const host = hostOf(this.#baseUrl());
    for (const [pattern, provider] of HOSTS) if (pattern.test(host)) return provider;
    return providerOfClass(this.#client) ?? (this.#isAnthropic ? 'anthropic' : 'openai');
  }

  /** The options without the labels, as the provider may see them. */
  #plainOptions(): Loose {
    const options = withoutOption(this.#options);
    const body = withoutOption(options.body);
    return body === options.body
      ? options === this.#options
        ? { ...options }
        : options
      : { ...options, body };
  }

  #tap(call: OpenCall, path: string, props: Loose): void {
    const { response } = props;
    const reading: Reading = {};
    const isSpeech = path.endsWith('/audio/speech');
    if (!(response instanceof Response) || response.body === null || isSpeech) {
      call.end('ok', reading);
      return;
    }
    const sink = this.#isAnthropic ? anthropicSink(call, reading) : openAiSink(call, reading);
    tapResponse(response, kindOf(response, this.#options.stream === true), sink);
  }

  /** Batches and background responses have their usage in a later request. */
  #readAlong(path: string, props: Loose): void {
    const { response } = props;
    if (!(response instanceof Response) || response.body === null) return;
    const place = {
      recorder: this.#recorder,
      labels: this.#clientLabels,
      provider: this.#provider(),
      baseUrl: this.#baseUrl(),
    };
    const results = this.#isAnthropic ? RESULTS_OF_ANTHROPIC.exec(path) : FILE_OF_OPENAI.exec(path);
    if (results) {
      const id = results[1] as string;
      const record = this.#isAnthropic ? recordAnthropicResult : recordOpenAiResult;
      tapResponse(
        response,
        'lines',
        onlyLines((line) => record(line, id, place)),
      );
    } else if (!this.#isAnthropic && BATCHES_OF_OPENAI.test(path)) {
      tapResponse(response, 'json', onlyJson(noteBatch));
    } else if (!this.#isAnthropic && RESPONSE_OF_OPENAI.test(path)) {
      tapResponse(
        response,
        'json',
        onlyJson((value) => this.#recordBackground(value)),
      );
    }
  }

  /** A response that was made in the background, when it is fetched at its end; fetched again it counts once. */
  #recordBackground(value: unknown): void {
    const answer = (value ?? {}) as Loose;
    if (answer.object !== 'response' || answer.background !== true || typeof answer.usage !== 'object')
      return;
    if (answer.usage === null || typeof answer.created_at !== 'number') return;
    const reading = readOpenAi(answer);
    this.#recorder.recordLater({
      ...reading,
      provider: this.#provider(),
      baseUrl: this.#baseUrl(),
      model: reading.responseModel ?? 'unknown',
      at: answer.created_at * 1_000,
      status: answer.status === 'failed' ? 'error' : answer.status === 'cancelled' ? 'cancelled' : 'ok',
      labels: this.#clientLabels,
    });
  }
}

const USAGE = /"usage":\s*\{/;
const FINISH = /"finish_reason":\s*"/;
const ENDED =
  /"type":\s*"(?:response\.(?:completed|incomplete|failed)|[a-z_.]+\.completed|transcript\.text\.done)"/;
const FAILED = /"type":\s*"(?:error|response\.failed)"|^\{\s*"error":\s*\{/;

function openAiSink(call: OpenCall, reading: Reading): TapSink {
  let isFirst = true;
  let isFailed = false;
  let isBackground = false;
  return {
    json(value) {
      const answer = value as Loose | null;
      isBackground = answer?.background === true && !answer.usage;
      merge(reading, readOpenAi(value));
      if (call.capturesPayloads) reading.answer = value;
    },
    line(data) {
      if (FAILED.test(data)) isFailed = true;
      if (!isFirst && !USAGE.test(data) && !FINISH.test(data) && !ENDED.test(data)) return;
      isFirst = false;
      merge(reading, readOpenAi(parse(data)));
    },
    end(how, error) {
      // A background response is recorded when it is fetched at its end.
      if (isBackground && how === 'done') return;
      endOf(call, reading, isFailed, how, error);
    },
  };
}

function anthropicSink(call: OpenCall, reading: Reading): TapSink {
  let isFailed = false;
  const note = (more: Reading) => {
    // Named by Anthropic's id, which Bedrock's price list does not have.
    if (call.request.provider === 'aws_bedrock') more.responseModel = undefined;
    merge(reading, more);
  };
  return {
    json(value) {
      note(readAnthropic(value));
      if (call.capturesPayloads) reading.answer = value;
    },
    line(data) {
      if (/"type":\s*"error"/.test(data)) isFailed = true;
      if (/"type":\s*"message_(?:start|delta)"/.test(data)) note(readAnthropic(parse(data), reading));
    },
    end: (how, error) => endOf(call, reading, isFailed, how, error),
  };
}

function endOf(
  call: OpenCall,
  reading: Reading,
  isFailed: boolean,
  how: 'done' | 'left' | 'failed',
  error: unknown,
): void {
  // Its reader leaves or aborts a stream because of the error event.
  if (isFailed) call.end('error', reading);
  else if (how === 'failed') call.fail(error, reading);
  else call.end(how === 'left' ? leftAs(reading) : 'ok', reading);
}

/** By the names of the client's class and of those it extends, for an address that names no provider. */
function providerOfClass(client: object): string | undefined {
  for (let type = Object.getPrototypeOf(client); type !== null; type = Object.getPrototypeOf(type)) {
    const name: unknown = type.constructor?.name;
    const known = typeof name === 'string' ? CLASSES.find(([part]) => name.includes(part)) : undefined;
    if (known !== undefined) return known[1];
  }
  return undefined;
}

/** The parameters of a call; an upload is a form, from which labels are taken out. */
function fieldsOf(body: unknown): Loose {
  if (!(body instanceof FormData)) return (typeof body === 'object' && body !== null ? body : {}) as Loose;
  const fields: Loose = { model: body.get('model'), prompt: body.get('prompt') };
  const labels: Loose = {};
  for (const name of [...body.keys()]) {
    const label = LABEL_OF_FORM.exec(name)?.[1];
    if (label === undefined) continue;
    labels[label] = body.get(name);
    body.delete(name);
  }
  if (Object.keys(labels).length > 0) fields[OPTION] = labels;
  return fields;
}

function onlyJson(json: (value: unknown) => void): TapSink {
  return { json, line: () => undefined, end: () => undefined };
}

function kindOf(response: Response, isStream: boolean): BodyKind {
  const contentType = response.headers.get('content-type') ?? '';
  if (isStream && contentType.startsWith('application/vnd.amazon.eventstream')) return 'frames';
  return isStream || contentType.includes('text/event-stream') ? 'events' : 'json';
}

function hostOf(url: string | undefined): string {
  if (url === undefined) return '';
  try {
    return new URL(url).hostname;
  } catch {
    return '';
  }
}
