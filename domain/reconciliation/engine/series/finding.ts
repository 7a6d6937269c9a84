/** A finding about a run of days of one series: the mistake, its probability, its dollars, and the evidence. */
import type { BilledClass } from '../../../billing/billedRow.js';
import type { TokenClass } from '../../../events/event.js';
import type { Pico } from '../../../money.js';
import type { Grade, Visibility, WaterfallStep } from '../../matching/cells.js';
import type { FindingKind } from '../../taxonomy.js';

/** The direction in which the bill is wrong: too much, or too little. */
export const DIRECTIONS = ['overcharge', 'undercharge'] as const;
export type Direction = (typeof DIRECTIONS)[number];

/** The party that made the mistake; `none`: no party did. */
export const BLAMES = ['provider', 'own', 'none'] as const;
export type Blame = (typeof BLAMES)[number];

/** Conditions of HIGH beside the probability; a missing one lowers the grade. */
export const GATES = [
  'closed_period',
  'quantity_present',
  'price_source_dated',
  'price_sources_agree',
  'classes_complete',
  'coverage_or_sealed_scope',
  'residual_within_tolerance',
  'odds_against_next',
  'account_known',
  'evidence_needed',
] as const;
export type Gate = (typeof GATES)[number];

/** One day of a finding. `impact` = billed − what would have been right; it is the sum of the three parts. */
export interface FindingDay {
  day: string;
  billedPico: Pico;
  expectedPico: Pico;
  impactPico: Pico;
  ratePico: Pico;
  volumePico: Pico;
  ownPricingPico: Pico;
  /** Of the day alone, before the days were pooled. */
  probability: number;
}

/** One class of the computation, over all days of the finding: what a reader recomputes. */
export interface FindingLine {
  tokenClass: BilledClass;
  serviceTier: string;
  isBatch: boolean | null;
  longContext: boolean | null;
  region: string | null;
  /** 1e-12 tokens; null where the bill has none. */
  billedQuantity: bigint | null;
  observedQuantity: bigint;
  /** Pico-dollars per million tokens; null for a mixture. */
  billedRate: Pico | null;
  expectedRate: Pico | null;
  billedPico: Pico;
  expectedPico: Pico;
}

export interface Finding {
  kind: FindingKind;
  /** The way in which it was made, of the hypothesis' variants; '' for `unexplained`. */
  variant: string;
  direction: Direction;
  blame: Blame;
  /** Provider's mistake of a kind that a provider corrects. */
  claimable: boolean;
  provider: string;
  accountId: string;
  model: string;
  /** In their order, without repeats; sums over them are exact. */
  days: readonly FindingDay[];
  lines: readonly FindingLine[];
  impactPico: Pico;
  /** The recoverable amount: the impact of a claimable overcharge, else 0. */
  recoverablePico: Pico;
  grade: Grade;
  /** P(match) × P(hypothesis | data), calibrated together; what the grade rests on. */
  probability: number;
  matchProbability: number;
  visibility: Visibility;
  provisional: boolean;
  /** Gates that do not hold. */
  missing: readonly Gate[];
  /** The next best explanation and how many times less likely it is, as odds; null where nothing else comes near. */
  next: { kind: FindingKind | 'none'; odds: number } | null;
  /** The evidence in bits, step by step. */
  waterfall: readonly WaterfallStep[];
  /** The mistake, in whole sentences without amounts and days: `reasonOf` adds those. */
  cause: string;
  /** Advice and conditions for a higher grade, in whole sentences. */
  advice: readonly string[];
  /** For `unexplained`: it is large, or an outlier for days. */
  critical: boolean;
  weightSet: string;
}

/** The result of one day of a series. */
export interface ExplainedDay {
  day: string;
  visibility: Visibility;
  billedPico: Pico;
  /** The share of the billed quantities that was observed, 0…1; null where it is unknown. */
  coverage: number | null;
  /** Impact of the day's findings; with `unexplained` it is the day's gap less the part that needs no explanation. */
  explainedPico: Pico;
  unexplainedPico: Pico;
}

/**
 * Excess of the bill over the calls, by class: in 1e-12 tokens, and their cost at the agreed rates. Where the bill has
 * amounts by class alone there are no tokens, and the dollars are the amount less what the calls cost.
 */
export interface Excess {
  tokens: Partial<Record<TokenClass, bigint>>;
  pico: Partial<Record<TokenClass, Pico>>;
}

/**
 * A day on which a series' bill and calls differ in quantity beyond what its own coverage explains: what another series of
 * the account may hold the other half of.
 */
export interface ResidualDay {
  day: string;
  visibility: Visibility;
  /** Beyond the series' usual coverage. */
  beyondUsual: Excess;
  /** Beyond all that was seen. */
  beyondSeen: Excess;
  billedPico: Pico;
  /** Billed and observed at the agreed rates; null where a rate is unknown. */
  expectedOfBilledPico: Pico | null;
  expectedOfObservedPico: Pico | null;
  provisional: boolean;
  /** Every call's model is the one that its answer names. */
  namedByAnswer: boolean;
  /**
   * The day's meters: as billed, against what was seen of them at the agreed rates. Lines of a finding over the account are
   * made of them.
   */
  lines: readonly FindingLine[];
  /** Empty where costs are booked on another day than the use. */
  uses: readonly ResidualUse[];
  /** Percent below what is entered at which the day's amounts are judged: see `SeriesDay.untoldDiscount`. */
  untoldDiscount: number;
}

/** The tokens of one class and kind of use, 1e-12 each. */
export interface ResidualUse {
  tokenClass: TokenClass;
  serviceTier: string;
  isBatch: boolean;
  longContext: boolean;
  /** Of what was billed; calls do not name their place. */
  region: string | null;
  /** Of calls that a provider charges for. */
  seen: bigint;
  /** By the division of bill and usage report. */
  billed: bigint;
}

export interface SeriesExplanation {
  provider: string;
  accountId: string;
  model: string;
  findings: Finding[];
  days: ExplainedDay[];
  /** Deviating days alone, so that they stay few. */
  residuals: ResidualDay[];
}
