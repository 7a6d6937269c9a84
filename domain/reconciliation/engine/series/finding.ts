/** What the engine says about a run of days of one series: what is wrong, how surely, by how much, and why it says so. */
import type { BilledClass } from '../../../billing/billedRow.js';
import type { TokenClass } from '../../../events/event.js';
import type { Pico } from '../../../money.js';
import type { Grade, Visibility, WaterfallStep } from '../../matching/cells.js';
import type { FindingKind } from '../../taxonomy.js';

/** Which way the bill is wrong: too much, or too little. */
export const DIRECTIONS = ['overcharge', 'undercharge'] as const;
export type Direction = (typeof DIRECTIONS)[number];

/** Whose mistake it is; `none`: nobody's. */
export const BLAMES = ['provider', 'own', 'none'] as const;
export type Blame = (typeof BLAMES)[number];

/** What must hold for HIGH, beside the probability; one that is missing lowers the grade. */
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
  /** 1e-12 tokens; null where the bill gives none. */
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
  /** What can be asked back: the impact of a claimable overcharge, else 0. */
  recoverablePico: Pico;
  grade: Grade;
  /** P(match) × P(hypothesis | data), calibrated; what the grade rests on. */
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
  /** What is wrong, in whole sentences without amounts and days: `reasonOf` adds those. */
  cause: string;
  /** What to change, and what would raise its grade: whole sentences. */
  advice: readonly string[];
  /** For `unexplained`: it is large or stands out for days. */
  critical: boolean;
  weightSet: string;
}

/** What became of one day of a series. */
export interface ExplainedDay {
  day: string;
  visibility: Visibility;
  billedPico: Pico;
  /** The share of the billed quantities that was observed, 0…1; null where it cannot be told. */
  coverage: number | null;
  /** Impact of the day's findings; with `unexplained` it is the day's gap less what nobody has to explain. */
  explainedPico: Pico;
  unexplainedPico: Pico;
}

/**
 * What a bill has more than calls, by class: in 1e-12 tokens, and what they cost at the agreed rates. Where the bill gives
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
