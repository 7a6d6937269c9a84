/** So many at once; the others wait for their turn in the order in which they came. */
export class Places {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Does the work when there is a place. An aborted wait throws the signal's reason and takes none. */
  async hold<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    await this.#take(signal);
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      // The place goes from one to the other without being free in between.
      if (next) next();
      else this.#free += 1;
    }
  }

  async #take(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free -= 1;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const turn = () => {
        signal.removeEventListener('abort', leave);
        resolve();
      };
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(turn), 1);
        reject(signal.reason);
      };
      this.#waiting.push(turn);
      signal.addEventListener('abort', leave, { once: true });
    });
  }
}
