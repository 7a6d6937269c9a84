import type { FindingSum } from '../../domain/financial/summary.js';
import type { Pico } from '../../domain/money.js';
import type { OrgDb } from '../orgDb.js';

interface SumRow extends Omit<FindingSum, 'accountId' | 'isUnexplained' | 'isConfirmed' | 'impactPico'> {
  provider_account_id: string;
  is_unexplained: boolean;
  is_confirmed: boolean;
  impact_usd: Pico;
}

const MONTH_OF = (day: string) => `date_trunc('month', ${day}::timestamp)`;
const IN_WINDOW = '($2::date is null or day >= $2::date) and ($3::date is null or day <= $3::date)';
/** All that decides what days of a finding `f` count as. */
const CLASS = `f.provider, f.provider_account_id, f.kind = 'unexplained' as is_unexplained, f.status = 'confirmed' as is_confirmed,
         f.direction, f.blame, f.claimable, f.grade, f.provisional, f.critical`;

/**
 * What the findings that count come to, as parts of a finding and a month. A finding that lies in one month and in the
 * window is its own sum; of the others each day is read. Days whose dispute is resolved are taken off again: those that
 * were disputed of the finding, and those of the same explanation of the day under another finding's id. Everything but
 * single days is read from indexes that hold nothing else (findings_counted, dispute_days_settled).
 */
const PARTS = `counted as not materialized (
       select f.*, ${MONTH_OF('f.first_day')} = ${MONTH_OF('f.last_day')}
         and ($2::date is null or f.first_day >= $2::date) and ($3::date is null or f.last_day <= $3::date) as is_whole
       from findings f
       where f.org_id = $1 and f.status in ('open', 'confirmed') and (f.blame = 'provider' or f.kind = 'unexplained')
         and ($2::date is null or f.last_day >= $2::date) and ($3::date is null or f.first_day <= $3::date)),
     settled as (
       select p.finding_id, d.day
       from dispute_days d join disputes p on p.org_id = $1 and p.id = d.dispute_id where d.org_id = $1 and not d.live
       union
       select f.id, d.day
       from dispute_days d join counted f on f.provider = d.provider and f.provider_account_id = d.provider_account_id
         and f.model = d.model and f.kind = d.kind and f.variant = d.variant and f.first_day <= d.day and f.last_day >= d.day
       where d.org_id = $1 and not d.live),
     parts as (
       select ${CLASS}, ${MONTH_OF('f.first_day')} as month, f.impact_usd from counted f where f.is_whole
       union all
       select ${CLASS}, ${MONTH_OF('n.day')}, n.impact_usd
       from counted f cross join lateral (
         select day, impact_usd from finding_days where org_id = $1 and finding_id = f.id and ${IN_WINDOW} offset 0) n
       where not f.is_whole
       union all
       select ${CLASS}, ${MONTH_OF('n.day')}, -n.impact_usd
       from settled s join counted f on f.id = s.finding_id cross join lateral (
         select day, impact_usd from finding_days
         where org_id = $1 and finding_id = s.finding_id and finding_days.day = s.day and ${IN_WINDOW} offset 0) n)`;

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
    `with ${PARTS}
     select provider, provider_account_id, to_char(p.month, 'YYYY-MM') as month, is_unexplained, is_confirmed, direction, blame, claimable,
       grade, provisional, critical, sum(impact_usd) as impact_usd
     from parts p
     group by p.month, provider, provider_account_id, is_unexplained, is_confirmed, direction, blame, claimable, grade, provisional, critical
     order by p.month desc, provider, provider_account_id`,
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
