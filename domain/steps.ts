/** Work in short steps: it yields often, and the caller decides by the clock whether to pause. */
export type Steps<T> = Generator<undefined, T, undefined>;

export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value as T;
  }
}

/** Work of a step: one is about ten nanoseconds, so that a step takes well under a millisecond. */
const WORK_A_STEP = 32_768;

/** Counts work over many small loops, and says when a pause is due. */
export class Pace {
  #left = WORK_A_STEP;

  /** Whether to pause after this much more work. */
  isDue(work: number): boolean {
    this.#left -= work;
    if (this.#left > 0) return false;
    this.#left = WORK_A_STEP;
    return true;
  }
}
