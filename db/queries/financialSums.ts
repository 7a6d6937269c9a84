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
    `select f.provider, f.provider_account_id, to_char(n.day, 'YYYY-MM') as month, f.kind = 'unexplained' as is_unexplained,
       f.status = 'confirmed' as is_confirmed, f.direction, f.blame, f.claimable, f.grade, f.provisional, f.critical,
       sum(n.impact_usd) as impact_usd
     from findings f join finding_days n on n.org_id = $1 and n.finding_id = f.id
     where f.org_id = $1 and f.status in ('open', 'confirmed') and (f.blame = 'provider' or f.kind = 'unexplained')
       and ($2::date is null or n.day >= $2::date) and ($3::date is null or n.day <= $3::date)
       and not exists (
         select from dispute_days d join disputes p on p.org_id = $1 and p.id = d.dispute_id
         where d.org_id = $1 and d.provider = f.provider and d.provider_account_id = f.provider_account_id and d.model = f.model
           and d.day = n.day and not d.live and (p.finding_id = f.id or (d.kind = f.kind and d.variant = f.variant)))
     group by 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11
     order by 3 desc, 1, 2`,
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
