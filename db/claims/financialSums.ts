import type { FindingSum } from '../../domain/claims/financialSummary.js';
import { decimalFromPico, type Pico } from '../../domain/money.js';
import type { Severity } from '../../domain/policies/alert.js';
import type { PolicyType } from '../../domain/policies/policy.js';
import { BLAMES } from '../../domain/reconciliation/engine/index.js';

import { GRADES } from '../../domain/reconciliation/matching/cells.js';
import type { OrgDb, SqlValue } from '../orgDb.js';
import { type FindingFilter, findingConditions } from '../reconciliation/findings.js';

/** SQL of a word's index in its list. */
const numberOf = (column: string, words: readonly string[]) =>
  `case ${column} ${words.map((word, at) => `when '${word}' then ${at}`).join(' ')} end`;

/** All traits of finding `f` in one number, which groups faster than nine columns: six bits, grade, blame. */
const TRAITS = `(f.kind = 'unexplained')::int + 2 * (f.status = 'confirmed')::int + 4 * (f.direction = 'overcharge')::int
         + 8 * f.claimable::int + 16 * f.provisional::int + 32 * f.critical::int
         + 64 * ${numberOf('f.grade', GRADES)} + 256 * ${numberOf('f.blame', BLAMES)}`;

function fromTraits(traits: number): Omit<FindingSum, 'provider' | 'accountId' | 'month' | 'impactPico'> {
  const grade = GRADES[(traits >> 6) & 3];
  const blame = BLAMES[traits >> 8];
  if (grade === undefined || blame === undefined) throw new RangeError(`no traits of a finding: ${traits}`);
  return {
    isUnexplained: (traits & 1) !== 0,
    isConfirmed: (traits & 2) !== 0,
    direction: (traits & 4) !== 0 ? 'overcharge' : 'undercharge',
    claimable: (traits & 8) !== 0,
    provisional: (traits & 16) !== 0,
    critical: (traits & 32) !== 0,
    grade,
    blame,
  };
}

const MONTH_OF = (day: string) => `date_trunc('month', ${day}::timestamp)`;
const IN_WINDOW = '($2::date is null or day >= $2::date) and ($3::date is null or day <= $3::date)';
const GROUP = `f.provider, f.provider_account_id, ${TRAITS} as traits`;

/**
 * Sums of the findings that count, as parts by finding and month. A finding within one month and within the window is
 * its own sum; of the others each day is read. Days of resolved disputes are subtracted: those of the finding, and
 * those of the same explanation under another finding's id. All but single days are read from covering indexes
 * (findings_counted, dispute_days_settled).
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
       select ${GROUP}, ${MONTH_OF('f.first_day')} as month, f.impact_usd from counted f where f.is_whole
       union all
       select ${GROUP}, ${MONTH_OF('n.day')}, n.impact_usd
       from counted f cross join lateral (
         select day, impact_usd from finding_days where org_id = $1 and finding_id = f.id and ${IN_WINDOW} offset 0) n
       where not f.is_whole
       union all
       select ${GROUP}, ${MONTH_OF('n.day')}, -n.impact_usd
       from settled s join counted f on f.id = s.finding_id cross join lateral (
         select day, impact_usd from finding_days
         where org_id = $1 and finding_id = s.finding_id and finding_days.day = s.day and ${IN_WINDOW} offset 0) n)`;

/**
 * Findings' days in [fromDay, toDay] (inclusive; null: open) by traits, without dismissed, gone, own and resolved ones.
 */
export async function sumFindingDays(
  orgDb: OrgDb,
  window: { fromDay: string | null; toDay: string | null },
): Promise<FindingSum[]> {
  const rows = await orgDb.rows<
    Pick<FindingSum, 'provider' | 'accountId' | 'month' | 'impactPico'> & { traits: number }
  >(
    `with ${PARTS}
     select provider, provider_account_id as "accountId", to_char(p.month, 'YYYY-MM') as month, traits, sum(impact_usd) as "impactPico"
     from parts p
     group by p.month, provider, provider_account_id, traits
     order by p.month desc, provider, provider_account_id, traits`,
    [orgDb.orgId, window.fromDay, window.toDay],
  );
  return rows.map(({ traits, ...sum }) => ({ ...sum, ...fromTraits(traits) }));
}

/**
 * Sums explained findings on the window's days by account, undercharges deducted, without dismissed, gone and invoices'
 * ones.
 */
export async function sumExplainedDays(
  orgDb: OrgDb,
  window: { fromDay: string; toDay: string },
): Promise<{ provider: string; accountId: string; impactPico: Pico }[]> {
  return orgDb.rows(
    `select f.provider, f.provider_account_id as "accountId", sum(n.impact_usd) as "impactPico"
     from findings f cross join lateral (
       select impact_usd from finding_days
       where org_id = $1 and finding_id = f.id and day >= $2::date and day <= $3::date offset 0) n
     where f.org_id = $1 and f.status in ('open', 'confirmed') and f.kind <> 'unexplained' and f.invoice_id is null
       and f.last_day >= $2::date and f.first_day <= $3::date
     group by f.provider, f.provider_account_id order by f.provider, f.provider_account_id`,
    [orgDb.orgId, window.fromDay, window.toDay],
  );
}

/** A policy with open alerts, and their sums. */
export interface BrokenPolicy {
  policyId: number;
  policyType: PolicyType;
  alerts: number;
  alertsWithoutCost: number;
  /** The cost of the calls when the alerts were created. */
  impactPico: Pico;
  /** null: the calls have several providers. */
  provider: string | null;
  model: string | null;
  firstMicros: bigint;
  lastMicros: bigint;
  severity: Severity;
  createdAtMicros: bigint;
}

/** Policies with open alerts, most expensive first, then by number. At most one for each policy type. */
export async function listBrokenPolicies(
  orgDb: OrgDb,
  filter: { provider?: string | undefined; minImpactPico?: Pico | undefined } = {},
): Promise<BrokenPolicy[]> {
  const values: SqlValue[] = [
    orgDb.orgId,
    filter.provider ?? null,
    decimalFromPico(filter.minImpactPico ?? 0n),
  ];
  return orgDb.rows<BrokenPolicy>(
    `select max(policy_id) as "policyId", policy_type as "policyType", count(*)::bigint as alerts,
       (count(*) - count(cost_usd))::bigint as "alertsWithoutCost", coalesce(sum(cost_usd), 0) as "impactPico",
       min(event_timestamp) as "firstMicros", max(event_timestamp) as "lastMicros",
       case when min(provider) = max(provider) and count(provider) = count(*) then min(provider) end as provider,
       case when min(model) = max(model) and count(model) = count(*) then min(model) end as model,
       (array['low', 'medium', 'high'])[max(array_position(array['low', 'medium', 'high'], severity))] as severity,
       min(created_at) as "createdAtMicros"
     from alerts
     where org_id = $1 and kind = 'policy' and status = 'open' and merged_into is null and ($2::text is null or provider = $2)
     group by policy_type
     having coalesce(sum(cost_usd), 0) >= $3::numeric
     order by "impactPico" desc, "policyId"`,
    values,
  );
}

/** The absolute dollars and the number of all findings that match a filter. */
export async function sumFindings(
  orgDb: OrgDb,
  filter: FindingFilter,
): Promise<{ findings: number; sizePico: Pico }> {
  const values: SqlValue[] = [orgDb.orgId];
  const [sum] = await orgDb.rows<{ findings: number; sizePico: Pico }>(
    `select count(*)::bigint as findings, coalesce(sum(abs(f.impact_usd)), 0) as "sizePico"
     from findings f where ${findingConditions(filter, values).join(' and ')}`,
    values,
  );
  return sum ?? { findings: 0, sizePico: 0n };
}
