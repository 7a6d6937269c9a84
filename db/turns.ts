import { setImmediate as letOthersRun } from 'node:timers/promises';
import type { Steps } from '../domain/steps.js';

/** Milliseconds of computing before waiting requests get their turn. */
const TURN_MS = 8;

/** Lets waiting requests run from time to time during long computations. */
export class Turns {
  #since = performance.now();

  isOver(): boolean {
    return performance.now() - this.#since >= TURN_MS;
  }

  async next(): Promise<void> {
    await letOthersRun();
    this.#since = performance.now();
  }
}

/** Runs all steps, and lets others run between them. */
export async function inTurns<T>(steps: Steps<T>): Promise<T> {
  const turns = new Turns();
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value as T;
    if (turns.isOver()) await turns.next();
  }
}
