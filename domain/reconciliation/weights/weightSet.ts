/**
 * The numbers that the engine judges by, as data with a version: what is learned from claims' outcomes makes another set,
 * and a finding names the set that it was made by.
 */
import { LINK_WEIGHTS, type LinkWeights } from '../matching/linkModels.js';
import type { TaxonomyKind } from '../taxonomy.js';
import type { LearnedWeights } from './learn.js';

export interface WeightSet {
  readonly version: string;
  /** Bits of each level of each signal of the link score. */
  readonly link: LinkWeights;
  /** Prior probability of each explanation for a day of a series; what is not named has `otherPrior`. */
  readonly priors: Partial<Record<TaxonomyKind, number>>;
  readonly otherPrior: number;
  /** Prior probability that something is wrong which no explanation knows. */
  readonly unexplainedPrior: number;
  /** Standard deviations of logarithms of ratios: observed quantity to billed, and amount to quantity × rate. */
  readonly quantitySigma: number;
  readonly rateSigma: number;
  /** Probability that a day's explanation is the day before's. */
  readonly stay: number;
  /** Weights learned from outcomes of claims on top of it; absent before the first outcome. */
  readonly learned?: LearnedWeights;
}

/** The weights before any outcome. */
export const DEFAULT_WEIGHTS: WeightSet = {
  version: 'default-1',
  link: LINK_WEIGHTS,
  priors: {
    // A rate of no known mistake is not explained by being another rate: it stays unexplained.
    list_rate_mismatch: 0,
    // Rates that are fitted, not predicted: each has a ratio of its own for a price.
    stale_price_reference: 1e-6,
    contract_terms: 1e-4,
    // Every observation has these now and then.
    unobserved_usage: 0.01,
    timing_shift: 0.002,
    client_metering_error: 0.0003,
    // Below the client's taking them off twice, which shows the same where it lasts.
    cached_tokens_double_metered: 0.0002,
    token_count_inflation: 0.0002,
    duplicate_charge: 0.0002,
  },
  otherPrior: 0.0005,
  unexplainedPrior: 0.001,
  quantitySigma: 0.012,
  rateSigma: 0.0015,
  stay: 0.97,
};
