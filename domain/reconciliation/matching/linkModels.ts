import { QUANTITY_ONE } from '../../billing/billedRow.js';
import { absPico, type Pico } from '../../money.js';
import { type DayRates, isTokenClass } from '../audit/dayRates.js';
import type { BillableInput } from './bucket.js';
import type { ClassLine, WaterfallStep } from './cells.js';
import { sum, tolerancePico } from './classLines.js';
import type { Meter } from './meters.js';
import { isProfileOf } from './profiles.js';

/** The way in which a billed and an observed model were linked, best first. */
export type ModelLevel = 'exact' | 'alias' | 'family_same_price' | 'family_other_price';

export interface ModelLinks {
  /** Entry key of an observed model → entry key of its billed model. */
  billedKeyOf(observedModel: string): string;
  /** Entry keys of the profiles among which calls of this model are divided; none: `billedKeyOf` holds. */
  profilesOf(observedModel: string): readonly string[];
  level(billedModels: readonly string[], observedModels: readonly string[]): ModelLevel;
}

/**
 * Links equal price entries, else a family with one entry left on each side; never chooses between two candidates, other than
 * profiles of one model.
 */
export function linkModels(
  billed: readonly string[],
  observed: readonly string[],
  rates: DayRates,
): ModelLinks {
  const billedKeys = new Set(billed.map((model) => rates.entryKey(model)));
  const observedKeys = new Set(observed.map((model) => rates.entryKey(model)));
  const byFamily = linkFamilies(
    keysByFamily(billed, rates, (key) => !observedKeys.has(key)),
    keysByFamily(observed, rates, (key) => !billedKeys.has(key)),
  );
  return {
    profilesOf: (model) => {
      const key = rates.entryKey(model);
      if (billedKeys.has(key)) return [];
      const profiles = [...billedKeys].filter((one) => isProfileOf(one, key)).sort();
      return profiles.length > 1 ? profiles : [];
    },
    billedKeyOf: (model) => {
      const key = rates.entryKey(model);
      return byFamily.get(key) ?? key;
    },
    level: (billedModels, observedModels) => levelOf(billedModels, observedModels, rates),
  };
}

function keysByFamily(
  models: readonly string[],
  rates: DayRates,
  isLeft: (key: string) => boolean,
): Map<string, Set<string>> {
  const families = new Map<string, Set<string>>();
  for (const model of models) {
    const key = rates.entryKey(model);
    if (!isLeft(key)) continue;
    const family = rates.family(model);
    const keys = families.get(family) ?? new Set<string>();
    families.set(family, keys.add(key));
  }
  return families;
}

function linkFamilies(
  billed: Map<string, Set<string>>,
  observed: Map<string, Set<string>>,
): Map<string, string> {
  const links = new Map<string, string>();
  for (const [family, observedKeys] of observed) {
    const billedKeys = billed.get(family);
    const [from, ...moreObserved] = observedKeys;
    const [to, ...moreBilled] = billedKeys ?? [];
    if (from !== undefined && to !== undefined && moreObserved.length === 0 && moreBilled.length === 0)
      links.set(from, to);
  }
  return links;
}

function levelOf(
  billedModels: readonly string[],
  observedModels: readonly string[],
  rates: DayRates,
): ModelLevel {
  const ids = new Set(billedModels);
  if (observedModels.every((model) => ids.has(model))) return 'exact';
  const keys = new Set(billedModels.map((model) => rates.entryKey(model)));
  if (observedModels.every((model) => keys.has(rates.entryKey(model)))) return 'alias';
  const isOwn = (key: string) => keys.has(key) || [...keys].some((one) => isProfileOf(one, key));
  if (observedModels.every((model) => isOwn(rates.entryKey(model)))) return 'alias';
  const billed = billedModels[0] ?? '';
  return observedModels.every((model) => rates.samePrice(billed, model))
    ? 'family_same_price'
    : 'family_other_price';
}

export interface Totals {
  providerCostPico: Pico;
  ourCostPico: Pico;
  expectedCostPico: Pico | null;
  expectedOfObserved: Pico | null;
  roundingPico: Pico;
}

export function evidenceOf(
  input: BillableInput,
  meters: readonly Meter[],
  lines: readonly ClassLine[],
  totals: Totals,
): LinkEvidence {
  const { providerCostPico, expectedCostPico } = totals;
  const requests =
    sum(
      [...meters, ...input.usage]
        .filter((one) => one.tokenClass === 'requests')
        .map((one) => one.quantity ?? 0n),
    ) / QUANTITY_ONE;
  const calls = BigInt(input.billable.reduce((count, cell) => count + cell.calls, 0));
  return {
    model: input.level,
    worstQuantityDeviation: worstDeviation(lines, totals),
    callDeviation: requests === 0n ? null : share(requests - calls, requests),
    rateRatio:
      expectedCostPico === null || expectedCostPico === 0n
        ? null
        : Number(providerCostPico) / Number(expectedCostPico),
    rateWithinRounding:
      expectedCostPico !== null &&
      expectedCostPico !== 0n &&
      absPico(providerCostPico - expectedCostPico) <= totals.roundingPico + BigInt(meters.length),
    totalDeviation: share(providerCostPico - totals.ourCostPico, providerCostPico),
  };
}

/** The minimum coverage that may be removed as a common factor; a lower coverage counts as deviation. */
const COVERAGE_MIN = 0.5;

/**
 * Deviation of the worst class after removing the common coverage, since a gap in observation scales all classes
 * alike.
 */
function worstDeviation(lines: readonly ClassLine[], totals: Totals): number | null {
  const priced = lines.filter((line) => isTokenClass(line.tokenClass));
  if (priced.length === 0 || priced.some((line) => line.billedQuantity === null)) return null;
  const { expectedCostPico, expectedOfObserved } = totals;
  const ratio =
    expectedCostPico && expectedOfObserved ? Number(expectedOfObserved) / Number(expectedCostPico) : 1;
  const coverage = Math.min(1, Math.max(COVERAGE_MIN, ratio));
  const matters = tolerancePico(totals.providerCostPico, totals.roundingPico);
  let worst = 0;
  for (const line of priced) {
    if (
      (line.expectedOfBilledPico ?? matters + 1n) <= matters &&
      (line.expectedOfObservedPico ?? matters + 1n) <= matters
    )
      continue;
    const billed = Number(line.billedQuantity ?? 0n) * coverage;
    const observed = Number(line.observedQuantity);
    worst = Math.max(worst, Math.abs(observed - billed) / Math.max(billed, observed, 1));
  }
  return worst;
}

/** |part| ÷ |whole| for a score; 1: the whole is zero. */
function share(part: bigint, whole: bigint): number {
  return whole === 0n ? 1 : Math.abs(Number(part) / Number(whole));
}

/** Evidence in bits (docs/reconciliation.md), as data that learning replaces. */
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

/** Ratios of billed to list that price rules explain: batch, tiers, long context, regions, cache classes. */
const KNOWN_MULTIPLIERS = [0.5, 1.1, 1.5, 1.6, 2, 4, 6, 10] as const;
const MULTIPLIER_TOLERANCE = 0.0015;

export interface LinkEvidence {
  model: ModelLevel;
  /** The worst class's deviation after removing the common coverage, as a share; null: no quantities. */
  worstQuantityDeviation: number | null;
  /** Deviation of the call counts as a share; null: the bill counts no calls. */
  callDeviation: number | null;
  /** Billed amount ÷ billed quantity at list; null: no quantity or no price. */
  rateRatio: number | null;
  rateWithinRounding: boolean;
  /** Deviation of the total cost as a share, used only without quantities. */
  totalDeviation: number;
}

/** The agreement of the month's invoice with the bill's days. */
export type InvoiceTie = 'exact' | 'close' | 'contradicts';

/** Bits by signal and level, as a weight set stores them. */
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

/** Probability that the charge is for this usage: 1 / (1 + 2^-bits). */
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
