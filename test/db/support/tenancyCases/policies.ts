import { bumpRulesRevision, lockOrganization } from '../../../../db/installation/organizations.js';
import type { OrgDb } from '../../../../db/orgDb.js';
import * as policies from '../../../../db/policies/policies.js';
import type { TenancyCase } from './tenancyCase.js';

const modelsOf = (marker: string): policies.PolicyToPut => ({
  type: 'approved_models',
  config: { models: [marker] },
  enabled: true,
  skipped: [],
});

/** What an organization's calls are judged by. */
export const POLICY_CASES: Record<string, TenancyCase> = {
  listPolicies: (db) => policies.listPolicies(db),
  putPolicy: (db) => policies.putPolicy(db, modelsOf('taken over'), 'key_b'),
  lockOrganization: (db) => db.transaction((inside) => lockOrganization(inside)),
  bumpRulesRevision: (db) => bumpRulesRevision(db),
};

/** Makes what the cases above ask for. */
export async function makePolicies(db: OrgDb, marker: string): Promise<void> {
  await policies.putPolicy(db, modelsOf(marker), marker);
}
