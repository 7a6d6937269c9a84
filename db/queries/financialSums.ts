import type { FindingSum } from '../../domain/financial/summary.js';
import type { Pico } from '../../domain/money.js';
import type { OrgDb } from '../orgDb.js';

interface SumRow extends Omit<FindingSum, 'accountId' | 'isUnexplained' | 'isConfirmed' | 'impactPico'> {
  provider_account_id: string;
  is_unexplained: boolean;
  is_confirmed: boolean;
  impact_usd: Pico;
}

/**
 * The days of findings in [fromDay, toDay] (both inclusive; null: without a bound), added up by all that decides what they
 * count as. Not among them: what somebody has dismissed, what later runs no longer find, the organization's own mistakes
 * and days of disputes that are resolved.
 */
export async function sumFindingDays(
  orgDb: OrgDb,
  window: { fromDay: string | null; toDay: string | null },
): Promise<FindingSum[]> {
  const rows = await orgDb.rows<SumRow>(
    `with resolved as (
       select p.finding_id, d.day
       from disputes p join dispute_days d on d.org_id = $1 and d.dispute_id = p.id where p.org_id = $1 and not d.live
       union
       select f.id, d.day
       from dispute_days d join findings f on f.org_id = $1 and f.provider = d.provider and f.provider_account_id = d.provider_account_id
         and f.model = d.model and f.kind = d.kind and f.variant = d.variant
       where d.org_id = $1 and not d.live),
     months as (
       select n.finding_id, date_trunc('month', n.day)::date as month, sum(n.impact_usd) as impact_usd
       from finding_days n
       where n.org_id = $1 and ($2::date is null or n.day >= $2::date) and ($3::date is null or n.day <= $3::date)
         and not exists (select from resolved r where r.finding_id = n.finding_id and r.day = n.day)
       group by 1, 2)
     select f.provider, f.provider_account_id, to_char(m.month, 'YYYY-MM') as month, f.kind = 'unexplained' as is_unexplained,
       f.status = 'confirmed' as is_confirmed, f.direction, f.blame, f.claimable, f.grade, f.provisional, f.critical,
       sum(m.impact_usd) as impact_usd
     from findings f join months m on m.finding_id = f.id
     where f.org_id = $1 and f.status in ('open', 'confirmed') and (f.blame = 'provider' or f.kind = 'unexplained')
     group by f.provider, f.provider_account_id, m.month, 4, 5, f.direction, f.blame, f.claimable, f.grade, f.provisional, f.critical
     order by m.month desc, f.provider, f.provider_account_id`,
    [orgDb.orgId, window.fromDay, window.toDay],
  );
  return rows.map(({ provider_account_id, is_unexplained, is_confirmed, impact_usd, ...rest }) => ({
    ...rest,
    accountId: provider_account_id,
    isUnexplained: is_unexplained,
    isConfirmed: is_confirmed,
    impactPico: impact_usd,
  }));
}
