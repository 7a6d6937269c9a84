import { availableParallelism } from 'node:os';
import { setImmediate as letOthersRun } from 'node:timers/promises';
import type { MappedBatch } from '../../domain/events/event.js';
import type { MapContext } from '../../domain/events/itemFault.js';
import type { Provider } from '../../domain/providers.js';
import { type BodyKind, decodeBody } from './decodeBody.js';
import { unpackCall } from './packedCalls.js';
import { type FromThread, ThreadHandle } from './threadHandle.js';

/** Larger bodies are read by a thread: what one of this size may hold at worst takes a few tens of milliseconds. */
export const READ_IN_PLACE_BYTES_MAX = 524_288;
/** Larger ones are read in place one after the other, and others have their turn between two. */
const READ_AT_ONCE_BYTES_MAX = 16_384;
/** Bodies that are read by threads at once at most; others wait. One core is left to the API. */
export const THREADS_MAX = 4;
const THREADS = Math.max(1, Math.min(THREADS_MAX, availableParallelism() - 1));
/** A thread that has nothing to do for so long ends, and its memory with it. */
const IDLE_MS_MAX = 30_000;
/** Models whose provider is looked for between two pauses. */
const MODELS_A_TURN = 32;

export interface BodyToRead {
  kind: BodyKind;
  /** Not to be used afterwards: it may have been given to a thread. */
  bytes: Buffer;
  orgId: string;
  context: MapContext;
  /** UsageReport how many items there are before any is judged; what it throws ends the reading. */
  chargeItems(items: number): Promise<void>;
}

export interface BodyReaderLimits {
  threads?: number;
  answerMsMax?: number;
}

/**
 * Reads bodies of calls: small ones in place, others by a thread, so that whatever a body holds, other requests go on.
 * Organizations take turns at the threads.
 */
export class BodyReader {
  readonly #threads: number;
  readonly #answerMsMax: number | undefined;
  readonly #idle = new Map<ThreadHandle, NodeJS.Timeout>();
  readonly #all = new Set<ThreadHandle>();
  #lastTurn: Promise<void> = Promise.resolve();
  /** By organization. */
  readonly #waiting = new Map<string, ((thread: ThreadHandle) => void)[]>();

  constructor({ threads = THREADS, answerMsMax }: BodyReaderLimits = {}) {
    this.#threads = threads;
    this.#answerMsMax = answerMsMax;
  }

  /** Errors: those of decodeBody, of mapping and of `chargeItems`. */
  async read(body: BodyToRead): Promise<MappedBatch> {
    if (body.bytes.length <= READ_IN_PLACE_BYTES_MAX) {
      if (body.bytes.length > READ_AT_ONCE_BYTES_MAX) await this.#takeTurn();
      const decoded = decodeBody(body.kind, body.bytes);
      await body.chargeItems(decoded.items);
      return decoded.map(body.context);
    }
    const thread = await this.#take(body.orgId);
    try {
      return await readBy(thread, body);
    } finally {
      this.#giveBack(thread);
    }
  }

  /** Resolves in a turn of the event loop that no other body of such a size has. */
  #takeTurn(): Promise<void> {
    this.#lastTurn = this.#lastTurn.then(() => letOthersRun());
    return this.#lastTurn;
  }

  async close(): Promise<void> {
    for (const timer of this.#idle.values()) clearTimeout(timer);
    await Promise.all([...this.#all].map((thread) => thread.end()));
  }

  #take(orgId: string): Promise<ThreadHandle> {
    const [idle] = this.#idle;
    if (idle) {
      const [thread, timer] = idle;
      clearTimeout(timer);
      this.#idle.delete(thread);
      // One that ended while it had nothing to do.
      return Promise.resolve(thread.isDead ? this.#replace(thread) : thread);
    }
    if (this.#all.size < this.#threads) return Promise.resolve(this.#start());
    return new Promise((resolve) => {
      const waiting = this.#waiting.get(orgId);
      if (waiting) waiting.push(resolve);
      else this.#waiting.set(orgId, [resolve]);
    });
  }

  #start(): ThreadHandle {
    const thread = new ThreadHandle(this.#answerMsMax);
    this.#all.add(thread);
    return thread;
  }

  #replace(thread: ThreadHandle): ThreadHandle {
    this.#all.delete(thread);
    return this.#start();
  }

  #giveBack(thread: ThreadHandle): void {
    // The reader gave up: the state of the thread is unknown.
    if (thread.isReading) void thread.end();
    const next = this.#nextInLine();
    if (next) {
      next(thread.isDead ? this.#replace(thread) : thread);
      return;
    }
    if (thread.isDead) {
      this.#all.delete(thread);
      return;
    }
    const timer = setTimeout(() => {
      this.#idle.delete(thread);
      this.#all.delete(thread);
      void thread.end();
    }, IDLE_MS_MAX);
    timer.unref();
    this.#idle.set(thread, timer);
  }

  /** The longest waiting request of the organization whose turn it is. */
  #nextInLine(): ((thread: ThreadHandle) => void) | undefined {
    const first = this.#waiting.entries().next();
    if (first.done) return undefined;
    const [orgId, waiting] = first.value;
    const next = waiting.shift();
    this.#waiting.delete(orgId);
    // The others of the organization go to the end of the line.
    if (waiting.length > 0) this.#waiting.set(orgId, waiting);
    return next;
  }
}

async function readBy(thread: ThreadHandle, body: BodyToRead): Promise<MappedBatch> {
  const { kind, context, chargeItems } = body;
  const { nowMicros, oldestMicros } = context;
  const bytes = ownBytes(body.bytes);
  let answer = await thread.ask({ type: 'read', kind, bytes, nowMicros, oldestMicros }, [bytes.buffer]);
  if (answer.type !== 'items') throw unexpected(answer);
  try {
    await chargeItems(answer.items);
  } catch (error) {
    await thread.ask({ type: 'stop' });
    throw error;
  }
  const batch: MappedBatch = { calls: [], rejections: [], ignored: 0, links: [] };
  answer = await thread.ask({ type: 'next' });
  if (answer.type === 'models') {
    const providers = await inferProviders(answer.models, context);
    answer = await thread.ask({ type: 'providers', providers });
  }
  while (answer.type === 'part') {
    for (const call of answer.part.calls) batch.calls.push(unpackCall(call));
    batch.links.push(...answer.part.links);
    batch.rejections.push(...answer.part.rejections);
    // Others have their turn between two parts, however many wait.
    await letOthersRun();
    answer = await thread.ask({ type: 'next' });
  }
  if (answer.type !== 'done') throw unexpected(answer);
  batch.ignored = answer.ignored;
  return batch;
}

/** The bytes with a buffer of their own, which can be given away. */
function ownBytes(bytes: Buffer): Uint8Array<ArrayBuffer> {
  const { buffer, byteOffset, byteLength } = bytes;
  if (buffer instanceof ArrayBuffer && byteOffset === 0 && buffer.byteLength === byteLength)
    return new Uint8Array(buffer);
  return Uint8Array.from(bytes);
}

async function inferProviders(
  models: readonly string[],
  context: MapContext,
): Promise<(Provider | undefined)[]> {
  const providers: (Provider | undefined)[] = [];
  for (const model of models) {
    providers.push(context.inferProvider(model));
    if (providers.length % MODELS_A_TURN === 0) await letOthersRun();
  }
  return providers;
}

function unexpected(answer: FromThread): Error {
  return new Error(`the thread that reads bodies answered ${answer.type}`);
}
