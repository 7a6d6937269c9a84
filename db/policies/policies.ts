import type { Policy } from '../../domain/policies/policy.js';
import { column, defineEntity } from '../entity.js';
import { bumpRulesRevision, lockOrganization } from '../installation/organizations.js';
import type { OrgDb } from '../orgDb.js';

export type StoredPolicy = Policy & { updatedAtMicros: bigint };

const POLICY = defineEntity<{ [K in keyof StoredPolicy]: unknown }>('policies', {
  id: column(),
  type: column('policy_type'),
  config: column(),
  enabled: column(),
  skipped: column(),
  updatedAtMicros: column(),
});

/** All policies of the organization, enabled or not, in the order of their first storing. */
export async function listPolicies(orgDb: OrgDb): Promise<StoredPolicy[]> {
  return orgDb.rows<StoredPolicy>(
    `select ${POLICY.columns} from policies where org_id = $1 order by id limit 100`,
    [orgDb.orgId],
    'policies_of_org',
  );
}

/** A policy to store; the database assigns the id. */
export type PolicyToPut = { [T in Policy['type']]: Omit<Extract<Policy, { type: T }>, 'id'> }[Policy['type']];

export interface PutPolicy {
  before: StoredPolicy | undefined;
  after: StoredPolicy;
  /** false: an equal policy was stored already, and nothing was written. */
  isChanged: boolean;
}

/** Replaces the policy of its type and increments the organization's revision. Call it in a transaction. */
export async function putPolicy(inside: OrgDb, policy: PolicyToPut, putBy: string): Promise<PutPolicy> {
  // Serialized: the next id is one more, and the audit log shows the former policy.
  await lockOrganization(inside);
  const standing = await listPolicies(inside);
  const before = standing.find(({ type }) => type === policy.type);
  const [written] = await inside.rows<StoredPolicy>(
    `insert into policies (org_id, id, policy_type, config, enabled, skipped, updated_by)
     values ($1, $2, $3, $4::jsonb, $5, $6::jsonb, $7)
     on conflict (org_id, policy_type) do update
       set config = excluded.config, enabled = excluded.enabled, skipped = excluded.skipped,
           updated_by = excluded.updated_by, updated_at = now()
       where (policies.config, policies.enabled, policies.skipped) is distinct from (excluded.config, excluded.enabled, excluded.skipped)
     returning ${POLICY.columns}`,
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
    return { before, after: written, isChanged: true };
  }
  return { before, after: before as StoredPolicy, isChanged: false };
}
