/** The share of findings of a kind that providers credit: a Beta distribution for each kind. */
import type { ViolationKind } from '../taxonomy.js';
import { betaQuantile } from './beta.js';
import type { WeighedOutcome } from './outcome.js';

/** A Beta(a, b) as successes and failures that were seen already. */
export interface BetaPrior {
  readonly a: number;
  readonly b: number;
}

/** A rate that the bill shows by itself, to the rounding of a cent. */
const IDENTITY: BetaPrior = { a: 9, b: 1 };
const OTHER: BetaPrior = { a: 6, b: 2 };
/** Only counts distinguish these from unobserved calls. */
const SUSPICION: BetaPrior = { a: 2, b: 4 };

const PRIORS: Partial<Record<ViolationKind, BetaPrior>> = {
  batch_discount_not_applied: IDENTITY,
  cached_tokens_double_metered: IDENTITY,
  cache_read_rate_mismatch: IDENTITY,
  cache_write_rate_mismatch: IDENTITY,
  long_context_rate_misapplied: IDENTITY,
  service_tier_rate_misapplied: IDENTITY,
  duplicate_charge: SUSPICION,
  token_count_inflation: SUSPICION,
};

export function priorOf(kind: ViolationKind): BetaPrior {
  return PRIORS[kind] ?? OTHER;
}

/** The posterior of one kind after its outcomes. */
export interface LearnedDetector {
  /** Outcomes of the kind, however old. */
  readonly outcomes: number;
  /** Sums of what they count, weighed by age: credited and not. A partial credit is some of both. */
  readonly credited: number;
  readonly failed: number;
  readonly prior: BetaPrior;
  readonly priorMean: number;
  /** The mean after the outcomes. */
  readonly precision: number;
  /** The factor of the odds of a finding of the kind. */
  readonly oddsFactor: number;
  /** No finding of the kind is surer than this; null while there are too few outcomes. */
  readonly cap: number | null;
}

/** From so many outcomes on the cap holds. */
const CAP_FROM = 5;
const CAP_SHARE = 0.95;

export function detectorOf(kind: ViolationKind, outcomes: readonly WeighedOutcome[]): LearnedDetector {
  const prior = priorOf(kind);
  let [count, credited, failed] = [0, 0, 0];
  for (const { claimedType, fraction, weight } of outcomes) {
    if (claimedType !== kind) continue;
    count += 1;
    credited += weight * fraction;
    failed += weight * (1 - fraction);
  }
  const [a, b] = [prior.a + credited, prior.b + failed];
  return {
    outcomes: count,
    credited,
    failed,
    prior,
    priorMean: prior.a / (prior.a + prior.b),
    precision: a / (a + b),
    oddsFactor: a / b / (prior.a / prior.b),
    cap: count >= CAP_FROM ? betaQuantile(CAP_SHARE, a, b) : null,
  };
}

/** Every kind that has outcomes, in the order of their names. */
export function learnDetectors(outcomes: readonly WeighedOutcome[]): Record<string, LearnedDetector> {
  const kinds = [...new Set(outcomes.map((outcome) => outcome.claimedType))].sort();
  return Object.fromEntries(kinds.map((kind) => [kind, detectorOf(kind, outcomes)]));
}

/** odds(claim) = odds(q) × learned odds / prior odds. A kind without outcomes leaves q as it is. */
export function correctedProbability(q: number, detector: LearnedDetector | undefined): number {
  if (!detector || detector.oddsFactor === 1 || q <= 0 || q >= 1) return q;
  const odds = (q / (1 - q)) * detector.oddsFactor;
  return odds / (1 + odds);
}

export function cappedProbability(p: number, detector: LearnedDetector | undefined): number {
  return detector?.cap == null ? p : Math.min(p, detector.cap);
}
