import type { OrgDb } from '../../db/orgDb.js';
import { findWeightSet, listRatedDisputes } from '../../db/reconciliation/weightSets.js';
import { DISPUTE_TIERS, type DisputeTier } from '../../domain/claims/decision.js';
import { learnedTier } from '../../domain/reconciliation/weights/applyLearning.js';

/**
 * A draft that is about to be made, with the tier of the least sure of its disputes by what was learned since they were opened.
 * The same draft where nothing was.
 */
export async function ratedDraft<Draft extends { tier: DisputeTier; disputes: readonly { id: string }[] }>(
  inside: OrgDb,
  draft: Draft,
): Promise<Draft> {
  const stored = await findWeightSet(inside);
  if (!stored) return draft;
  const disputes = await listRatedDisputes(
    inside,
    draft.disputes.map(({ id }) => id),
  );
  const ranks = disputes.map((dispute) => DISPUTE_TIERS.indexOf(learnedTier(dispute, stored.learned).tier));
  return { ...draft, tier: DISPUTE_TIERS[Math.max(...ranks)] ?? draft.tier };
}
