import { LRUCache } from 'lru-cache';

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
/** Organizations that are remembered; the others begin again. */
const ORGANIZATIONS_MAX = 10_000;

/**
 * The organizations whose batches may share a transaction with those of others. A shared transaction holds one statement
 * of each. So an organization takes part once its last batches needed no second one: no call was reported again, no
 * message about an alert was written, nothing was refused. After a failure it stores alone until it meets that again.
 */
export class SharingOrganizations {
  /** Batches of one statement since the last other one, by organization. */
  readonly #inRow = new LRUCache<string, number>({ max: ORGANIZATIONS_MAX });

  mayShare(orgId: string): boolean {
    return (this.#inRow.get(orgId) ?? 0) >= SINGLE_STATEMENTS_MIN;
  }

  /** Notes a stored batch: its number of statements, and how long it was prepared. */
  note(orgId: string, statements: number, preparedMs: number): void {
    if (statements > 1 || preparedMs > PREPARATION_MS_MAX) this.leave(orgId);
    else this.#inRow.set(orgId, (this.#inRow.get(orgId) ?? 0) + 1);
  }

  /** The organization's batches are stored alone from now on. */
  leave(orgId: string): void {
    this.#inRow.delete(orgId);
  }
}
