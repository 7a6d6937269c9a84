import type { OrgDb } from '../../db/orgDb.js';
import { insertOutboxMessage, type OutboxKind } from '../../db/runs/outbox.js';
import { DomainError } from '../../domain/errors.js';
import { insertWithinLimit, type OpenRunLimit } from './openRunLimit.js';

/** Looks for a run that ends between finding it open and reading it. */
const OPEN_ATTEMPTS = 5;
const RETRY_AFTER_SECONDS = 2;

export interface RunOpening<R extends { id: string }> {
  /** Stores the run; undefined while another one stands in its way, which a unique index decides. */
  insert(inside: OrgDb): Promise<R | undefined>;
  /** How many of its kind may be open at once; absent: any number. */
  limit?: OpenRunLimit;
  /** What starts it. */
  message: OutboxKind;
  /** The run that stands in its way. */
  findOpen(): Promise<R | undefined>;
  /** What else belongs to a new run's beginning, such as its row in the audit log: the last of the transaction. */
  record?(inside: OrgDb, run: R): Promise<void>;
}

/**
 * A new run, stored with the message that starts it, or the open one. Errors: rate_limited, service_unavailable, and
 * what the opening's own steps say.
 */
export async function openRun<R extends { id: string }>(
  orgDb: OrgDb,
  opening: RunOpening<R>,
): Promise<{ run: R; existing: boolean }> {
  for (let attempt = 0; attempt < OPEN_ATTEMPTS; attempt += 1) {
    const run = await orgDb.transaction(async (inside) => {
      const inserted = await insertWithinLimit(inside, opening.limit, () => opening.insert(inside));
      if (inserted) {
        await insertOutboxMessage(inside, opening.message, inserted.id);
        await opening.record?.(inside, inserted);
      }
      return inserted;
    });
    if (run) return { run, existing: false };
    const open = await opening.findOpen();
    if (open) return { run: open, existing: true };
  }
  throw new DomainError(
    'service_unavailable',
    'runs of this kind begin and end faster than one can be opened; try again',
    { retryAfterSeconds: RETRY_AFTER_SECONDS },
  );
}
