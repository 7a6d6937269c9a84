/** Work in short steps: the generator yields often, and the caller decides by the clock whether to pause. */
export type Steps<T> = Generator<undefined, T, undefined>;

export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value as T;
  }
}

/** Units of work in a step. A unit takes about ten nanoseconds, so a step takes well under a millisecond. */
const WORK_A_STEP = 32_768;

/** Adds up the work of many small loops and reports when a pause is due. */
export class Pace {
  #left = WORK_A_STEP;

  /** Adds `work` units; true if a pause is due. */
  isDue(work: number): boolean {
    this.#left -= work;
    if (this.#left > 0) return false;
    this.#left = WORK_A_STEP;
    return true;
  }
}
