import { findBillingConnection } from '../../db/billing/billingConnections.js';
import { findOpenSyncRun, insertSyncRun, type SyncRun } from '../../db/billing/syncRuns.js';
import type { OrgDb } from '../../db/orgDb.js';
import type { SyncTrigger } from '../../domain/billing/connections.js';
import { DomainError } from '../../domain/errors.js';
import { openRun } from '../runs/openRun.js';
import type { OpenRunLimit } from '../runs/openRunLimit.js';

/**
 * A new sync, or the one of the connection that is open; by `limit` where one is given. Errors:
 * not_found when the connection has ended, rate_limited, service_unavailable.
 */
export async function openSync(
  orgDb: OrgDb,
  wanted: { id: string; connectionId: string; trigger: SyncTrigger },
  record?: (inside: OrgDb, run: SyncRun) => Promise<void>,
  limit?: OpenRunLimit | undefined,
): Promise<{ run: SyncRun; existing: boolean }> {
  return openRun<SyncRun>(orgDb, {
    insert: (inside) => insertSyncRun(inside, wanted),
    ...(limit ? { limit } : {}),
    message: 'billing_sync.start',
    ...(record ? { record } : {}),
    async findOpen() {
      const open = await findOpenSyncRun(orgDb, wanted.connectionId);
      if (!open && !(await findBillingConnection(orgDb, wanted.connectionId)))
        throw new DomainError('not_found', 'there is no billing connection with this id');
      return open;
    },
  });
}
