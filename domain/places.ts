import { DomainError } from './errors.js';

const BUSY_RETRY_SECONDS = 5;

/** Runs a limited number of tasks at once. Others wait in order, and are refused if too many wait. */
export class Places {
  readonly #waiting: (() => void)[] = [];
  readonly #waitingMax: number;
  #free: number;

  constructor(atOnce: number, waitingMax = Number.POSITIVE_INFINITY) {
    this.#free = atOnce;
    this.#waitingMax = waitingMax;
  }

  /** Error service_unavailable if too many tasks wait; the signal's reason if it aborts during the wait. */
  async use<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    signal?.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#wait(signal);
    try {
      return await work();
    } finally {
      // The place passes directly to the first waiting task, so that no later task can take it.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }

  #wait(signal: AbortSignal | undefined): Promise<void> {
    if (this.#waiting.length >= this.#waitingMax)
      throw new DomainError(
        'service_unavailable',
        'too many requests of this kind wait: ask again in a moment',
        {
          retryAfterSeconds: BUSY_RETRY_SECONDS,
        },
      );
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#waiting.splice(this.#waiting.indexOf(go), 1);
        reject(signal?.reason);
      };
      const go = () => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiting.push(go);
    });
  }
}
