import { type BillingFormat, factsOfFormat } from '../../domain/billing/sources.js';
import type { CountedCopy } from '../../domain/reconciliation/statement.js';
import type { OrgDb } from '../orgDb.js';
import { countedSourcesSql } from './billingRows.js';

interface CountedCopyRow {
  provider: string;
  account: string;
  day: string;
  source_id: string;
  filename: string;
  format: BillingFormat;
  fetched_at: bigint;
}

/** Which sources count for the costs of each account's day, in a half-open window of days. */
export async function listCountedCopies(
  orgDb: OrgDb,
  window: { provider: string | null; fromDay: string; toDay: string },
): Promise<CountedCopy[]> {
  const rows = await orgDb.rows<CountedCopyRow>(
    `select distinct c.provider, c.provider_account_id as account, c.day, c.source_id, s.filename, s.format, c.source_fetched_at as fetched_at
     from (${countedSourcesSql(
       `d.org_id = $1 and ($2::text is null or d.provider = $2) and d.day >= $3 and d.day < $4 and d.feed = 'cost'`,
     )}) c
     join billing_sources s on s.org_id = $1 and s.id = c.source_id
     order by c.provider, account, c.day, c.source_id`,
    [orgDb.orgId, window.provider, window.fromDay, window.toDay],
  );
  return rows.map((row) => ({
    provider: row.provider,
    accountId: row.account,
    day: row.day,
    sourceId: row.source_id,
    filename: row.filename,
    fetchedAtMicros: row.fetched_at,
    provisionalDays: factsOfFormat(row.format).provisionalDays,
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
