import { type BillingFormat, provisionalDaysOf } from '../../domain/billing/sources.js';
import { allotCredit, type ClaimedMonth } from '../../domain/claims/claimAmount.js';
import type { Pico } from '../../domain/money.js';
import type { AskedBack } from '../../domain/reconciliation/statement/statement.js';
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

/**
 * What was asked back of the days of a month (`YYYY-MM`), by provider and account: what is disputed of them now, and what
 * claims over them brought. A claim's credit falls on its months in proportion to what was claimed of each.
 */
export async function listAskedBack(orgDb: OrgDb, month: string): Promise<AskedBack[]> {
  const asked = new Map<string, AskedBack>();
  const of = (provider: string, accountId: string): AskedBack => {
    const key = JSON.stringify([provider, accountId]);
    const known = asked.get(key) ?? { provider, accountId, disputedPico: 0n, creditedPico: 0n };
    asked.set(key, known);
    return known;
  };
  for (const row of await listDisputed(orgDb, month))
    of(row.provider, row.accountId).disputedPico += row.impactPico;
  const claims = new Map<string, { claim: CreditedMonth; months: ClaimedMonth[] }>();
  for (const row of await listCredited(orgDb, month)) {
    const known = claims.get(row.claimId) ?? { claim: row, months: [] };
    known.months.push({ month: row.month, impactPico: row.impactPico });
    claims.set(row.claimId, known);
  }
  for (const { claim, months } of claims.values())
    of(claim.provider, claim.accountId).creditedPico +=
      allotCredit(claim.creditCents, months).get(month) ?? 0n;
  return [...asked.values()].sort((a, b) =>
    a.provider === b.provider ? (a.accountId < b.accountId ? -1 : 1) : a.provider < b.provider ? -1 : 1,
  );
}

interface DisputedSum {
  provider: string;
  accountId: string;
  impactPico: Pico;
}

const IN_MONTH = `d.day >= ($2 || '-01')::date and d.day < (($2 || '-01')::date + interval '1 month')::date`;

async function listDisputed(orgDb: OrgDb, month: string): Promise<DisputedSum[]> {
  return orgDb.rows<DisputedSum>(
    `select d.provider, d.provider_account_id as "accountId", sum(d.impact_usd) as "impactPico"
     from dispute_days d where d.org_id = $1 and d.live and ${IN_MONTH}
     group by d.provider, d.provider_account_id`,
    [orgDb.orgId, month],
  );
}

interface CreditedMonth extends DisputedSum {
  claimId: string;
  creditCents: number;
  month: string;
}

/** Of claims that were credited and have a day in the month: all their months. */
async function listCredited(orgDb: OrgDb, month: string): Promise<CreditedMonth[]> {
  return orgDb.rows<CreditedMonth>(
    `with credited as (
       select distinct c.id, c.provider, c.provider_account_id, c.credit_issued_cents
       from claims c join disputes p on p.org_id = $1 and p.claim_id = c.id
       join dispute_days d on d.org_id = $1 and d.dispute_id = p.id
       where c.org_id = $1 and c.status in ('credit_issued', 'partial') and ${IN_MONTH})
     select c.id as "claimId", c.provider, c.provider_account_id as "accountId", c.credit_issued_cents as "creditCents",
       to_char(d.day, 'YYYY-MM') as month, sum(d.impact_usd) as "impactPico"
     from credited c join disputes p on p.org_id = $1 and p.claim_id = c.id
     join dispute_days d on d.org_id = $1 and d.dispute_id = p.id
     group by c.id, c.provider, c.provider_account_id, c.credit_issued_cents, to_char(d.day, 'YYYY-MM')
     order by c.id, month`,
    [orgDb.orgId, month],
  );
}
