import { joinKeyAccount, keyAccount } from '../billing/keyAccounts.js';
import type { OrgDb } from '../orgDb.js';
import { readFoldedXid } from '../usage/usage.js';
import { usageLogSql } from '../usage/usageLog.js';

/**
 * Time of the first call that each account (by the call or its provider key; '' where none is known) of a biller has ended, imported history counted:
 * a bill from before it cannot be compared. A call that another biller turned out to bill does not count. Reads all cells of the organization; ask once, not for each day.
 */
export async function listObservedSince(orgDb: OrgDb, provider: string): Promise<Map<string, bigint>> {
  const rows = await orgDb.transaction(
    async (inside) =>
      inside.rows<{ account: string; since: bigint }>(
        // By key first: its account is then looked up once and not for each cell.
        `select ${keyAccount('keys')} as account, min(since) as since from (
           select provider_account_id, provider_key_id, min(first_seen) as since from billing_cells
           where org_id = $1 and billed_by = $2 and status <> 'blocked' and calls > 0 group by 1, 2
           union all
           select provider_account_id, provider_key_id, min(end_at) from (${usageLogSql('$3')}) log
           where billed_by = $2 and status <> 'blocked' group by 1, 2 having sum(sign) > 0
         ) keys ${joinKeyAccount('keys', '$2')} group by 1`,
        [inside.orgId, provider, await readFoldedXid(inside)],
      ),
    'repeatable read',
  );
  return new Map(rows.map((row) => [row.account, row.since]));
}
