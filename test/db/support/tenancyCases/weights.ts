import type { OrgDb } from '../../../../db/orgDb.js';
import * as weightSets from '../../../../db/reconciliation/weightSets.js';
import { learnWeights } from '../../../../domain/reconciliation/weights/learn.js';
import { DEFAULT_WEIGHTS } from '../../../../domain/reconciliation/weights/weightSet.js';
import { readWeights } from '../../../../usecases/reconciliation/readRuns.js';
import { ratedDraft, recomputeWeights } from '../../../../usecases/reconciliation/recomputeWeights.js';
import { storeClaim } from '../../../support/claims.js';
import type { TenancyCase } from './tenancyCase.js';

const LEARNED = learnWeights([], DEFAULT_WEIGHTS, 0n);
const aSet = (version: number): weightSets.StoredWeightSet => ({
  ...{ version, learned: LEARNED, rescored: [], madeAtMicros: 1_790_000_000_000_000n },
});

/** Functions of weights and outcomes. */
export const WEIGHT_CASES: Record<string, TenancyCase> = {
  findWeightSet: (db) => weightSets.findWeightSet(db),
  readWeights: (db) => readWeights(db, { limit: 10, offset: 0 }),
  currentWeights: (db) => weightSets.currentWeights(db),
  insertWeightSet: async (db) => {
    await weightSets.insertWeightSet(db, aSet(1_001));
  },
  listOutcomes: (db) => weightSets.listOutcomes(db),
  sumOutcomes: (db) => weightSets.sumOutcomes(db),
  listRatedDisputes: (db, { disputeId }) => weightSets.listRatedDisputes(db, [disputeId]),
  ratedDraft: async (db, { disputeId }) =>
    (await ratedDraft(db, { tier: 'LOW', disputes: [{ id: disputeId }] })).tier,
  listDraftedDisputes: (db) => weightSets.listDraftedDisputes(db),
  rescoreDraft: (db, { weighedDraftId }) => weightSets.rescoreDraft(db, weighedDraftId, 'LOW'),
  recomputeWeights: async (db) => {
    await storeClaim(db, { status: 'denied' });
    return recomputeWeights(db, 1_790_000_000_000_000n);
  },
};

export interface OwnedWeights {
  /** A draft whose tier may change. */
  weighedDraftId: string;
}

/** Creates the data of the cases above: an ended claim, a draft, and a computed weight set. */
export async function makeWeights(db: OrgDb, marker: string): Promise<OwnedWeights> {
  await storeClaim(db, { status: 'denied', by: marker });
  const draft = await storeClaim(db, { by: marker });
  await weightSets.insertWeightSet(db, { ...aSet(1), learned: { ...LEARNED, base: marker } });
  return { weighedDraftId: draft.id };
}
