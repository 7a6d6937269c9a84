/** Lets so many pieces of work go on at once; the others wait for their turn, in the order in which they came. */
export class Gate {
  #free: number;
  readonly #waiting: (() => void)[] = [];

  constructor(width: number) {
    this.#free = width;
  }

  async pass<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      // Whoever waits takes the place over, so nobody who comes now slips in before.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}
