import type { SyncTrigger } from '../domain/billing/connections.js';
import { DomainError } from '../domain/errors.js';
import type { OrgDb } from './orgDb.js';
import { findBillingConnection } from './queries/billingConnections.js';
import { insertOutboxMessage } from './queries/outbox.js';
import { findOpenSyncRun, insertSyncRun, type SyncRun } from './queries/syncRuns.js';

/** Looks for a sync that ends between finding it open and reading it. */
const OPEN_ATTEMPTS = 5;
const RETRY_AFTER_SECONDS = 2;

/**
 * A new sync, with the message that starts it, or the one of the connection that is open: the unique index decides
 * which. Errors: not_found when the connection has ended, service_unavailable.
 */
export async function openSync(
  orgDb: OrgDb,
  wanted: { id: string; connectionId: string; trigger: SyncTrigger },
): Promise<{ run: SyncRun; existing: boolean }> {
  for (let attempt = 0; attempt < OPEN_ATTEMPTS; attempt += 1) {
    const run = await orgDb.transaction(async (inside) => {
      const inserted = await insertSyncRun(inside, wanted);
      if (inserted) await insertOutboxMessage(inside, 'billing_sync.start', inserted.id);
      return inserted;
    });
    if (run) return { run, existing: false };
    const open = await findOpenSyncRun(orgDb, wanted.connectionId);
    if (open) return { run: open, existing: true };
    if (!(await findBillingConnection(orgDb, wanted.connectionId)))
      throw new DomainError('not_found', 'there is no billing connection with this id');
  }
  throw new DomainError(
    'service_unavailable',
    'syncs begin and end faster than one can be opened; try again',
    {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
    },
  );
}
