/** Evidence beside a run: whether the bill was ever right on the same lines, and when our prices change. */

import { shiftDay } from '../../../period.js';
import {
  CHEAPER,
  DAYS_MIN,
  MISSED_MAX,
  MISSED_SURE,
  RATE_SIGMAS,
  RATIO_SHARE,
  REPORTED_ROUNDINGS,
  RIGHT_SHARE,
  ROUNDING,
  SIGMA_MIN,
  UNDECIDED,
  UNTOLD_DISCOUNT_DAYS_MIN,
  USUAL_SHARE,
} from '../calibration.js';
import { coversMost, lineKey } from '../causes/cause.js';
import type { Gate } from './finding.js';
import { median } from './fit.js';
import type { JudgedDay, RunOfDays } from './judge.js';
import { CENT, type MeterReading } from './reading.js';
import type { State } from './states.js';

export interface RunHistory {
  /** On some day before it, and on some day after it, the bill has the same lines and is right of them. */
  readonly rightBefore: boolean;
  readonly rightAfter: boolean;
  /**
   * Nothing shows that it was ever otherwise: the bill is wrong on all days, or on nearly all and up to an end of what is
   * known.
   */
  readonly isWhole: boolean;
  /** No line of the model was ever as entered, on any day: nothing shows that our prices of it are right at all. */
  readonly isNeverRight: boolean;
}

export function historyOf(run: RunOfDays, judged: readonly JudgedDay[]): RunHistory {
  const days = run.days.map((one) => one.judged.work.reading.day.day);
  const [first, last] = [days[0] ?? '', days.at(-1) ?? ''];
  const spokenOf = new Set(run.days.flatMap((one) => touchedOf(one.judged).map(({ of }) => lineKey(of))));
  const terms = new Set(run.days.map((one) => one.judged.work.reading.day.untoldDiscount));
  const right = judged
    .filter((one) => isRightOf(one, spokenOf, terms))
    .map((one) => one.work.reading.day.day);
  const rightBefore = right.some((day) => day < first);
  const rightAfter = right.some((day) => day > last);
  const known = judged.filter((one) => one.work.reading.judged).map((one) => one.work.reading.day.day);
  const span = { firstDay: known[0] ?? first, lastDay: known.at(-1) ?? last };
  const isMost = coversMost({ firstDay: first, lastDay: last }, span);
  return {
    rightBefore,
    rightAfter,
    isWhole: (!rightBefore && !rightAfter) || (isMost && !(rightBefore && rightAfter)),
    isNeverRight: !judged.some(hasRightLine),
  };
}

/** The meters that a day's explanation is about. */
export function touchedOf({ work, shown }: JudgedDay): MeterReading[] {
  const variant = shown?.variant;
  return variant ? work.reading.meters.filter(({ of }) => variant.touches(of)) : [];
}

/** Whether the provider's bill and its usage report show the mistake by themselves, whatever calls were seen. */
export const restsOnReports = ({ state, shown }: JudgedDay): boolean =>
  shown?.variant?.provenOf !== undefined && state.hypothesis?.needs.includes('usage_report') === true;

/**
 * Whether the day has one of these lines, and all of them that it has are right: as entered or, for what is explained against
 * a discount that is not entered, at that discount.
 */
function isRightOf(
  { work, state }: JudgedDay,
  keys: ReadonlySet<string>,
  terms: ReadonlySet<number | undefined>,
): boolean {
  const { reading } = work;
  if (!reading.judged) return false;
  // A charge that is right at a discount that is not entered is not right as entered.
  if (reading.day.untoldDiscount !== undefined && !terms.has(reading.day.untoldDiscount)) return false;
  const meters = reading.meters.filter((one) => isReported(one) && keys.has(lineKey(one.of)));
  if (meters.length === 0) return false;
  if (isTerms(state)) return terms.has(state.traits.percentBelow);
  if (reading.depth !== 'quantities') return state.kind === 'none';
  const of = (evidence: MeterReading['rateEvidence']) =>
    meters.filter((one) => one.rateEvidence === evidence);
  const [sharp, soft] = [of('sharp'), of('soft')];
  if (sharp.length > 0) return sharp.every(isAsExpected);
  // Where calls determine the mix, a day without an explanation may still be far from the entered price.
  return state.kind === 'none' && soft.every(isAsExpected);
}

const hasRightLine = ({ work: { reading } }: JudgedDay): boolean =>
  reading.judged &&
  reading.meters.some((one) => one.rateEvidence !== 'none' && isReported(one) && isAsExpected(one));

const isAsExpected = (one: MeterReading): boolean =>
  Math.abs(one.amount - Number(one.of.expectedPico ?? 0n)) <= one.rounding + RATE_SIGMAS * one.rateSigma;

/** Exact amounts show a rate from a few times their rounding on; what is compared with calls, from a cent. */
function isReported(meter: MeterReading): boolean {
  return meter.value > (meter.rateEvidence === 'sharp' ? REPORTED_ROUNDINGS * meter.rounding : CENT);
}

/** Whether the agreed price of the model begins to hold on one of these days, or on the day after it. */
export function isAtPriceChange({ days }: RunOfDays): boolean {
  return days.every(({ judged }) => {
    const { day, agreed, pricedAs } = judged.work.reading.day;
    const periods = pricedAs === null ? [] : (agreed.periodsOf(pricedAs)?.periods ?? []);
    return periods.some(({ fromDay }) => fromDay === day || fromDay === shiftDay(day, 1));
  });
}

/**
 * At most these odds has a run of wrong rates to be the provider's mistake and not our price's, which can be old or differ from
 * the agreement although sources agree on it; null where a contract sets it, or the history leaves no such doubt: where the
 * wrong rate has an end, our price was right then, and without one the bill cannot separate the two.
 */
export function oddsAgainstOurPrice(run: RunOfDays, history: RunHistory): number | null {
  if (!isAboutRates(run.state) || run.days.every(({ judged }) => isByContract(judged))) return null;
  // Lines that are charged as they name it show the price; the provider's usage report shows that they name it wrongly.
  if (run.days.every(({ judged }) => touchedOf(judged).every(({ of }) => of.meter.crossed))) return null;
  if (history.isWhole) return UNDECIDED;
  const hasBothEnds = history.rightBefore && history.rightAfter;
  return run.state.traits.isAnyPrice && !hasBothEnds ? UNDECIDED : null;
}

const isTerms = ({ kind }: State): boolean => kind === 'contract_terms';

/**
 * A rate that was never otherwise is ours to read first where a price list may have it as well, where no other line of
 * the model shows that our prices are right, and wherever the bill has amounts alone, which do not even separate calls
 * from prices: the provider's mistake is not considered. Nor is a discount taken off twice that has no right day before
 * it and after it; and where it has both, terms are not.
 */
export function isRuledOutByHistory(
  state: State,
  run: RunOfDays,
  history: RunHistory,
  hasContract: boolean,
): boolean {
  const comesAndGoes = history.rightBefore && history.rightAfter;
  // A discount on top of an entered contract's: the bill's where it comes and goes, else terms that are not entered.
  if (state.traits.isMoreDiscount) return !comesAndGoes;
  if (isTerms(state)) return hasContract && comesAndGoes;
  if (!history.isWhole || !isAboutRates(state)) return false;
  const isAnyPrice = state.traits.isAnyPrice || history.isNeverRight;
  return run.days.every(
    ({ judged }) => (isAnyPrice || judged.work.reading.depth !== 'quantities') && !isByContract(judged),
  );
}

function isAboutRates({ hypothesis }: State): boolean {
  return hypothesis?.nature === 'rate' && hypothesis.blame === 'provider';
}

/** A contract or another document sets the price. */
function isByContract({ work }: JudgedDay): boolean {
  const { day } = work.reading;
  return day.pricedAs !== null && day.agreed.isDocumented(day.pricedAs);
}

/**
 * Whether unobserved calls can be all that a run of lower rates is short of: of a cheaper use, on a line of the bill that
 * does not separate batch from other calls, and that is then rightly charged less than the calls seen make one expect.
 */
export function isCheaperUse(run: RunOfDays): boolean {
  const { hypothesis } = run.state;
  if (hypothesis?.nature !== 'rate' || hypothesis.blame !== 'provider') return false;
  return run.days.every(({ judged, impactPico }) => impactPico < 0n && canBeUnseen(judged));
}

function canBeUnseen(judged: JudgedDay): boolean {
  let [short, unseen] = [0, 0];
  for (const { of, amount, billed, observed } of touchedOf(judged)) {
    if (of.meter.isBatch !== null || !(billed > 0)) return false;
    const expected = Number(of.expectedPico ?? 0n);
    short += Math.max(0, expected - amount);
    unseen += expected * Math.max(0, 1 - observed / billed);
  }
  return short > 0 && short <= unseen * CHEAPER * ROUNDING;
}

/**
 * Whether a mistake of counting predicts a direction and not the counts: over some days its prediction is farther from
 * the bill than a quarter of what the bill has too many or too few.
 */
export function missesCounts(run: RunOfDays): boolean {
  if (run.state.hypothesis?.blame !== 'provider' || run.days.length < DAYS_MIN) return false;
  return missedShare(run) > MISSED_MAX;
}

/** Whether it predicts the counts themselves, so that nothing else could have left them so. */
export const givesCounts = (run: RunOfDays): boolean => missedShare(run) <= MISSED_SURE;

/**
 * The distance of its counts from the bill's, in dollars, as a share of its impact; 0 where it takes them from the
 * bill.
 */
function missedShare(run: RunOfDays): number {
  if (run.state.hypothesis?.nature !== 'quantity') return 0;
  let [missed, moved] = [0, 0];
  for (const { judged } of run.days) {
    const { shown } = judged;
    if (!shown?.variant || shown.variant.provenOf) return 0;
    const booked = new Map<string, number>();
    for (const { of, billed, observed, value } of touchedOf(judged)) {
      const predicted = shown.prediction.quantities[of.index] ?? Number.NaN;
      if (Number.isNaN(predicted) || !(billed > 0)) continue;
      const perUnit = value / Math.max(billed, predicted, observed, 1);
      const off = perUnit * (billed * Math.min(1, shown.fit.coverage) - predicted);
      // Of a class of which a part is booked on another day, its lines together show the count.
      if (of.booked) booked.set(of.tokenClass, (booked.get(of.tokenClass) ?? 0) + off);
      else missed += Math.abs(off);
      moved += perUnit * Math.abs(predicted - observed);
    }
    for (const off of booked.values()) missed += Math.abs(off);
  }
  return missed === 0 ? 0 : missed / moved;
}

/**
 * Whether a run that leaves quantities free is no factor of the provider's: what is fitted anew on each day is no more than
 * that the day is off. A meter that counts by a factor does so on every day, to the token but for hours that are booked on
 * another day, and it counted right before and afterwards. What clients leave out differs from day to day, and goes on.
 */
export function isNoFactor(run: RunOfDays, judged: readonly JudgedDay[]): boolean {
  if (!run.state.hypothesis?.isOneRatio) return false;
  const ratios = run.days.flatMap(({ judged: day }) => ratioOf(touchedOf(day)));
  if (ratios.length === 0) return false;
  const factor = median(ratios);
  const apart = median(ratios.map((one) => Math.abs(one - factor)));
  if (apart > Math.max(RATIO_SHARE * Math.abs(factor), SIGMA_MIN)) return true;
  const classes = new Set(
    run.days.flatMap(({ judged: day }) => touchedOf(day).map(({ of }) => of.tokenClass)),
  );
  const days = run.days.map(({ judged: day }) => day.work.reading.day.day);
  const right = judged.flatMap(({ work: { reading } }) => {
    const [ratio] = ratioOf(reading.meters.filter(({ of }) => classes.has(of.tokenClass)));
    const isRight =
      reading.judged && ratio !== undefined && Math.abs(ratio) <= RIGHT_SHARE * Math.abs(factor);
    return isRight ? [reading.day.day] : [];
  });
  return !right.some((day) => day < (days[0] ?? '')) || !right.some((day) => day > (days.at(-1) ?? ''));
}

/** The logarithm of billed ÷ observed over these meters, if they have both. */
function ratioOf(meters: readonly MeterReading[]): number[] {
  const [billed, observed] = [sum(meters, (one) => one.billed), sum(meters, (one) => one.observed)];
  return billed > 0 && observed > 0 ? [Math.log(billed / observed)] : [];
}

const sum = <T>(values: readonly T[], of: (one: T) => number): number =>
  values.reduce((total, one) => total + of(one), 0);

/**
 * Whether an explanation with too large a residual is no more than a guess: the next one is hardly further, or it needs
 * on most of its days many more calls to be missing than usual, which is two mistakes at once. `usual` is the share of
 * calls that is seen on days without any mistake.
 */
export function isGuess({ days }: RunOfDays, missing: readonly Gate[], usual: number): boolean {
  if (!missing.includes('residual_within_tolerance')) return false;
  const short = days.filter(({ judged: { shown } }) => (shown?.fit.coverage ?? usual) < usual * USUAL_SHARE);
  return missing.includes('odds_against_next') || short.length * 2 > days.length;
}

/**
 * Discounts that are not entered, in percent, by the days that something else has to explain, by rates or by counts. Where all
 * days about them were charged exactly that much below what is entered, the discount is taken for agreed, and what else a day
 * shows is explained against it.
 */
export function untoldDiscounts(
  judged: readonly JudgedDay[],
  byCounts: readonly JudgedDay[],
): ReadonlyMap<string, number> {
  const days = judged.filter(({ work }) => work.reading.judged && work.reading.depth === 'quantities');
  const miscounted = new Set(byCounts.filter(isMiscounted).map(({ work }) => work.reading.day.day));
  const isOdd = ({ work }: JudgedDay) => miscounted.has(work.reading.day.day);
  const shown = days.map((one) => {
    const discount = discountOf(one);
    return discount === 0 && isOdd(one) ? undefined : discount;
  });
  const counts = new Map<number, number>();
  for (const one of shown) if (one) counts.set(one, (counts.get(one) ?? 0) + 1);
  const found = new Map<string, number>();
  days.forEach((one, at) => {
    const { work, state, parts } = one;
    const isRight = state.kind === 'none' && parts.unexplained.length === 0 && !isOdd(one);
    if (shown[at] !== undefined || isRight) return;
    const before = shown.slice(0, at).findLast((one) => one !== undefined);
    const after = shown.slice(at + 1).find((one) => one !== undefined);
    const discount = before ?? after;
    if (
      !discount ||
      (after ?? discount) !== discount ||
      (counts.get(discount) ?? 0) < UNTOLD_DISCOUNT_DAYS_MIN
    )
      return;
    found.set(work.reading.day.day, discount);
  });
  return found;
}

/**
 * The provider counted use on lines where it does not belong: what these are charged at may be the list's, whatever is
 * agreed.
 */
const isMiscounted = ({ state, parts }: JudgedDay): boolean =>
  state.hypothesis?.blame === 'provider' && parts.explained.length > 0;

/**
 * Of a day on which nothing else shows: its discount, 0 for none. Undefined where something is left to explain, and where
 * nothing is only because the bill leaves open who used what.
 */
function discountOf({ state, parts, work }: JudgedDay): number | undefined {
  if (parts.unexplained.length > 0) return undefined;
  const isReported = work.reading.meters.some((one) => one.rateEvidence === 'sharp' && one.amount > CENT);
  if (state.kind === 'none') return isReported ? 0 : undefined;
  return isTerms(state) ? (state.traits.percentBelow ?? 0) : undefined;
}
