import { clearSealed, type SealedSecret } from '../../db/access/sealedSecrets.js';
import { type ConnectionTurn, updateSyncOutcome } from '../../db/billing/billingConnections.js';
import type { Database } from '../../db/client.js';
import type { OrgDb } from '../../db/orgDb.js';
import { recordNotice } from '../../db/policies/alerts.js';
import { connectionBroken } from '../../domain/billing/connections.js';
import { orgDbOf } from '../useCaseDeps.js';

/** Adds a notice to the organization's feed when a connection has just broken; in the transaction of the change. */
export async function noticeIfBroken(inside: OrgDb, turn: ConnectionTurn | undefined): Promise<void> {
  if (turn?.status !== 'failing' || turn.statusBefore === 'failing') return;
  const error = { code: turn.lastErrorCode ?? '', message: turn.lastErrorMessage ?? '' };
  await recordNotice(inside, connectionBroken({ ...turn, error }, turn.turnedAtMicros));
}

/**
 * Stores how the last sync of a connection ended, and a notice when the connection breaks by it. `revisedOn` is set
 * when all days that may be restated were fetched.
 */
export async function recordSyncOutcome(
  orgDb: OrgDb,
  connectionId: string,
  outcome: { error: { code: string; message: string } | null; revisedOn: string | null },
): Promise<void> {
  await orgDb.transaction(async (inside) =>
    noticeIfBroken(inside, await updateSyncOutcome(inside, connectionId, outcome)),
  );
}

/** Marks a secret that no key decrypts as lost: the connection or webhook endpoint fails until it gets a new secret. */
export async function forgetSealed(database: Database, old: SealedSecret): Promise<void> {
  await orgDbOf({ database }, old.orgId).transaction(async (inside) =>
    noticeIfBroken(inside, await clearSealed(inside, old)),
  );
}
