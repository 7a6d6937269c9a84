import { connectionBroken } from '../../domain/billing/connectionBroken.js';
import type { ConnectionStatus } from '../../domain/billing/connections.js';
import type { Provider } from '../../domain/providers.js';
import type { OrgDb } from '../orgDb.js';
import { recordNotice } from '../policies/notices.js';

/** What a statement gives that may turn the status of a connection, named `c`, whose row stood as `before`. */
export const TURN_COLUMNS = `c.id, c.name, c.provider, c.provider_account_id, c.last_synced_at, c.status, before.status as status_before,
  c.last_error_code, c.last_error_message, now() as turned_at`;

export interface TurnRow {
  id: string;
  name: string;
  provider: Provider;
  provider_account_id: string;
  last_synced_at: bigint | null;
  status: ConnectionStatus;
  status_before: ConnectionStatus;
  last_error_code: string | null;
  last_error_message: string | null;
  turned_at: bigint;
}

/** Tells the organization that a connection broke, where it has just broken; in the transaction of the statement. */
export async function tellIfBroken(inside: OrgDb, row: TurnRow | undefined): Promise<void> {
  if (row?.status !== 'failing' || row.status_before === 'failing') return;
  const connection = {
    id: row.id,
    name: row.name,
    provider: row.provider,
    accountId: row.provider_account_id,
    lastSyncedAtMicros: row.last_synced_at,
    error: { code: row.last_error_code ?? '', message: row.last_error_message ?? '' },
  };
  await recordNotice(inside, connectionBroken(connection, row.turned_at));
}

/**
 * Notes how the last sync ended, and tells the organization when the connection breaks by it. `revisedOn` is set when
 * the days that may be restated were asked for as a whole.
 */
export async function recordSyncOutcome(
  orgDb: OrgDb,
  connectionId: string,
  outcome: { error: { code: string; message: string } | null; revisedOn: string | null },
): Promise<void> {
  await orgDb.transaction(async (inside) => {
    const [row] = await inside.rows<TurnRow>(
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
    await tellIfBroken(inside, row);
  });
}
