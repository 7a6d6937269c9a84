/**
 * The form of every hypothesis of the library: the bill that one mistake would have produced. A hypothesis is a small
 * module that predicts; it neither scores nor decides, and knows nothing of other hypotheses.
 */

import type { TokenClass } from '../../../events/event.js';
import type { Pico } from '../../../money.js';
import { MICROS_PER_DAY, microsOfDay } from '../../../period.js';
import { isStandardTier } from '../../../pricing/rateCards.js';
import type { DayRates } from '../../audit/dayRates.js';
import type { ObservedSource, SeriesDayEvidence } from '../../evidence/evidenceText.js';
import type { Grade } from '../../matching/cells.js';
import type { Meter, MeterPart } from '../../matching/meters.js';
import type { BenignKind, ViolationKind } from '../../taxonomy.js';
import { EPISODE_DAYS_MIN, EPISODE_PERCENT_MAX, MOST_PERCENT } from '../calibration.js';

/** One meter of a day: what was billed, and what was seen of it. Quantities in 1e-12 tokens. */
export interface MeterDay {
  /** Place in the day's meters: predictions speak of meters by it. */
  readonly index: number;
  /** As billed. A class that was observed and is on no line of the bill has a meter of amount and quantity zero. */
  readonly meter: Meter;
  readonly tokenClass: TokenClass;
  /**
   * The circumstances of the quantity, quantities as weights: the meter's own parts, else those of what was observed, else
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
  /** Set where costs of a day's last hours are charged on the next day (bookedLate.ts). */
  readonly booked?: Booked;
}

/** Tells the lines of a series' bills apart, the same on all days. */
export const lineKey = ({ meter }: MeterDay): string =>
  `${meter.tokenClass}|${meter.serviceTier}|${meter.isBatch}|${meter.longContext}|${meter.region}`;

/** Of what the usage report counts of a class on a day (`of`), so much is on the day's bill (`on`). */
export interface Booked {
  readonly on: bigint;
  readonly of: bigint;
}

/** A series-day as hypotheses see it. */
export interface SeriesDay {
  readonly day: string;
  readonly evidence: SeriesDayEvidence;
  readonly pricedAs: string | null;
  readonly meters: readonly MeterDay[];
  /** The agreed price (contract, override, list), and the list alone. */
  readonly agreed: DayRates;
  readonly list: DayRates;
  /** Percent below what is entered that the days about this one were charged at, and that `agreed` is less for it. */
  readonly untoldDiscount?: number;
  /** The calendar days beside it, where the series has them: what was used on one day may be billed on the next. */
  readonly before?: SeriesDay | null;
  readonly after?: SeriesDay | null;
}

/** Facts beside a series: the same for all its days. */
export interface SeriesContext {
  /** First and last day that has evidence. */
  readonly firstDay: string;
  readonly lastDay: string;
  /** True where the organization has entered a contract for the model at some time. */
  readonly hasContract: boolean;
  /** The fields that calls of the series have reported on at least one day: its clients lack any other. */
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

/** The value of `chargedTier` for batch calls, which are no service tier of their own. */
export const BATCH = 'batch';

/**
 * The facts about a variant that decisions rest on, beside its predictions. Variants of one name have the same traits.
 */
export interface Traits {
  /** It moves a part that is whatever the bill makes it, so it fits more than the whole does. */
  readonly isAnyPart?: true;
  /** It charges for this service tier, or for `batch`. */
  readonly chargedTier?: string;
  /** It charges for a tier that no line names, although the tier's label is known. */
  readonly isTierUnnamed?: true;
  /** Its rates are on no line of the model's own price list: a price list may as well have them. */
  readonly isAnyPrice?: true;
  /** It takes a contract's discount off once more. */
  readonly isMoreDiscount?: true;
  /** It charges everything this many percent below what is entered. */
  readonly percentBelow?: number;
  /** Whether it can be what a whole run of days shows; absent: any run that its hypothesis fits. */
  lastsAs?(run: Run, context: SeriesContext): boolean;
}

/** The same variants with these traits. */
export function having<V extends Variant>(traits: Traits, variants: readonly V[]): V[] {
  return variants.map((variant) => ({ ...variant, ...traits }));
}

/**
 * One way in which the mistake may have been made. Both functions are pure; with the null hypothesis the first is the
 * quantity at the agreed rates and the second the observed quantity, and so they are for meters that are not touched.
 */
export interface Variant extends Traits {
  /**
   * Written for people, and different for each variant of one kind: `input_rate`, `list_price`, `tier:priority`. Stable,
   * since findings keep it. No decision reads it; decisions read traits.
   */
  readonly name: string;
  /** The charge for this quantity of the meter; null: unknown. */
  amountOf(meter: MeterDay, quantity: bigint): Pico | null;
  /**
   * The quantity that the bill would show if all calls had been seen, from what was observed; null: any quantity would
   * do, so a fit of it proves nothing.
   */
  quantityOf(meter: MeterDay): bigint | null;
  /** Its quantities are already those of what is booked on the day: see `Booked`. */
  readonly isOfBooking?: true;
  /**
   * Calls alone give the quantities, to the unit: nothing of them is fitted to the bill, so that a bill with the very
   * count is no accident.
   */
  readonly isCounted?: true;
  /** Whether the hypothesis differs from the null on the meter. */
  touches(meter: MeterDay): boolean;
  /**
   * Units too many (negative: too few) that hold whatever the unobserved calls were, for variants that know; a
   * finding then takes these alone, and need not know that all was seen. Absent: all that is predicted beyond what was seen.
   */
  provenOf?(meter: MeterDay): bigint;
  /** The cost of moved units at the agreed rates; null, or absent: as the meter's own mixture. */
  worthOf?(meter: MeterDay, units: bigint): Pico | null;
}

export interface Hypothesis {
  readonly kind: ViolationKind | BenignKind;
  /** rate: the price of a unit is wrong; quantity: the units are. */
  readonly nature: 'rate' | 'quantity';
  /** The party whose mistake it is. `own`: the user's, with something to change. `none`: no mistake. */
  readonly blame: 'provider' | 'own' | 'none';
  /** Evidence without which the hypothesis can be found but never be HIGH. */
  readonly needs: readonly EvidenceNeed[];
  /** The best grade that it can have, whatever the probability; absent: HIGH. */
  readonly highest?: Grade;
  /** Its variants leave quantities free, and one ratio has to give them on all days of a run. */
  readonly isOneRatio?: true;
  /**
   * For a person to look at, never to ask money back for: the data cannot separate it from the client's own mistakes.
   */
  readonly reviewOnly?: true;
  /** Every way in which it can have been made on this day; empty where the day cannot show it. */
  variants(day: SeriesDay, context: SeriesContext): readonly Variant[];
  /** Whether it can be what a whole run of days shows; absent: any run. */
  fits?(run: Run, context: SeriesContext): boolean;
  /** The mistake, as one sentence. */
  describe(variant: string): string;
  /** Advice, as whole sentences. */
  advise?(variant: string, sources: readonly ObservedSource[]): readonly string[];
}

/** Whether a variant of the hypothesis can be what a whole run of days shows. */
export function canLast(hypothesis: Hypothesis, traits: Traits, run: Run, context: SeriesContext): boolean {
  return hypothesis.fits?.(run, context) !== false && traits.lastsAs?.(run, context) !== false;
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
  'place',
] as const;
export type EvidenceNeed = (typeof EVIDENCE_NEEDS)[number];

function daysBetween(first: string, last: string): bigint {
  return (microsOfDay(last) - microsOfDay(first)) / MICROS_PER_DAY + 1n;
}

/** Whether a run is nearly all that there is: a fault of the measuring does not come and go. */
export function coversMost(run: Run, context: Run): boolean {
  return (
    daysBetween(run.firstDay, run.lastDay) * 100n >=
    daysBetween(context.firstDay, context.lastDay) * MOST_PERCENT
  );
}

/** Whether it begins with the series or lasts to its end: nothing shows then that the old price came back. */
export function touchesEdge(run: Run, context: SeriesContext): boolean {
  return run.firstDay <= context.firstDay || run.lastDay >= context.lastDay;
}

/** Whether it lasts more than a day: on one day alone many things look like a rate or a count of their own. */
export function lasts(run: Run): boolean {
  return run.firstDay < run.lastDay;
}

/** A stretch of some days within a longer history, with an end on both sides: something happened, and was put right. */
export function isEpisode(run: Run, context: SeriesContext): boolean {
  const days = daysBetween(run.firstDay, run.lastDay);
  const all = daysBetween(context.firstDay, context.lastDay);
  return days >= EPISODE_DAYS_MIN && days * 100n <= all * EPISODE_PERCENT_MAX && !touchesEdge(run, context);
}

/**
 * The sentence of a variant. A variant may carry a value after a colon (`tier:priority`); its sentence is then under
 * the name before it and holds the value in place of `%`.
 */
export function sentenceOf(words: Readonly<Record<string, string>>, variant: string): string {
  const direct = words[variant];
  if (direct !== undefined) return direct;
  const value = variant.slice(variant.indexOf(':') + 1);
  return (textOf(words, variant) ?? words.other ?? '').replaceAll('%', value);
}

/** The text for a variant: under its name, or under the part of its name before the colon. */
export function textOf<T>(texts: Readonly<Record<string, T>>, variant: string): T | undefined {
  const colon = variant.indexOf(':');
  return texts[colon < 0 ? variant : variant.slice(0, colon)];
}

/** The services to change, by name: "service billing-bot", "services a and b". */
export function servicesOf(sources: readonly ObservedSource[], all = false): string {
  const lacking = all ? [] : sources.filter((source) => source.callsWithoutCache > 0);
  const names = (lacking.length > 0 ? lacking : sources)
    .map((source) => (source.serviceName === '' ? 'that name no service' : source.serviceName))
    .sort();
  if (names.length === 0) return 'the calls of this model';
  const last = names.at(-1) ?? '';
  return names.length === 1 ? `service ${last}` : `services ${names.slice(0, -1).join(', ')} and ${last}`;
}

/** Facts that hold for all days of a series; `evidence` in any order, at least one day. */
export function seriesContextOf(evidence: readonly SeriesDayEvidence[], hasContract: boolean): SeriesContext {
  const days = evidence.map((one) => one.day).sort();
  const calls = evidence.flatMap((one) => one.observed);
  return {
    firstDay: days[0] ?? '',
    lastDay: days.at(-1) ?? '',
    hasContract,
    tells: {
      serviceTier: calls.some((one) => one.serviceTier !== ''),
      otherTiers: calls.some((one) => !isStandardTier(one.serviceTier)),
      batch: calls.some((one) => one.isBatch),
      cache: calls.some(
        ({ tokens }) => tokens.cache_read + tokens.cache_write_5m + tokens.cache_write_1h > 0n,
      ),
      longWrites: calls.some(({ tokens }) => tokens.cache_write_1h > 0n),
      longRequests: calls.some((one) => one.contextBand > 0),
    },
  };
}
