/**
 * The form of every hypothesis of the library: what a bill would say if one mistake had been made. A hypothesis is a small
 * module that predicts; it neither scores nor decides, and knows nothing of other hypotheses.
 */
import type { TokenClass } from '../../events/event.js';
import type { Pico } from '../../money.js';
import type { DayRates } from '../audit/dayRates.js';
import type { ObservedSource, SeriesDayEvidence } from '../evidence/evidenceText.js';
import type { Grade } from '../matching/cells.js';
import type { Meter, MeterPart } from '../matching/meters.js';
import type { BenignKind, ViolationKind } from '../taxonomy.js';

/** One meter of a day: what was billed, and what was seen of it. Quantities in 1e-12 tokens. */
export interface MeterDay {
  /** Place in the day's meters: predictions speak of meters by it. */
  readonly index: number;
  /** As billed. A class that was observed and is on no line of the bill has a meter of amount and quantity zero. */
  readonly meter: Meter;
  readonly tokenClass: TokenClass;
  /**
   * What the quantity was used under, quantities as weights: the meter's own parts, else those of what was observed, else
   * the circumstances that the meter itself names. Never empty.
   */
  readonly mix: readonly MeterPart[];
  /** Billed quantity at the agreed rates; null where quantity or rate is unknown. */
  readonly expectedPico: Pico | null;
  /** Used by calls that ended well or were cut off, under the circumstances that this meter takes. */
  readonly observed: bigint;
  /** Used by attempts that failed: no part of `observed`. */
  readonly failed: bigint;
  /** The part of `observed` that belongs to calls that were cut off. */
  readonly interrupted: bigint;
}

/** A series-day as hypotheses see it. */
export interface SeriesDay {
  readonly day: string;
  readonly evidence: SeriesDayEvidence;
  readonly pricedAs: string | null;
  readonly meters: readonly MeterDay[];
  /** What should hold (contract, override, list), and the list alone. */
  readonly agreed: DayRates;
  readonly list: DayRates;
  /** Percent below what is entered that the days about this one were charged at, and that `agreed` is less for it. */
  readonly untoldDiscount?: number;
  /** The calendar days beside it, where the series has them: what was used on one day may be billed on the next. */
  readonly before?: SeriesDay | null;
  readonly after?: SeriesDay | null;
}

/** What is known beside a series: the same for all its days. */
export interface SeriesContext {
  /** First and last day that has evidence. */
  readonly firstDay: string;
  readonly lastDay: string;
  /** True where the organization has entered a contract for the model at some time. */
  readonly hasContract: boolean;
  /** What calls of the series have told on at least one day: what none ever tells, its clients cannot tell. */
  readonly tells: CallsTell;
}

export interface CallsTell {
  readonly serviceTier: boolean;
  /** A tier that is not the ordinary one. */
  readonly otherTiers: boolean;
  readonly batch: boolean;
  readonly cache: boolean;
  /** Cache writes by their lifetime. */
  readonly longWrites: boolean;
  /** Requests beyond a boundary of length. */
  readonly longRequests: boolean;
}

/** A run of days with one explanation. */
export interface Run {
  readonly firstDay: string;
  readonly lastDay: string;
}

/**
 * One way in which the mistake may have been made. Both functions are pure; with the null hypothesis the first is the
 * quantity at the agreed rates and the second the observed quantity, and so they are for meters that are not touched.
 */
export interface Variant {
  /** Tells the variants of one kind apart, e.g. `input_rate`, `list_price`, `tier:priority`. Stable: findings keep it. */
  readonly name: string;
  /** What would be charged for this quantity of the meter; null: it cannot say. */
  amountOf(meter: MeterDay, quantity: bigint): Pico | null;
  /**
   * The quantity that the bill would show if all calls had been seen, from what was observed; null: any quantity would
   * do, so a fit of it proves nothing.
   */
  quantityOf(meter: MeterDay): bigint | null;
  /** Whether the hypothesis says anything else than the null about the meter. */
  touches(meter: MeterDay): boolean;
  /**
   * Units too many (negative: too few) that hold whatever the calls were that nobody saw, for variants that can tell; a
   * finding then takes these alone, and need not know that all was seen. Absent: all that is predicted beyond what was seen.
   */
  provenOf?(meter: MeterDay): bigint;
}

export interface Hypothesis {
  readonly kind: ViolationKind | BenignKind;
  /** rate: the price of a unit is wrong; quantity: the units are. */
  readonly nature: 'rate' | 'quantity';
  /** Whose it is. `own`: the user's, with something to change. `none`: nobody's mistake. */
  readonly blame: 'provider' | 'own' | 'none';
  /** Evidence without which the hypothesis can be found but never be HIGH. */
  readonly needs: readonly EvidenceNeed[];
  /** The best grade that it can have, whatever the probability; absent: HIGH. */
  readonly highest?: Grade;
  /** For a person to look at, never to ask money back for: the data cannot tell it from the client's own doing. */
  readonly reviewOnly?: true;
  /** Every way in which it can have been made on this day; empty where the day cannot show it. */
  variants(day: SeriesDay, context: SeriesContext): readonly Variant[];
  /** Whether it can be what a whole run of days shows; absent: any run. */
  fits?(run: Run, context: SeriesContext, variant: string): boolean;
  /** What happened, as one sentence. */
  describe(variant: string): string;
  /** What to change or to ask for, as whole sentences. */
  advise?(variant: string, sources: readonly ObservedSource[]): readonly string[];
}

export const EVIDENCE_NEEDS = [
  'quantity',
  'second_price_source',
  'contract',
  'complete_classes',
  'full_coverage',
  'failed_attempts',
  'refusals_told',
  'usage_report',
  'request_counts',
] as const;
export type EvidenceNeed = (typeof EVIDENCE_NEEDS)[number];
