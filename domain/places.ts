import { DomainError } from './errors.js';

const BUSY_RETRY_SECONDS = 5;

/** Lets so many pieces of work go on at once; the others wait in their order, and are refused where too many wait. */
export class Places {
  readonly #waiting: (() => void)[] = [];
  readonly #waitingMax: number;
  #free: number;

  constructor(atOnce: number, waitingMax = Number.POSITIVE_INFINITY) {
    this.#free = atOnce;
    this.#waitingMax = waitingMax;
  }

  /** Error service_unavailable where too many wait; the signal's reason where it is aborted while the work waits. */
  async use<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
    signal?.throwIfAborted();
    if (this.#free > 0) this.#free -= 1;
    else await this.#wait(signal);
    try {
      return await work();
    } finally {
      // Whoever waits takes the place over, so nobody who comes now slips in before.
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
