import { bumpRulesRevision, lockOrganization } from '../../../../db/installation/organizations.js';
import type { OrgDb } from '../../../../db/orgDb.js';
import * as policies from '../../../../db/policies/policies.js';
import { patternId } from '../../../../domain/policies/patternAutomata.js';
import { getWrapperPatterns } from '../../../../usecases/policies/patternTables.js';
import { previewPolicy, recordPreview, savePolicy } from '../../../../usecases/policies/policies.js';
import { anAuthor, type TenancyCase } from './tenancyCase.js';

const modelsOf = (marker: string): policies.PolicyToPut => ({
  type: 'approved_models',
  config: { models: [marker] },
  enabled: true,
  skipped: [],
});

const TAKEN_OVER = { type: 'approved_models', config: { models: ['taken over'] } } as const;

/** Functions of an organization's policies. */
export const POLICY_CASES: Record<string, TenancyCase> = {
  listPolicies: (db) => policies.listPolicies(db),
  putPolicy: (db) => policies.putPolicy(db, modelsOf('taken over'), 'key_b'),
  // The answer has hashes of the patterns alone.
  getWrapperPatterns: async (db, { marker }) =>
    (await getWrapperPatterns(db)).patterns.map(({ id }) => (id === patternId(marker) ? marker : id)),
  savePolicy: (db, { marker }) => savePolicy(db, TAKEN_OVER, true, anAuthor(marker)),
  previewPolicy: (db) => previewPolicy(db, TAKEN_OVER, true, 1_780_000_000_000_000n),
  recordPreview: (db, { marker }) =>
    recordPreview(
      db,
      {
        type: 'approved_models',
        result: { events: 0, flagged: 0, byDay: [], samples: [] } as never,
        skipped: [],
        known: undefined,
      },
      anAuthor(marker),
    ),
  lockOrganization: (db) => db.transaction((inside) => lockOrganization(inside)),
  bumpRulesRevision: (db) => bumpRulesRevision(db),
};

/** Creates the data of the cases above. */
export async function makePolicies(db: OrgDb, marker: string): Promise<void> {
  await policies.putPolicy(db, modelsOf(marker), marker);
  const patterns = {
    type: 'banned_patterns',
    config: { regexes: [marker] },
    enabled: true,
    skipped: [],
  } as const;
  await policies.putPolicy(db, { ...patterns, skipped: [] }, marker);
}
