/** A provider's last decision on one kind of a claim: the only source that weights are learned from. */
import type { TaxonomyKind, ViolationKind } from '../taxonomy.js';
import type { LevelVector } from './levels.js';

export interface Outcome {
  claimId: string;
  /** The claimed kind; a claim of several kinds has an outcome for each. */
  claimedType: ViolationKind;
  provider: string;
  status: 'credit_issued' | 'denied' | 'partial';
  /** The kind that the provider named; null where it named none. */
  violationType: TaxonomyKind | null;
  claimedCents: bigint;
  /** Credited / claimed, 0 to 1. */
  fraction: number;
  levels: LevelVector;
  /** Before anything that outcomes had taught (rawProbabilityOf). */
  rawProbability: number;
  atMicros: bigint;
}

/** An outcome with what it counts: 1 when it is new, half of that every 180 days. */
export interface WeighedOutcome extends Outcome {
  weight: number;
}

const HALF_LIFE_DAYS = 180;
const MICROS_PER_DAY = 86_400_000_000;

/**
 * Outcomes in the one order in which they are added up, whatever order they came in, so that sums of them are the same to the
 * last bit. Age is reckoned to `atMicros`; what lies behind it counts as new.
 */
export function weighed(outcomes: readonly Outcome[], atMicros: bigint): WeighedOutcome[] {
  return outcomes.map((outcome) => ({ ...outcome, weight: weightAt(outcome, atMicros) })).sort(inOrder);
}

/** The weight of an outcome at a time: half after each 180 days, by whole days. */
export function weightAt(outcome: Pick<Outcome, 'atMicros'>, atMicros: bigint): number {
  const days = Math.floor(Math.max(0, Number(atMicros - outcome.atMicros)) / MICROS_PER_DAY);
  return 0.5 ** (days / HALF_LIFE_DAYS);
}

function inOrder(a: Outcome, b: Outcome): number {
  if (a.atMicros !== b.atMicros) return a.atMicros < b.atMicros ? -1 : 1;
  const [one, other] = [textOf(a), textOf(b)];
  return one < other ? -1 : one > other ? 1 : 0;
}

const textOf = (outcome: Outcome): string =>
  JSON.stringify([
    outcome.claimId,
    outcome.claimedType,
    outcome.provider,
    outcome.status,
    outcome.violationType,
    outcome.claimedCents.toString(),
    outcome.fraction,
    Object.entries(outcome.levels).sort(([a], [b]) => (a < b ? -1 : 1)),
    outcome.rawProbability,
  ]);
