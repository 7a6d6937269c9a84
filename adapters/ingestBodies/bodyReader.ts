import { availableParallelism } from 'node:os';
import { setImmediate as letOthersRun } from 'node:timers/promises';
import type { MappedBatch } from '../../domain/events/event.js';
import type { MapContext } from '../../domain/events/itemFault.js';
import type { Provider } from '../../domain/providers.js';
import { type BodyKind, decodeBody } from './decodeBody.js';
import { unpackCall } from './packedCalls.js';
import { type FromThread, ThreadHandle } from './threadHandle.js';

/** Larger bodies are read by a thread: reading this size takes a few tens of milliseconds at worst. */
export const READ_IN_PLACE_BYTES_MAX = 524_288;
/** Larger ones are read in place one at a time, with pauses for other requests between two. */
const READ_AT_ONCE_BYTES_MAX = 16_384;
/** Most bodies that threads read at once; others wait. One core is left to the API. */
export const THREADS_MAX = 4;
const THREADS = Math.max(1, Math.min(THREADS_MAX, availableParallelism() - 1));
/** Milliseconds without work after which a thread ends and releases its memory. */
const IDLE_MS_MAX = 30_000;
/** Models whose provider is looked up between two pauses. */
const MODELS_A_TURN = 32;

export interface BodyToRead {
  kind: BodyKind;
  /** Must not be used afterwards: the buffer may have moved to a thread. */
  bytes: Buffer;
  orgId: string;
  context: MapContext;
  /** Receives the number of items before any is judged; an error of it stops the reading. */
  chargeItems(items: number): void | Promise<void>;
}

export interface BodyReaderLimits {
  threads?: number;
  answerMsMax?: number;
}

/**
 * Reads bodies of calls: small ones in place, others by a thread, so that no body blocks other requests. Organizations
 * take turns at the threads.
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
      const charged = body.chargeItems(decoded.items);
      if (charged) await charged;
      return decoded.map(body.context);
    }
    const thread = await this.#take(body.orgId);
    try {
      return await readBy(thread, body);
    } finally {
      this.#giveBack(thread);
    }
  }

  /** Resolves in a turn of the event loop without another body of such a size. */
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
      // The thread may have ended while it was idle.
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
    // The reader gave up, so the thread's state is unknown.
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

  /** The longest waiting request of the next organization. */
  #nextInLine(): ((thread: ThreadHandle) => void) | undefined {
    const first = this.#waiting.entries().next();
    if (first.done) return undefined;
    const [orgId, waiting] = first.value;
    const next = waiting.shift();
    this.#waiting.delete(orgId);
    // The organization's other requests wait at the end of the line.
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
    addObservations(batch, answer.part.observations);
    if (answer.part.points !== undefined) batch.points = [...(batch.points ?? []), ...answer.part.points];
    // Other requests run between two parts, however many wait.
    await letOthersRun();
    answer = await thread.ask({ type: 'next' });
  }
  if (answer.type !== 'done') throw unexpected(answer);
  batch.ignored = answer.ignored;
  return batch;
}

function addObservations(batch: MappedBatch, more: MappedBatch['observations']): void {
  if (more === undefined) return;
  batch.observations ??= { itemIds: [], parts: [] };
  for (const id of more.itemIds) batch.observations.itemIds.push(id);
  batch.observations.parts.push(...more.parts);
}

/** The bytes in a separate buffer, which can be transferred. */
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
