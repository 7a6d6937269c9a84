import { decimalFromPico, type Pico } from '../../domain/money.js';
import type { Severity } from '../../domain/policies/alerts/alert.js';
import type { PolicyType } from '../../domain/policies/policy.js';
import type { OrgDb, SqlValue } from '../orgDb.js';
import { type FindingFilter, findingConditions } from '../reconciliation/findings.js';

/** A policy that calls have broken and nobody has looked into: its open alerts, added up. */
export interface BrokenPolicy {
  policyId: number;
  policyType: PolicyType;
  alerts: number;
  /** Of these nobody knows what the call costs: not in the sum, and not known to be free. */
  alertsWithoutCost: number;
  /** What the calls cost when the alerts were made. */
  impactPico: Pico;
  /** Null where they are of several. */
  provider: string | null;
  model: string | null;
  firstMicros: bigint;
  lastMicros: bigint;
  severity: Severity;
  createdAtMicros: bigint;
}

interface BrokenPolicyRow {
  policy_id: number;
  policy_type: PolicyType;
  alerts: number;
  without_cost: number;
  impact_usd: Pico;
  provider: string | null;
  model: string | null;
  first_at: bigint;
  last_at: bigint;
  severity: Severity;
  created_at: bigint;
}

/** Policies with open alerts, the most expensive first, then by number. At most one a type of policy. */
export async function listBrokenPolicies(
  orgDb: OrgDb,
  filter: { provider?: string | undefined; minImpactPico?: Pico | undefined } = {},
): Promise<BrokenPolicy[]> {
  const values: SqlValue[] = [
    orgDb.orgId,
    filter.provider ?? null,
    decimalFromPico(filter.minImpactPico ?? 0n),
  ];
  const rows = await orgDb.rows<BrokenPolicyRow>(
    `select max(policy_id) as policy_id, policy_type, count(*)::bigint as alerts, (count(*) - count(cost_usd))::bigint as without_cost,
       coalesce(sum(cost_usd), 0) as impact_usd, min(event_timestamp) as first_at, max(event_timestamp) as last_at,
       case when min(provider) = max(provider) and count(provider) = count(*) then min(provider) end as provider,
       case when min(model) = max(model) and count(model) = count(*) then min(model) end as model,
       (array['low', 'medium', 'high'])[max(array_position(array['low', 'medium', 'high'], severity))] as severity,
       min(created_at) as created_at
     from alerts
     where org_id = $1 and kind = 'policy' and status = 'open' and merged_into is null and ($2::text is null or provider = $2)
     group by policy_type
     having coalesce(sum(cost_usd), 0) >= $3::numeric
     order by impact_usd desc, policy_id`,
    values,
  );
  return rows.map((row) => ({
    policyId: row.policy_id,
    policyType: row.policy_type,
    alerts: row.alerts,
    alertsWithoutCost: row.without_cost,
    impactPico: row.impact_usd,
    provider: row.provider,
    model: row.model,
    firstMicros: row.first_at,
    lastMicros: row.last_at,
    severity: row.severity,
    createdAtMicros: row.created_at,
  }));
}

/** The size of all findings that a filter lets through, whichever way they are, and how many they are. */
export async function sumFindings(
  orgDb: OrgDb,
  filter: FindingFilter,
): Promise<{ findings: number; sizePico: Pico }> {
  const values: SqlValue[] = [orgDb.orgId];
  const rows = await orgDb.rows<{ findings: number; size_usd: Pico }>(
    `select count(*)::bigint as findings, coalesce(sum(abs(f.impact_usd)), 0) as size_usd
     from findings f where ${findingConditions(filter, values).join(' and ')}`,
    values,
  );
  return { findings: rows[0]?.findings ?? 0, sizePico: rows[0]?.size_usd ?? 0n };
}
