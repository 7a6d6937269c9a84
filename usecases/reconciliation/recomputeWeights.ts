import type { OrgDb } from '../../db/orgDb.js';
import {
  findWeightSet,
  insertWeightSet,
  listDraftedDisputes,
  listOutcomes,
  listRatedDisputes,
  type RescoredDraft,
  rescoreDraft,
} from '../../db/reconciliation/weightSets.js';
import { DISPUTE_TIERS, type DisputeTier } from '../../domain/claims/financialSummary.js';
import { learnedTier } from '../../domain/reconciliation/engine/index.js';
import {
  type LearnedWeights,
  learnedAtMicros,
  learnWeights,
} from '../../domain/reconciliation/weights/learn.js';
import { DEFAULT_WEIGHTS } from '../../domain/reconciliation/weights/weightSet.js';

interface Recomputed {
  /** Version of the present weight set; null: no weights were ever computed. */
  version: number | null;
  isNew: boolean;
  rescored: RescoredDraft[];
}

/**
 * Computes weights from all outcomes of the organization, stores them as a new version if they differ from the newest,
 * and updates the tiers of open drafts. Filed claims keep the tiers that they were sent with. A repeat changes nothing.
 */
export async function recomputeWeights(orgDb: OrgDb, nowMicros: bigint): Promise<Recomputed> {
  return orgDb.transaction(async (inside) => {
    const outcomes = await listOutcomes(inside);
    const stored = await findWeightSet(inside);
    if (outcomes.length === 0 && !stored) return { version: null, isNew: false, rescored: [] };
    const learned = learnWeights(outcomes, DEFAULT_WEIGHTS, learnedAtMicros(outcomes));
    const rescored = await rescoreDrafts(inside, learned);
    if (stored && canonical(stored.learned) === canonical(learned))
      return { version: stored.version, isNew: false, rescored };
    const version = (stored?.version ?? 0) + 1;
    await insertWeightSet(inside, { version, learned, rescored, madeAtMicros: nowMicros });
    return { version, isNew: true, rescored };
  });
}

async function rescoreDrafts(inside: OrgDb, learned: LearnedWeights): Promise<RescoredDraft[]> {
  const drafts = new Map<string, RescoredDraft>();
  for (const dispute of await listDraftedDisputes(inside)) {
    const { tier, belowLow } = learnedTier(dispute, learned);
    const known = drafts.get(dispute.claimId);
    const isLess = !known || DISPUTE_TIERS.indexOf(tier) > DISPUTE_TIERS.indexOf(known.to);
    drafts.set(dispute.claimId, {
      claimId: dispute.claimId,
      from: dispute.claimTier,
      // The tier of the claim's least certain dispute.
      to: isLess ? tier : known.to,
      belowLow: belowLow || (known?.belowLow ?? false),
    });
  }
  const rescored: RescoredDraft[] = [];
  for (const draft of drafts.values())
    if (draft.from !== draft.to && (await rescoreDraft(inside, draft.claimId, draft.to)))
      rescored.push(draft);
  return rescored;
}

/** Canonical JSON, independent of the order of fields. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) =>
    part !== null && typeof part === 'object' && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );

/**
 * A draft that is about to be stored, with the tier of its least certain dispute by the present weights. The same draft
 * where no newer weights exist.
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
