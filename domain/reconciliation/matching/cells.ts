import type { BilledClass } from '../../billing/billedRow.js';
import type { TokenClass } from '../../events/event.js';
import type { Pico } from '../../money.js';
import type { RateHint } from '../audit/judgeMeter.js';
import type { ObservedSource, SeriesDayEvidence } from '../evidence/evidenceText.js';

/** The quantities and amounts to compare, in 1e-12 units (QUANTITY_SCALE); observed tokens are whole. */

/** The sum of a day's cost rows of one source and one meter. */
export interface BilledCell {
  accountId: string;
  /** The provider's label if it names no model or no call can show the charge; else ''. */
  lineItem: string;
  model: string | null;
  tokenClass: BilledClass;
  serviceTier: string;
  isBatch: boolean | null;
  longContext: boolean | null;
  region: string | null;
  observable: boolean;
  rowCount: number;
  /** null: some row has no quantity. */
  quantity: bigint | null;
  amountPico: Pico;
  /** The bill's own list price of these rows; null: not every row has one. */
  listAmountPico: Pico | null;
  /** Maximum rounding of one row's amount. */
  roundingPico: Pico;
  /** The label would name a tier beside the ordinary one: see isTierNamed. Absent: unknown, or such labels do not. */
  tierNamed?: true;
  /** The currency has no exchange rate: `amountPico` is zero instead of the billed amount. */
  unconverted?: boolean;
}

/** An account whose cost feed covers the day, with or without charges, and its counted source. */
export interface CoveredAccount {
  accountId: string;
  /** The time of reading the source, and below the days from a day's start in which it may still be restated. */
  fetchedAtMicros: bigint;
  provisionalDays: number;
}

/** One hour of a daily cell: tokens of one class, or of all, scaled like quantities. */
export interface HourCount {
  readonly hourMicros: bigint;
  readonly quantity: bigint;
}

/**
 * One hour of a cell of calls. `tokens`: whole tokens by class, in the order of TOKEN_CLASSES, which a number holds exactly;
 * absent: not known.
 */
export interface HourOfCalls extends HourCount {
  readonly tokens?: readonly number[];
}

/** Quantities of the provider's own usage report, by hour if the report has hours. */
export interface UsageCell {
  accountId: string;
  model: string | null;
  tokenClass: BilledClass;
  serviceTier: string;
  isBatch: boolean | null;
  longContext: boolean | null;
  region: string | null;
  quantity: bigint;
  /** Start of the hour; null: the report counts whole days, or hours were summed. */
  hourMicros: bigint | null;
  /** The counts by hour, if hours were summed. */
  hours?: readonly HourCount[];
}

/** The end of a call as far as it affects the bill. Blocked calls never reached a provider. */
export const CALL_STATUSES = ['ok', 'error', 'cancelled'] as const;
export type CallStatus = (typeof CALL_STATUSES)[number];

/** Calls that ended in one hour, as in the totals, or on one day. */
export interface ObservedCell {
  /** '': the account is unknown. */
  accountId: string;
  model: string;
  /** As the client sent it; '': it sent none. */
  serviceTier: string;
  isBatch: boolean;
  /** The boundary of the applied long-request rates; 0: ordinary rates. */
  contextBand: number;
  /** Failed attempts are not billed, so no expected charge includes them. */
  status: CallStatus;
  /** Start of the hour; if hours were summed, of the first. */
  hourMicros: bigint;
  /** The hours with calls and their tokens of all classes, if hours were summed. */
  hours?: readonly HourOfCalls[];
  calls: number;
  tokens: Readonly<Record<TokenClass, bigint>>;
  computedCostPico: Pico;
  /** Calls without a price, and below calls with an assumed rate and calls without usage. */
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
  /** The services of the calls with the limits of their clients, by the calls' account ('': none) and model. */
  sources: ReadonlyMap<string, ReadonlyMap<string, readonly ObservedSource[]>>;
  /** First event of each account ('': calls without one), including imported history. */
  observedSince: ReadonlyMap<string, bigint>;
  /** Also compare hours, if the usage report is hourly. */
  withHours: boolean;
}

export type MatchStatus = 'matched' | 'partial' | 'unmatched';

export const GRADES = ['HIGH', 'MEDIUM', 'LOW', 'UNVERIFIED'] as const;
export type Grade = (typeof GRADES)[number];

/**
 * The detail of the bill: V3 quantity and amount with all dimensions, V2 merged, V1 amount per class, V0 amount
 * only.
 */
export const VISIBILITIES = ['V0', 'V1', 'V2', 'V3'] as const;
export type Visibility = (typeof VISIBILITIES)[number];

/** The reason for a bucket's result. The first five are never flagged. */
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

/** One step of the link score: the signal, its level, and its weight in bits. */
export interface WaterfallStep {
  signal: string;
  level: string;
  bits: number;
}

/** One class of a bucket: billed and observed. */
export interface ClassLine {
  tokenClass: BilledClass;
  billedQuantity: bigint | null;
  observedQuantity: bigint;
  billedPico: Pico;
  /** Billed and below observed quantity at the expected rates; null: the quantity or the rate is unknown. */
  expectedOfBilledPico: Pico | null;
  expectedOfObservedPico: Pico | null;
  /** The source of the division of the billed quantity by tier and batch. */
  split: SplitSource;
  rows: number;
}

/** `usage_report`: the provider's own; `bill`: the cost rows; `observed_mix`: assumed from the observed calls. */
export type SplitSource = 'usage_report' | 'bill' | 'observed_mix' | 'none';

export interface GapBucket {
  width: 'day' | 'hour';
  startMicros: bigint;
  accountId: string;
  model: string;
  matchStatus: MatchStatus;
  grade: Grade;
  /** null: unmatched. */
  confidenceScore: number | null;
  visibility: Visibility;
  provisional: boolean;
  flagged: boolean;
  reason: BucketReason | null;
  gapMinutes: number | null;
  unobservedMinutes: number | null;
  /** Observed calls, including failed and cancelled ones. */
  eventCount: number;
  providerCostPico: Pico;
  ourCostPico: Pico;
  /** The billed quantity at the expected rates. */
  expectedCostPico: Pico | null;
  /** gap = rate + volume + own pricing, exact to the pico-dollar; all three null: the bill does not allow the split. */
  ratePico: Pico | null;
  volumePico: Pico | null;
  ownPricingPico: Pico | null;
  /** The part of the billed amount that observed calls explain, which counts at the bucket's grade. */
  matchedPico: Pico;
  lines: ClassLine[];
  waterfall: WaterfallStep[];
}

/** A meter whose charge differs from the list rate by the bill alone. */
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
  /** Pico-dollars per million tokens, rounded: the charged rate, and below the list rate. */
  billedRate: Pico;
  listRate: Pico;
  /** The sources of the list rate and their agreement. */
  priceSource: string;
  agreement: string;
  disputed: boolean;
  /** Known mistakes that explain exactly this amount; a hint, not a finding. */
  looksLike: readonly RateHint[];
}

export interface DayResult {
  buckets: GapBucket[];
  /** The evidence of each daily bucket, in the order of the buckets. */
  evidence: SeriesDayEvidence[];
  rateMismatches: RateMismatch[];
}
