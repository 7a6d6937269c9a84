import type { BilledClass } from '../../billing/billedRow.js';
import type { TokenClass } from '../../events/event.js';
import type { Pico } from '../../money.js';
import type { RateHint } from '../audit/judgeMeter.js';
import type { ObservedSource, SeriesDayEvidence } from '../evidence/evidenceText.js';

/** What is compared, in 1e-12 units (QUANTITY_SCALE); observed tokens are whole. */

/** Money: the day's cost rows of one source, of one meter, added up. */
export interface BilledCell {
  accountId: string;
  /** The provider's label where it names no model, or where no call can show the charge; '' otherwise. */
  lineItem: string;
  model: string | null;
  tokenClass: BilledClass;
  serviceTier: string;
  isBatch: boolean | null;
  longContext: boolean | null;
  region: string | null;
  observable: boolean;
  rowCount: number;
  /** Null when any of the rows has none. */
  quantity: bigint | null;
  amountPico: Pico;
  /** What the bill itself calls the list price of these rows; null where it does not say so of every row. */
  listAmountPico: Pico | null;
  /** How far one row's amount may be rounded. */
  roundingPico: Pico;
  /** The amount is in a currency that nobody gave a rate for: `amountPico` is zero, and is not what was billed. */
  unconverted?: boolean;
}

/** An account whose cost feed covers the day, with or without charges, and the source that counts for it. */
export interface CoveredAccount {
  accountId: string;
  /** When the source was read, and for how long after a day's beginning it may still be restated. */
  fetchedAtMicros: bigint;
  provisionalDays: number;
}

/** One hour of a cell that holds a day: tokens of one class, or of all, scaled as quantities are. */
export interface HourCount {
  readonly hourMicros: bigint;
  readonly quantity: bigint;
}

/** Quantities of the provider's own usage report, by hour where the report is that fine. */
export interface UsageCell {
  accountId: string;
  model: string | null;
  tokenClass: BilledClass;
  serviceTier: string;
  isBatch: boolean | null;
  longContext: boolean | null;
  region: string | null;
  quantity: bigint;
  /** Start of the hour; null where the report counts whole days, and of hours that are added up. */
  hourMicros: bigint | null;
  /** What its hours count, where hours are added up. */
  hours?: readonly HourCount[];
}

/** How a call ended, as far as it matters to a bill. Blocked calls never reached a provider. */
export const CALL_STATUSES = ['ok', 'error', 'cancelled'] as const;
export type CallStatus = (typeof CALL_STATUSES)[number];

/** Calls that ended in one hour, as the roll-up holds them, or on one day. */
export interface ObservedCell {
  /** '' where no account is known. */
  accountId: string;
  model: string;
  /** As the client sent it; '' where it sent none. */
  serviceTier: string;
  isBatch: boolean;
  /** The boundary whose long-request rates hold; 0: ordinary rates. */
  contextBand: number;
  /** Failed attempts are charged to nobody: they enter no expected charge. */
  status: CallStatus;
  /** Start of the hour; of hours that are added up, of the first. */
  hourMicros: bigint;
  /** The hours with calls and what all classes of these count, where hours are added up. */
  hours?: readonly HourCount[];
  calls: number;
  tokens: Readonly<Record<TokenClass, bigint>>;
  computedCostPico: Pico;
  /** Calls without a price, with an assumed rate, and without usage. */
  unpriced: number;
  priceGaps: number;
  unmetered: number;
}

export interface DayInput {
  day: string;
  nowMicros: bigint;
  billed: readonly BilledCell[];
  usage: readonly UsageCell[];
  observed: readonly ObservedCell[];
  covered: readonly CoveredAccount[];
  /** By the calls' account ('' for those without one), then model: which services they come from, and what these cannot tell. */
  sources: ReadonlyMap<string, ReadonlyMap<string, readonly ObservedSource[]>>;
  /** First event of each account, '' for those without one; imported history counts. */
  observedSince: ReadonlyMap<string, bigint>;
  /** Write hours beside the day, where the usage report is hourly. */
  withHours: boolean;
}

export type MatchStatus = 'matched' | 'partial' | 'unmatched';

export const GRADES = ['HIGH', 'MEDIUM', 'LOW', 'UNVERIFIED'] as const;
export type Grade = (typeof GRADES)[number];

/** What the bill lets one see: V3 quantity and amount with all dimensions, V2 merged, V1 amount per class, V0 amount only. */
export const VISIBILITIES = ['V0', 'V1', 'V2', 'V3'] as const;
export type Visibility = (typeof VISIBILITIES)[number];

/** Why a bucket is as it is. The first five are never flagged. */
export const BUCKET_REASONS = [
  'not_observable',
  'not_yet_observed',
  'free_allowance',
  'not_in_cost_report',
  'unconverted',
  'unparsed_line',
  'unbilled',
  'unpriced',
] as const;
export type BucketReason = (typeof BUCKET_REASONS)[number];

/** One step of the link score: which signal, at which level, with which weight in bits. */
export interface WaterfallStep {
  signal: string;
  level: string;
  bits: number;
}

/** One class of a bucket, billed against observed. */
export interface ClassLine {
  tokenClass: BilledClass;
  billedQuantity: bigint | null;
  observedQuantity: bigint;
  billedPico: Pico;
  /** Billed and observed quantity at the expected rates; null where quantity or rate is unknown. */
  expectedOfBilledPico: Pico | null;
  expectedOfObservedPico: Pico | null;
  /** Where the tiers and batches inside the billed quantity come from. */
  split: SplitSource;
  rows: number;
}

/** `usage_report`: the provider's own; `bill`: the cost rows say; `observed_mix`: assumed from what was observed. */
export type SplitSource = 'usage_report' | 'bill' | 'observed_mix' | 'none';

export interface GapBucket {
  width: 'day' | 'hour';
  startMicros: bigint;
  accountId: string;
  model: string;
  matchStatus: MatchStatus;
  grade: Grade;
  /** Null when unmatched. */
  confidenceScore: number | null;
  visibility: Visibility;
  provisional: boolean;
  flagged: boolean;
  reason: BucketReason | null;
  gapMinutes: number | null;
  unobservedMinutes: number | null;
  /** Observed calls, those that failed or were cut off among them. */
  eventCount: number;
  providerCostPico: Pico;
  ourCostPico: Pico;
  /** Billed quantity at the expected rates. */
  expectedCostPico: Pico | null;
  /** gap = rate + volume + own pricing, to the pico-dollar; all three null where the bill does not allow it. */
  ratePico: Pico | null;
  volumePico: Pico | null;
  ownPricingPico: Pico | null;
  /** The part of the billed amount that observed calls explain; counted at the bucket's grade. */
  matchedPico: Pico;
  lines: ClassLine[];
  waterfall: WaterfallStep[];
}

/** A meter that the bill alone shows to be charged at another than the list rate. */
export interface RateMismatch {
  day: string;
  accountId: string;
  model: string;
  tokenClass: TokenClass;
  serviceTier: string;
  isBatch: boolean | null;
  longContext: boolean | null;
  region: string | null;
  quantity: bigint;
  billedPico: Pico;
  expectedPico: Pico;
  /** Pico-dollars per million tokens, rounded; what the bill charges and what the price list says. */
  billedRate: Pico;
  listRate: Pico;
  /** Which sources give the list rate, and whether they agree on it. */
  priceSource: string;
  agreement: string;
  disputed: boolean;
  /** Which known mistakes give exactly this amount; a hint, not a finding. */
  looksLike: readonly RateHint[];
}

export interface DayResult {
  buckets: GapBucket[];
  /** What each day bucket was made of, in the buckets' order. */
  evidence: SeriesDayEvidence[];
  rateMismatches: RateMismatch[];
}
