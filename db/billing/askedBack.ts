import { allotCredit, type ClaimedMonth } from '../../domain/claims/claimAmount.js';
import type { Pico } from '../../domain/money.js';
import type { AskedBack } from '../../domain/reconciliation/statement/statement.js';
import type { OrgDb } from '../orgDb.js';

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
