import { Worker } from 'node:worker_threads';
import { DomainError } from '../../domain/errors.js';
import { errorOf, type FromThread, type ToThread } from './threadMessages.js';

/** Where nothing is built the sources themselves run, as everything does that runs from them. */
const IS_BUILT = !import.meta.url.endsWith('.ts');
const PROGRAM = new URL(`./bodyThread.${IS_BUILT ? 'js' : 'ts'}`, import.meta.url);
/** A thread does not take over the loader of its process. */
const LOAD_SOURCES = `import('tsx/esm/api').then(({ register }) => {
  register();
  return import(require('node:worker_threads').workerData);
});`;

/** What a thread may hold: the largest body and what becomes of it. */
const HEAP_MEBIBYTES_MAX = 1_024;
/** A body of which nothing is heard for so long is given up, and its thread with it. */
export const ANSWER_MS_MAX = 120_000;
const RETRY_AFTER_SECONDS = 10;

/** After these it waits for another body. */
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
      // Nothing in it needs a setting, and none of the secrets.
      env: {},
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MEBIBYTES_MAX },
    });
    // A process that has nothing else to do ends.
    this.#worker.unref();
    this.#worker.on('message', (message: FromThread) => this.#settle((pending) => pending.resolve(message)));
    this.#worker.on('error', (error) => this.#fail(causeOf(error)));
    this.#worker.on('exit', () => this.#fail(new Error('the thread that read the body ended')));
  }

  /** Whether it takes no more bodies. */
  get isDead(): boolean {
    return this.#isDead;
  }

  /** Whether the last body was not read to its end. */
  get isReading(): boolean {
    return this.#isReading;
  }

  /** The thread's answer. Errors: those of reading a body, payload_too_large and service_unavailable. */
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
