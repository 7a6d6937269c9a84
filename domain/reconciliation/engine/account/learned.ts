/**
 * Weights learned from claims, applied where findings get their grade: the only place in which they change a run's
 * results.
 */
import type { DisputeTier } from '../../../claims/financialSummary.js';
import type { Grade, Visibility, WaterfallStep } from '../../matching/cells.js';
import { capAt, gradeAt, higherOf, lowerOf } from '../../matching/classLines.js';
import { type FindingKind, isViolation } from '../../taxonomy.js';
import { claimProbability, type LearnedWeights } from '../../weights/learn.js';
import { LEARNED_SIGNAL, rawProbabilityOf } from '../../weights/levels.js';
import { bandOf, type Thresholds } from '../../weights/thresholds.js';
import type { WeightSet } from '../../weights/weightSet.js';
import { HYPOTHESES } from '../causes/library.js';
import type { Finding } from '../series/finding.js';
import { bitsOf, gradedAs } from '../series/gates.js';

/**
 * Findings with the probability that they are worth as claims, and the grade of that. Only what could be claimed is
 * changed: a provider's mistake to its own advantage. An UNVERIFIED finding stays so. With a set without outcomes they
 * are returned as they are.
 */
export function applyLearning(findings: Finding[], weights: WeightSet): Finding[] {
  const { learned } = weights;
  return learned ? findings.map((finding) => withLearned(finding, learned)) : findings;
}

function withLearned(finding: Finding, learned: LearnedWeights): Finding {
  const { kind, provider } = finding;
  if (!isLearnedOf(finding)) return finding;
  const probability = claimProbability(finding.probability, kind, provider, learned);
  const grade = learnedGrade(finding, probability, learned.thresholds);
  if (probability === finding.probability && grade === finding.grade) return finding;
  return {
    ...finding,
    probability,
    grade,
    waterfall: [...finding.waterfall, ...learnedStep(finding.kind, finding.probability, probability)],
  };
}

/** Whether outcomes of claims are evidence for such a finding: a kind that is never claimed has no outcomes. */
function isLearnedOf({ kind, blame, direction }: Pick<Finding, 'kind' | 'blame' | 'direction'>): boolean {
  return isViolation(kind) && blame === 'provider' && direction === 'overcharge';
}

function learnedStep(kind: FindingKind, q: number, probability: number): WaterfallStep[] {
  if (probability === q) return [];
  return [{ signal: LEARNED_SIGNAL, level: kind, bits: bitsOf(probability) - bitsOf(q) }];
}

/** The inputs of a grade beside the probability. */
export interface GradeBasis {
  kind: FindingKind;
  /** As the engine gave it, of `probability`. */
  grade: Grade;
  probability: number;
  missing: readonly string[];
  visibility: Visibility;
  waterfall: readonly WaterfallStep[];
}

/** Told by the days beside a change of price alone: no credit makes these surer. */
const DATED_KINDS: ReadonlySet<FindingKind> = new Set([
  'price_effective_date_mismatch',
  'promotional_rate_not_applied',
]);

/**
 * The grade at another probability and other thresholds. Gates and visibility hold as they did, and UNVERIFIED stays: where
 * something else than the probability had lowered the grade, it is not raised.
 */
export function learnedGrade(basis: GradeBasis, probability: number, thresholds: Thresholds): Grade {
  if (basis.grade === 'UNVERIFIED') return 'UNVERIFIED';
  const band = bandOf(gradedAs(probability, basis), thresholds);
  const own = bandOf(gradedAs(basis.probability, basis));
  // Also where an earlier calibration graded it, nothing that was learned changes its grade.
  if (band === own) return basis.grade;
  const isLowered = basis.grade !== own;
  if (isLowered || DATED_KINDS.has(basis.kind)) return lowerOf(basis.grade, band);
  // The explanation of a finding is unknown here: none is raised above the lowest limit of its kind.
  const cap = capAt(basis.missing.length, basis.visibility);
  return lowerOf(band, higherOf(basis.grade, lowerOf(cap, highestOfAll(basis))));
}

type OfKind = Pick<GradeBasis, 'kind' | 'missing'>;

/** A finding over an account has no explanation of the library: a key that is only not registered is LOW (suspectUse.ts). */
function highestOf({ kind, missing }: OfKind): Grade[] {
  const own = HYPOTHESES.filter((one) => one.kind === kind).map((one) => one.highest ?? 'HIGH');
  if (own.length > 0) return own;
  return [kind === 'unauthorized_key_usage' && missing.length > 0 ? 'LOW' : 'HIGH'];
}

/** The grade that every explanation of a kind may have. */
const highestOfAll = (of: OfKind): Grade => highestOf(of).reduce(lowerOf, 'HIGH');

/** The best grade that some explanation of a kind may have; where the bill shows amounts alone, the same as of all. */
function highestOfAny(of: GradeBasis): Grade {
  if (of.visibility === 'V0' || of.visibility === 'V1') return highestOfAll(of);
  return highestOf(of).reduce(higherOf, 'UNVERIFIED');
}

/** A dispute of a draft with what its tier rests on; what it was opened without is null. */
export interface TierBasis {
  kind: FindingKind;
  provider: string;
  disputeTier: DisputeTier;
  grade: Grade | null;
  probability: number | null;
  missing: readonly string[];
  visibility: Visibility | null;
  waterfall: readonly WaterfallStep[];
}

/**
 * The tier that a dispute has by what is known now, of what it rested on when it was opened. Below LOW there is no tier: it
 * stays LOW, and `belowLow` is set.
 */
export function learnedTier(
  dispute: TierBasis,
  learned: LearnedWeights,
): { tier: DisputeTier; belowLow: boolean } {
  const { kind, provider, probability, visibility, missing, waterfall } = dispute;
  if (!isViolation(kind) || probability === null || visibility === null || dispute.grade === null)
    return { tier: dispute.disputeTier, belowLow: false };
  const q = rawProbabilityOf(probability, waterfall);
  const basis = { kind, missing, visibility, waterfall, probability: q, grade: dispute.grade };
  // Learning may have changed the stored grade: the engine's own grade is that of its own probability.
  const own = gradedAs(q, { missing, waterfall });
  const grade =
    q === probability ? basis.grade : lowerOf(gradeAt(own, missing.length, visibility), highestOfAny(basis));
  const now = learnedGrade(
    { ...basis, grade },
    claimProbability(q, kind, provider, learned),
    learned.thresholds,
  );
  return now === 'UNVERIFIED' ? { tier: 'LOW', belowLow: true } : { tier: now, belowLow: false };
}
