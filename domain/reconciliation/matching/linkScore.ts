import type { WaterfallStep } from './cells.js';
import type { ModelLevel } from './linkModels.js';

/**
 * The evidence that a billed charge is the observed usage, in bits (docs/reconciliation.md): initial weights, kept as
 * data so that what they learn later has a place to go.
 */
export const LINK_WEIGHTS = {
  prior: { blocked_pair: 1 },
  time: { same_bucket: 3, boundary_window: 1, adjacent_day: -1, farther: -6 },
  model: { exact: 4, alias: 3, family_same_price: 1, family_other_price: -2, other: -8 },
  scope: { mapped: 3, parent: 2, unknown: 0, conflict: -5 },
  quantities: {
    within_0_2_percent: 5,
    within_1_percent: 3.5,
    within_3_percent: 1,
    within_10_percent: -1.5,
    beyond: -5,
    absent: 0,
  },
  calls: { equal: 3, within_0_5_percent: 2, within_3_percent: 0, beyond: -2, absent: 0 },
  rate: { within_rounding: 4, known_multiplier: 2, within_1_percent: 1, beyond: -3, absent: 0 },
  total: { within_0_5_percent: 2.5, within_2_percent: 1, within_5_percent: -0.5, beyond: -3, not_used: 0 },
  invoice: { exact: 3, close: 2, none: 0, contradicts: -4 },
} as const;

/** Ratios of billed to list that some price rule explains: batch, tiers, long context, regions, cache classes. */
const KNOWN_MULTIPLIERS = [0.5, 1.1, 1.5, 1.6, 2, 4, 6, 10] as const;
const MULTIPLIER_TOLERANCE = 0.0015;

export interface LinkEvidence {
  model: ModelLevel;
  /** Worst class's deviation after the common coverage is taken out, as a share; null without quantities. */
  worstQuantityDeviation: number | null;
  /** Deviation of the call counts as a share; null where the bill counts no calls. */
  callDeviation: number | null;
  /** Billed amount ÷ billed quantity at list; null without quantity or price. */
  rateRatio: number | null;
  rateWithinRounding: boolean;
  /** Deviation of the total cost as a share, used only where quantities are absent. */
  totalDeviation: number;
}

/** How well the invoice of the month ties out with the bill's days. */
export type InvoiceTie = 'exact' | 'close' | 'contradicts';

/** Bits by signal and level, as a weight set holds them. */
export interface LinkWeights {
  readonly [signal: string]: { readonly [level: string]: number };
}

/** Every signal at its level, in a fixed order. */
export function linkWaterfall(
  evidence: LinkEvidence,
  weights: LinkWeights = LINK_WEIGHTS,
  invoice: InvoiceTie | 'none' = 'none',
): WaterfallStep[] {
  const step = <S extends keyof typeof LINK_WEIGHTS>(
    signal: S,
    level: keyof (typeof LINK_WEIGHTS)[S] & string,
  ): WaterfallStep => ({
    signal,
    level,
    bits: weights[signal]?.[level] ?? (LINK_WEIGHTS[signal][level] as number),
  });
  const hasQuantities = evidence.worstQuantityDeviation !== null;
  return [
    step('prior', 'blocked_pair'),
    step('time', 'same_bucket'),
    step('model', evidence.model),
    step('scope', 'unknown'),
    step('quantities', quantityLevel(evidence.worstQuantityDeviation)),
    step('calls', callLevel(evidence.callDeviation)),
    step('rate', rateLevel(evidence)),
    step('total', hasQuantities ? 'not_used' : totalLevel(evidence.totalDeviation)),
    step('invoice', invoice),
  ];
}

/** Probability that the charge is that usage: 1 / (1 + 2^-bits). */
export function linkProbability(waterfall: readonly WaterfallStep[]): number {
  const bits = waterfall.reduce((total, { bits: weight }) => total + weight, 0);
  return 1 / (1 + 2 ** -bits);
}

function quantityLevel(deviation: number | null): keyof typeof LINK_WEIGHTS.quantities {
  if (deviation === null) return 'absent';
  if (deviation <= 0.002) return 'within_0_2_percent';
  if (deviation <= 0.01) return 'within_1_percent';
  if (deviation <= 0.03) return 'within_3_percent';
  return deviation <= 0.1 ? 'within_10_percent' : 'beyond';
}

function callLevel(deviation: number | null): keyof typeof LINK_WEIGHTS.calls {
  if (deviation === null) return 'absent';
  if (deviation === 0) return 'equal';
  if (deviation <= 0.005) return 'within_0_5_percent';
  return deviation <= 0.03 ? 'within_3_percent' : 'beyond';
}

function rateLevel({ rateRatio, rateWithinRounding }: LinkEvidence): keyof typeof LINK_WEIGHTS.rate {
  if (rateWithinRounding) return 'within_rounding';
  if (rateRatio === null) return 'absent';
  if (KNOWN_MULTIPLIERS.some((multiplier) => Math.abs(rateRatio / multiplier - 1) <= MULTIPLIER_TOLERANCE))
    return 'known_multiplier';
  return Math.abs(rateRatio - 1) <= 0.01 ? 'within_1_percent' : 'beyond';
}

function totalLevel(deviation: number): keyof typeof LINK_WEIGHTS.total {
  if (deviation <= 0.005) return 'within_0_5_percent';
  if (deviation <= 0.02) return 'within_2_percent';
  return deviation <= 0.05 ? 'within_5_percent' : 'beyond';
}
