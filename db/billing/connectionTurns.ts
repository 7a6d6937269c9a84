import type { ConnectionStatus } from '../../domain/billing/connections.js';
import type { Provider } from '../../domain/providers.js';
import { column, defineEntity } from '../entity.js';
import type { OrgDb } from '../orgDb.js';

/** A connection after a statement that may have changed its status. */
export interface ConnectionTurn {
  id: string;
  name: string;
  provider: Provider;
  accountId: string;
  lastSyncedAtMicros: bigint | null;
  status: ConnectionStatus;
  statusBefore: ConnectionStatus;
  lastErrorCode: string | null;
  lastErrorMessage: string | null;
  turnedAtMicros: bigint;
}

/** For a statement that names the connection `c` and its row as it was `before`. */
const TURN = defineEntity<ConnectionTurn>('billing_connections', {
  id: column('c.id'),
  name: column('c.name'),
  provider: column('c.provider'),
  accountId: column('c.provider_account_id'),
  lastSyncedAtMicros: column('c.last_synced_at'),
  status: column('c.status'),
  statusBefore: column('before.status'),
  lastErrorCode: column('c.last_error_code'),
  lastErrorMessage: column('c.last_error_message'),
  turnedAtMicros: column('now()'),
});
export const TURN_COLUMNS = TURN.columns;

/** Stores how the last sync ended; undefined when the connection has ended. */
export async function updateSyncOutcome(
  inside: OrgDb,
  connectionId: string,
  outcome: { error: { code: string; message: string } | null; revisedOn: string | null },
): Promise<ConnectionTurn | undefined> {
  const [turn] = await inside.rows<ConnectionTurn>(
    `update billing_connections c set
       status = case when c.status = 'paused' then 'paused' when $3::text is null then 'active' else 'failing' end,
       last_synced_at = case when $3::text is null then now() else c.last_synced_at end,
       last_failed_at = case when $3::text is null then c.last_failed_at else now() end,
       last_error_code = $3, last_error_message = $4, revised_on = coalesce($5::date, c.revised_on)
     from (select status from billing_connections where org_id = $1 and id = $2 for update) before
     where c.org_id = $1 and c.id = $2 and c.removed_at is null
     returning ${TURN_COLUMNS}`,
    [
      inside.orgId,
      connectionId,
      outcome.error?.code ?? null,
      outcome.error?.message.slice(0, 2_000) ?? null,
      outcome.revisedOn,
    ],
  );
  return turn;
}
