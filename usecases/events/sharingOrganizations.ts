import { LRUCache } from 'lru-cache';

/**
 * Batches in a row that an organization must have stored by one statement each before it shares transactions. Another
 * batch in a shared transaction makes all organizations store again, so one in some hundred batches is too many.
 */
export const SINGLE_STATEMENTS_MIN = 30;
/** Organizations that are remembered; the others begin again. */
const ORGANIZATIONS_MAX = 10_000;

/**
 * The organizations whose batches may share a transaction with those of others. A shared transaction holds one statement
 * of each. So an organization takes part once its last batches needed no second one: no call was reported again, no
 * alert sent, nothing refused. After a failure it stores by itself, until it has proved itself anew.
 */
export class SharingOrganizations {
  /** Batches of one statement since the last other one, by organization. */
  readonly #inRow = new LRUCache<string, number>({ max: ORGANIZATIONS_MAX });

  mayShare(orgId: string): boolean {
    return (this.#inRow.get(orgId) ?? 0) >= SINGLE_STATEMENTS_MIN;
  }

  /** Notes a batch that the organization stored by a transaction of its own. */
  note(orgId: string, statements: number): void {
    if (statements > 1) this.leave(orgId);
    else this.#inRow.set(orgId, (this.#inRow.get(orgId) ?? 0) + 1);
  }

  /** The organization's batches are stored alone from now on. */
  leave(orgId: string): void {
    this.#inRow.delete(orgId);
  }
}
