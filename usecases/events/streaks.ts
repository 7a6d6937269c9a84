import { LRUCache } from 'lru-cache';

/** Organizations that are remembered; the others begin again. */
const ORGANIZATIONS_MAX = 10_000;

/** Counts each organization's last batches in a row of which something holds. */
export class Streaks {
  readonly #batches = new LRUCache<string, number>({ max: ORGANIZATIONS_MAX });
  readonly #least: number;

  /** @param least batches in a row that make a long streak */
  constructor(least: number) {
    this.#least = least;
  }

  isLong(orgId: string): boolean {
    return (this.#batches.get(orgId) ?? 0) >= this.#least;
  }

  /** Notes whether it holds of the organization's next batch. */
  note(orgId: string, holds: boolean): void {
    if (holds) this.#batches.set(orgId, (this.#batches.get(orgId) ?? 0) + 1);
    else this.#batches.delete(orgId);
  }
}
