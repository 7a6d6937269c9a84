import { Worker } from 'node:worker_threads';
import { DomainError, type ErrorCode, type FieldIssue } from '../../domain/errors.js';
import type { CallRecord, MappedBatch } from '../../domain/events/event.js';
import { jsonCharsBound } from '../../domain/events/jsonValues.js';
import { PROMPT_SCAN_CHARS } from '../../domain/policies/policy.js';
import type { Provider } from '../../domain/providers.js';
import type { BodyKind } from './decodeBody.js';
import { type PackedCall, packCall } from './packedCalls.js';

/** Without a build the sources run. */
const IS_BUILT = !import.meta.url.endsWith('.ts');
const PROGRAM = new URL(`./bodyThread.${IS_BUILT ? 'js' : 'ts'}`, import.meta.url);
/** A thread does not inherit the loader of its process. */
const LOAD_SOURCES = `import('tsx/esm/api').then(({ register }) => {
  register();
  return import(require('node:worker_threads').workerData);
});`;

/** Heap limit of a thread, MiB: the largest body and its results. */
const HEAP_MEBIBYTES_MAX = 1_024;
/** Milliseconds of silence after which a body and its thread are given up. */
export const ANSWER_MS_MAX = 120_000;
const RETRY_AFTER_SECONDS = 10;

/** After these messages the thread waits for another body. */
const LAST_ANSWERS = new Set<FromThread['type']>(['done', 'stopped', 'failed']);

interface Pending {
  resolve(message: FromThread): void;
  reject(error: Error): void;
}

/** A thread that reads bodies, one at a time. */
export class ThreadHandle {
  readonly #worker: Worker;
  readonly #answerMsMax: number;
  #pending: Pending | undefined;
  #isDead = false;
  #isReading = false;

  constructor(answerMsMax = ANSWER_MS_MAX) {
    this.#answerMsMax = answerMsMax;
    this.#worker = new Worker(IS_BUILT ? PROGRAM : LOAD_SOURCES, {
      eval: !IS_BUILT,
      workerData: PROGRAM.href,
      execArgv: [],
      // The thread needs no settings and gets no secrets.
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MEBIBYTES_MAX },
    });
    // The thread does not keep the process alive.
    this.#worker.unref();
    this.#worker.on('message', (message: FromThread) => this.#settle((pending) => pending.resolve(message)));
    this.#worker.on('error', (error) => this.#fail(causeOf(error)));
    this.#worker.on('exit', () => this.#fail(new Error('the thread that read the body ended')));
  }

  /** Whether it accepts no more bodies. */
  get isDead(): boolean {
    return this.#isDead;
  }

  /** Whether the last body was not read to its end. */
  get isReading(): boolean {
    return this.#isReading;
  }

  /**
   * Sends a body; returns the thread's answer. Errors: those of reading a body, payload_too_large and
   * service_unavailable.
   */
  async ask(
    message: ToThread,
    transfer: ArrayBuffer[] = [],
  ): Promise<Exclude<FromThread, { type: 'failed' }>> {
    this.#isReading = true;
    const answer = await this.#exchange(message, transfer);
    this.#isReading = !LAST_ANSWERS.has(answer.type);
    if (answer.type === 'failed') throw errorOf(answer.failure);
    return answer;
  }

  #exchange(message: ToThread, transfer: ArrayBuffer[]): Promise<FromThread> {
    if (this.#isDead) return Promise.reject(new Error('the thread has ended'));
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#fail(tooSlow());
        void this.end();
      }, this.#answerMsMax);
      const settled =
        <T>(settle: (value: T) => void) =>
        (value: T) => {
          clearTimeout(timer);
          settle(value);
        };
      this.#pending = { resolve: settled(resolve), reject: settled(reject) };
      this.#worker.postMessage(message, transfer);
    });
  }

  #settle(settle: (pending: Pending) => void): void {
    const pending = this.#pending;
    this.#pending = undefined;
    if (pending) settle(pending);
  }

  #fail(error: Error): void {
    this.#isDead = true;
    this.#settle((pending) => pending.reject(error));
  }

  async end(): Promise<void> {
    this.#isDead = true;
    await this.#worker.terminate();
  }
}

function causeOf(error: unknown): Error {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ERR_WORKER_OUT_OF_MEMORY') return tooMuch();
  return error instanceof Error ? error : new Error(String(error));
}

function tooMuch(): DomainError {
  return new DomainError(
    'payload_too_large',
    'the body holds more values than can be read at once; send it in parts',
  );
}

function tooSlow(): DomainError {
  return new DomainError('service_unavailable', 'the body takes too long to read; send it again, in parts', {
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}

/** Messages between the API and a thread that reads bodies; each is answered by one. */

export type ToThread =
  | { type: 'read'; kind: BodyKind; bytes: Uint8Array; nowMicros: bigint; oldestMicros: bigint }
  | { type: 'providers'; providers: readonly (Provider | undefined)[] }
  | { type: 'next' }
  /** The body is no longer wanted. */
  | { type: 'stop' };

export type FromThread =
  | { type: 'items'; items: number }
  /** Models whose calls name no provider. */
  | { type: 'models'; models: readonly string[] }
  | { type: 'part'; part: BatchPart }
  | { type: 'done'; ignored: number }
  | { type: 'stopped' }
  | { type: 'failed'; failure: Failure };

export interface Failure {
  /** undefined: an internal error. */
  code: ErrorCode | undefined;
  message: string;
  issues: readonly FieldIssue[];
}

/** A part of a mapped batch, small enough to be processed without a noticeable pause. */
export interface BatchPart extends Pick<MappedBatch, 'links' | 'rejections' | 'observations' | 'points'> {
  calls: readonly PackedCall[];
}

const CALLS_A_PART = 256;
const LINKS_A_PART = 2_048;
const OBSERVATIONS_A_PART = 256;
/** Characters of call JSON in one part. */
const CHARS_A_PART = 1_048_576;

export function* partsOf({
  calls,
  links,
  rejections,
  observations,
  points = [],
}: MappedBatch): Generator<BatchPart> {
  let from = 0;
  let chars = 0;
  for (const [at, call] of calls.entries()) {
    chars += charsOf(call);
    const next = at + 1;
    if (next < calls.length && next - from < CALLS_A_PART && chars < CHARS_A_PART) continue;
    yield { calls: calls.slice(from, next).map(packCall), links: [], rejections: [] };
    from = next;
    chars = 0;
  }
  for (let at = 0; at < links.length; at += LINKS_A_PART)
    yield { calls: [], links: links.slice(at, at + LINKS_A_PART), rejections: [] };
  for (let at = 0; at < rejections.length; at += LINKS_A_PART)
    yield { calls: [], links: [], rejections: rejections.slice(at, at + LINKS_A_PART) };
  for (let at = 0; at < points.length; at += LINKS_A_PART)
    yield { calls: [], links: [], rejections: [], points: points.slice(at, at + LINKS_A_PART) };
  if (observations === undefined) return;
  const { itemIds, parts } = observations;
  yield { calls: [], links: [], rejections: [], observations: { itemIds, parts: [] } };
  for (let at = 0; at < parts.length; at += OBSERVATIONS_A_PART) {
    const some = parts.slice(at, at + OBSERVATIONS_A_PART);
    yield { calls: [], links: [], rejections: [], observations: { itemIds: [], parts: some } };
  }
}

function charsOf({ payload, toolInput, toolOutput, service, prompts }: CallRecord): number {
  const carried = [payload, toolInput, toolOutput, service];
  const said = prompts().reduce((sum, text) => sum + Math.min(text.length, PROMPT_SCAN_CHARS), 0);
  return carried.reduce<number>((sum, json) => sum + jsonCharsBound(json, CHARS_A_PART), said);
}

export function failureOf(error: unknown): Failure {
  if (error instanceof DomainError) {
    const { code, message, issues } = error;
    return { code, message, issues };
  }
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { code: undefined, message, issues: [] };
}

export function errorOf({ code, message, issues }: Failure): Error {
  return code === undefined ? new Error(message) : new DomainError(code, message, { issues });
}
