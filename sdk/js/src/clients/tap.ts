import { FrameReader } from './frames.js';

/** Reads along with the reader of a response: same chunks, same order, nothing held back and nothing read ahead. */

export interface TapSink {
  /** A whole JSON answer, before its reader gets it. */
  json(value: unknown): void;
  /** One event of a stream, or one line of a list: its data as text. */
  line(data: string): void;
  /** The body has ended: by itself, because its reader left, or by an error. */
  end(how: 'done' | 'left' | 'failed', error?: unknown): void;
}

/** `frames` are those of AWS's event stream. */
export type BodyKind = 'json' | 'events' | 'lines' | 'frames';

/** A longer answer is not read along, characters. */
const JSON_CHARS_MAX = 33_554_432;

/** Runs work that reads along: an error in it never reaches the application's call. */
export function quietly(work: () => void): void {
  try {
    work();
  } catch {
    // An answer of an unknown form is reported without the facts in it.
  }
}

/** Ends the call of a response that nobody reads, once the application has dropped it. */
const unread =
  typeof FinalizationRegistry === 'undefined'
    ? undefined
    : new FinalizationRegistry<TapSink>((sink) => quietly(() => sink.end('left')));

/** Changes the reading methods of this response; the response stays the same object. */
export function tapResponse(response: Response, kind: BodyKind, sink: TapSink): void {
  // The response, its copies and their bodies keep it, and nothing else does.
  const owner = {};
  unread?.register(owner, sink);
  tapCopy(response, kind, sink, owner);
}

function tapCopy(response: Response, kind: BodyKind, sink: TapSink, owner: object): void {
  const whole = (text: string) => {
    if (kind === 'json') {
      const value = parse(text);
      if (value !== undefined) sink.json(value);
    } else for (const line of text.split('\n')) feedLine(kind, line, sink);
    sink.end('done');
  };
  const wholeBytes = (bytes: Uint8Array) => {
    if (kind !== 'frames') return whole(new TextDecoder().decode(bytes));
    new FrameReader((event) => sink.line(event)).feed(bytes);
    sink.end('done');
  };
  define(response, 'json', async () => {
    const value = (await reading(Response.prototype.json.call(response), sink)) as unknown;
    quietly(() => sink.json(value));
    sink.end('done');
    return value;
  });
  define(response, 'text', async () => {
    // Decoded as text the bytes of frames would be lost.
    if (kind === 'frames') return new TextDecoder().decode(await response.arrayBuffer());
    const text = await reading(Response.prototype.text.call(response), sink);
    quietly(() => whole(text));
    return text;
  });
  define(response, 'arrayBuffer', async () => {
    const buffer = await reading(Response.prototype.arrayBuffer.call(response), sink);
    quietly(() => wholeBytes(new Uint8Array(buffer)));
    return buffer;
  });
  define(response, 'blob', async () => {
    const blob = await reading(Response.prototype.blob.call(response), sink);
    const buffer = await blob.arrayBuffer();
    quietly(() => wholeBytes(new Uint8Array(buffer)));
    return blob;
  });
  if ('bytes' in Response.prototype)
    define(response, 'bytes', async () => new Uint8Array(await response.arrayBuffer()));
  const { clone } = response;
  define(response, 'clone', () => {
    // Whichever of the two is read first ends the call.
    const copy = clone.call(response);
    tapCopy(copy, kind, sink, owner);
    return copy;
  });
  const readBody = bodyOf(response);
  let tapped: ReadableStream<Uint8Array> | null | undefined;
  Object.defineProperty(response, 'body', {
    configurable: true,
    enumerable: false,
    get() {
      if (tapped === undefined) {
        const body = readBody();
        tapped = body === null || body.locked ? body : tapBody(body, kind, sink, owner);
      }
      return tapped;
    },
  });
}

/** Reads the body of this response once `body` is changed. Workers have its getter in a class above `Response`. */
function bodyOf(response: Response): () => ReadableStream<Uint8Array> | null {
  for (let place: object | null = response; place !== null; place = Object.getPrototypeOf(place)) {
    const get = Object.getOwnPropertyDescriptor(place, 'body')?.get;
    if (get) return () => get.call(response) as ReadableStream<Uint8Array> | null;
  }
  const { body } = response;
  return () => body;
}

function define(response: Response, name: string, value: () => unknown): void {
  Object.defineProperty(response, name, { configurable: true, enumerable: false, writable: true, value });
}

/** A sink of lines alone. */
export function onlyLines(line: (data: string) => void): TapSink {
  return { line, json: () => undefined, end: () => undefined };
}

async function reading<T>(promise: Promise<T>, sink: TapSink): Promise<T> {
  try {
    return await promise;
  } catch (error) {
    sink.end('failed', error);
    throw error;
  }
}

/**
 * The same chunks as a new stream.
 *
 * @param owner is not dropped before the stream is
 */
export function tapBody(
  body: ReadableStream<Uint8Array>,
  kind: BodyKind,
  sink: TapSink,
  owner?: object,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const frames = kind === 'frames' ? new FrameReader((event) => sink.line(event)) : undefined;
  const lines = new Lines(kind, sink);
  const source = {
    owner,
    async pull(controller: ReadableStreamDefaultController<Uint8Array>) {
      try {
        const { done, value } = await reader.read();
        if (done) {
          quietly(() => lines.finish());
          sink.end('done');
          controller.close();
        } else {
          if (frames) quietly(() => frames.feed(value));
          else lines.feed(value);
          controller.enqueue(value);
        }
      } catch (error) {
        sink.end('failed', error);
        controller.error(error);
      }
    },
    cancel(reason?: unknown) {
      sink.end('left');
      return reader.cancel(reason);
    },
  };
  return new ReadableStream<Uint8Array>(source, { highWaterMark: 0 });
}

/** Cuts chunks into lines, wherever the chunks end. */
class Lines {
  readonly #kind: BodyKind;
  readonly #sink: TapSink;
  readonly #decoder = new TextDecoder();
  #rest = '';

  constructor(kind: BodyKind, sink: TapSink) {
    this.#kind = kind;
    this.#sink = sink;
  }

  feed(chunk: Uint8Array): void {
    if (this.#rest.length > JSON_CHARS_MAX) return;
    quietly(() => {
      const text = this.#rest + this.#decoder.decode(chunk, { stream: true });
      if (this.#kind === 'json') {
        this.#rest = text;
        return;
      }
      let from = 0;
      for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n', from)) {
        feedLine(this.#kind, text.slice(from, end), this.#sink);
        from = end + 1;
      }
      this.#rest = text.slice(from);
    });
  }

  finish(): void {
    if (this.#kind === 'json') {
      const value = parse(this.#rest);
      if (value !== undefined) this.#sink.json(value);
    } else if (this.#rest !== '') feedLine(this.#kind, this.#rest, this.#sink);
  }
}

function feedLine(kind: BodyKind, line: string, sink: TapSink): void {
  if (kind === 'events') {
    if (line.startsWith('data:')) sink.line(line.slice(5).trim());
  } else if (line.trim() !== '') sink.line(line);
}

/** Undefined: no JSON. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
