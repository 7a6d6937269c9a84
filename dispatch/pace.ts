/**
 * Rest after work in the background, as a multiple of the time that the work took. Calls are stored at the same time, and
 * work without a pause doubles how long they wait (docs/benchmarks.md).
 */
const REST_OF_WORK = 3;

/** Divides work in the background into parts with rests between them. */
export class Pace {
  readonly #sleep: (ms: number) => Promise<void>;
  #startedMs = performance.now();

  constructor(sleep: (ms: number) => Promise<void>) {
    this.#sleep = sleep;
  }

  /** Begins the first part. */
  start(): void {
    this.#startedMs = performance.now();
  }

  /** Rests after a part, and begins the next one. */
  async rest(): Promise<void> {
    await this.#sleep((performance.now() - this.#startedMs) * REST_OF_WORK);
    this.start();
  }
}
