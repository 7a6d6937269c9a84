import { findBillingConnection } from '../../db/billing/billingConnections.js';
import { type NewSyncRun, SYNC_RUNS, type SyncRun } from '../../db/billing/syncRuns.js';
import type { OrgDb } from '../../db/orgDb.js';
import type { SyncTrigger } from '../../domain/billing/connections.js';
import { DomainError } from '../../domain/errors.js';
import { openRun, type RunOpening } from '../runs/openRun.js';

/** A new sync of a connection. Error not_found when the connection has ended. */
export function syncOpening(connectionId: string, trigger: SyncTrigger): RunOpening<NewSyncRun> {
  return {
    wanted: { connectionId, trigger },
    open: { connectionId },
    async assertOpenable(orgDb) {
      if (!(await findBillingConnection(orgDb, connectionId)))
        throw new DomainError('not_found', 'there is no billing connection with this id');
    },
  };
}

/** The sync that follows changed settings, or the one that is open. Errors: not_found, service_unavailable. */
export async function openSettingsSync(
  orgDb: OrgDb,
  connectionId: string,
  nowMicros: bigint,
): Promise<SyncRun> {
  return (await openRun(orgDb, SYNC_RUNS, syncOpening(connectionId, 'settings'), { nowMicros })).run;
}
