import type { Policy, PolicyType } from '../../domain/policies/policy.js';
import { bumpRulesRevision, lockOrganization } from '../installation/organizations.js';
import type { OrgDb } from '../orgDb.js';

export type StoredPolicy = Policy & { updatedAtMicros: bigint };

interface PolicyRow {
  id: number;
  policy_type: PolicyType;
  config: unknown;
  enabled: boolean;
  skipped: unknown;
  updated_at: bigint;
}

/** SQL of a policy's columns, in no order. */
const COLUMNS = 'id, policy_type, config, enabled, skipped, updated_at';

/** What was checked when it was put is not checked again: only `putPolicy` writes these rows. */
function fromPolicyRow(row: PolicyRow): StoredPolicy {
  return {
    id: row.id,
    type: row.policy_type,
    config: row.config,
    enabled: row.enabled,
    skipped: row.skipped,
    updatedAtMicros: row.updated_at,
  } as StoredPolicy;
}

/** Every policy of the organization, enabled or not, in the order in which they were first put. */
export async function listPolicies(orgDb: OrgDb): Promise<StoredPolicy[]> {
  const rows = await orgDb.rows<PolicyRow>(
    `select ${COLUMNS} from policies where org_id = $1 order by id limit 100`,
    [orgDb.orgId],
    'policies_of_org',
  );
  return rows.map(fromPolicyRow);
}

/** A policy to be put: the id is the database's to give. */
export type PolicyToPut = { [T in Policy['type']]: Omit<Extract<Policy, { type: T }>, 'id'> }[Policy['type']];

export interface PutPolicy {
  before: StoredPolicy | undefined;
  after: StoredPolicy;
  /** False where it stood like that already: nothing was written. */
  isChanged: boolean;
}

/**
 * Makes the policy of its type or replaces it. What changes holds for every call that is stored after the commit, on
 * every instance: the organization's revision moves in the same transaction.
 */
export async function putPolicy(orgDb: OrgDb, policy: PolicyToPut, putBy: string): Promise<PutPolicy> {
  return orgDb.transaction(async (inside) => {
    // One put after the other: the next id is one more, and what was there before is what the log tells.
    await lockOrganization(inside);
    const standing = await listPolicies(inside);
    const before = standing.find(({ type }) => type === policy.type);
    const [written] = await inside.rows<PolicyRow>(
      `insert into policies (org_id, id, policy_type, config, enabled, skipped, updated_by)
       values ($1, $2, $3, $4::jsonb, $5, $6::jsonb, $7)
       on conflict (org_id, policy_type) do update
         set config = excluded.config, enabled = excluded.enabled, skipped = excluded.skipped,
             updated_by = excluded.updated_by, updated_at = now()
         where (policies.config, policies.enabled, policies.skipped) is distinct from (excluded.config, excluded.enabled, excluded.skipped)
       returning ${COLUMNS}`,
      [
        inside.orgId,
        before?.id ?? Math.max(0, ...standing.map(({ id }) => id)) + 1,
        policy.type,
        JSON.stringify(policy.config),
        policy.enabled,
        JSON.stringify(policy.skipped),
        putBy,
      ],
    );
    if (written) {
      await bumpRulesRevision(inside);
      return { before, after: fromPolicyRow(written), isChanged: true };
    }
    return { before, after: before as StoredPolicy, isChanged: false };
  });
}
