import { Streaks } from './streaks.js';

/**
 * Batches in a row that an organization must have stored by one statement each before it shares transactions. Another
 * batch in a shared transaction makes all organizations store again, so one in a hundred batches is too many.
 */
export const SINGLE_STATEMENTS_MIN = 30;
/**
 * Longest preparation of a batch that may share, milliseconds, because other organizations wait for it: a hundred calls
 * take 2, and patterns that are searched in many prompts much more.
 */
export const PREPARATION_MS_MAX = 50;
/**
 * The organizations whose batches may share a transaction with those of others. A shared transaction holds one statement
 * of each. So an organization takes part once its last batches needed no second one: no call was reported again, no
 * message about an alert was written, nothing was refused. After a failure it stores alone until it meets that again.
 */
export class SharingOrganizations {
  readonly #singles = new Streaks(SINGLE_STATEMENTS_MIN);

  mayShare(orgId: string): boolean {
    return this.#singles.isLong(orgId);
  }

  /** Notes a stored batch: its number of statements, and how long it was prepared. */
  note(orgId: string, statements: number, preparedMs: number): void {
    this.#singles.note(orgId, statements === 1 && preparedMs <= PREPARATION_MS_MAX);
  }

  /** The organization's batches are stored alone from now on. */
  leave(orgId: string): void {
    this.#singles.note(orgId, false);
  }
}
