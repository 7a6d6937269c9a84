/** Explanations that refusals named instead: they are more likely with that provider from then on. */
import type { TaxonomyKind } from '../taxonomy.js';
import type { WeighedOutcome } from './outcome.js';

/** Nobody's mistake, and known to the engine as an explanation. */
const RIVALS: ReadonlySet<TaxonomyKind> = new Set([
  'unobserved_usage',
  'timing_shift',
  'contract_terms',
  'client_metering_error',
  'stale_price_reference',
  'late_usage_adjustment',
]);
/** Three bits. */
const FACTOR_MAX = 8;

export interface LearnedRival {
  /** Refusals that named it, weighed by age. */
  readonly denials: number;
  /** The factor of its prior, 1 to 8: one more for each refusal that named it. */
  readonly factor: number;
}

/** By provider and kind, in the order of their names. */
export type LearnedRivals = Readonly<Record<string, Readonly<Record<string, LearnedRival>>>>;

export function learnRivals(outcomes: readonly WeighedOutcome[]): LearnedRivals {
  const denials = new Map<string, Map<string, number>>();
  for (const { provider, status, violationType, weight } of outcomes) {
    if (status !== 'denied' || violationType === null || !RIVALS.has(violationType)) continue;
    const kinds = denials.get(provider) ?? new Map<string, number>();
    denials.set(provider, kinds);
    kinds.set(violationType, (kinds.get(violationType) ?? 0) + weight);
  }
  const sorted = <T>(map: ReadonlyMap<string, T>) => [...map].sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(
    sorted(denials).map(([provider, kinds]) => [
      provider,
      Object.fromEntries(
        sorted(kinds).map(([kind, count]) => [
          kind,
          { denials: count, factor: Math.min(FACTOR_MAX, 1 + count) },
        ]),
      ),
    ]),
  );
}
