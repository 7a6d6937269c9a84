import type { OrgDb } from '../orgDb.js';
import { joinKeyAccount, keyAccount } from './keyAccounts.js';
import { readFoldedXid } from './usage.js';
import { usageLogSql } from './usageLog.js';

/**
 * Time of the first call that each account (by the call or its provider key; '' where none is known) of a biller has ended, imported history counted:
 * a bill from before it cannot be compared. A call that another biller turned out to bill does not count. Reads all cells of the organization; ask once, not for each day.
 */
export async function listObservedSince(orgDb: OrgDb, provider: string): Promise<Map<string, bigint>> {
  const rows = await orgDb.transaction(
    async (inside) =>
      inside.rows<{ account: string; since: bigint }>(
        `select account, min(since) as since from (
           select ${keyAccount('cell')} as account, min(first_seen) as since
           from billing_cells cell ${joinKeyAccount('cell', '$2')}
           where cell.org_id = $1 and billed_by = $2 and cell.status <> 'blocked' and calls > 0 group by 1
           union all
           select ${keyAccount('log')}, min(end_at) from (${usageLogSql('$3')}) log ${joinKeyAccount('log', '$2')}
           where billed_by = $2 and log.status <> 'blocked' group by 1 having sum(sign) > 0
         ) parts group by account`,
        [inside.orgId, provider, await readFoldedXid(inside)],
      ),
    'repeatable read',
  );
  return new Map(rows.map((row) => [row.account, row.since]));
}
