import { type BillingFormat, provisionalDaysOf } from '../../domain/billing/sources.js';
import type { CountedCopy } from '../../domain/reconciliation/statement/statementCoverage.js';
import type { OrgDb } from '../orgDb.js';
import { countedSourcesSql } from './billingRows.js';

interface CountedCopyRow {
  provider: string;
  account: string;
  day: string;
  kind: 'file' | 'api';
  source_id: string;
  name: string;
  format: BillingFormat;
  is_final: boolean;
  told_at: bigint;
}

/**
 * Which sources count for the costs of each account's day, in a half-open window of days: a file by itself, everything
 * that a connection fetched as that connection.
 */
export async function listCountedCopies(
  orgDb: OrgDb,
  window: { provider: string | null; fromDay: string; toDay: string },
): Promise<CountedCopy[]> {
  const rows = await orgDb.rows<CountedCopyRow>(
    `select c.provider, c.provider_account_id as account, c.day, s.kind, coalesce(s.connection_id, s.id) as source_id,
       coalesce(n.name, s.filename) as name, s.format, bool_and(coalesce(c.is_final, false)) as is_final, min(c.told_at) as told_at
     from (${countedSourcesSql(
       `d.org_id = $1 and ($2::text is null or d.provider = $2) and d.day >= $3 and d.day < $4 and d.feed = 'cost'`,
     )}) c
     cross join lateral (select * from billing_sources where org_id = $1 and id = c.source_id offset 0) s
     left join lateral (select name from billing_connections where org_id = $1 and id = s.connection_id offset 0) n on true
     group by 1, 2, 3, 4, 5, 6, 7 order by 1, 2, 3, 5`,
    [orgDb.orgId, window.provider, window.fromDay, window.toDay],
  );
  return rows.map((row) => ({
    provider: row.provider,
    accountId: row.account,
    day: row.day,
    kind: row.kind,
    sourceId: row.source_id,
    name: row.name,
    toldAtMicros: row.told_at,
    provisionalDays: provisionalDaysOf([row.format], row.is_final),
  }));
}

/** Accounts with a bill for any day of a half-open window. */
export async function listBilledAccountNames(
  orgDb: OrgDb,
  window: { fromDay: string; toDay: string },
): Promise<{ provider: string; accountId: string }[]> {
  const rows = await orgDb.rows<{ provider: string; account: string }>(
    `select distinct provider, provider_account_id as account from billing_days
     where org_id = $1 and feed = 'cost' and day >= $2 and day < $3 order by 1, 2`,
    [orgDb.orgId, window.fromDay, window.toDay],
  );
  return rows.map((row) => ({ provider: row.provider, accountId: row.account }));
}

/** The first and the last day of a provider for which there is a bill; undefined without one. */
export async function findBilledSpan(
  orgDb: OrgDb,
  provider: string,
): Promise<{ firstDay: string; lastDay: string } | undefined> {
  const rows = await orgDb.rows<{ first_day: string | null; last_day: string | null }>(
    `select min(day) as first_day, max(day) as last_day from billing_days where org_id = $1 and provider = $2 and feed = 'cost'`,
    [orgDb.orgId, provider],
  );
  const [row] = rows;
  return row?.first_day && row.last_day ? { firstDay: row.first_day, lastDay: row.last_day } : undefined;
}
