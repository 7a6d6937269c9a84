/** What a series shows beside a run: whether the bill was ever right of the same lines, and when our prices change. */
import { shiftDay } from '../../period.js';
import { coversMost } from '../hypotheses/runs.js';
import { CENT, type MeterReading, meterKey } from './reading.js';
import type { JudgedDay, RunOfDays } from './runs.js';

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
  const spokenOf = new Set(run.days.flatMap((one) => touchedOf(one.judged).map(meterKey)));
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

/** The meters that a day's explanation speaks about. */
export function touchedOf({ work, shown }: JudgedDay): MeterReading[] {
  const variant = shown?.variant;
  return variant ? work.reading.meters.filter(({ of }) => variant.touches(of)) : [];
}

/**
 * Whether the day has one of these lines, and all of them that it has are right: as entered or, for what is explained against
 * a discount that nobody entered, at that discount.
 */
function isRightOf(
  { work, state }: JudgedDay,
  keys: ReadonlySet<string>,
  terms: ReadonlySet<number | undefined>,
): boolean {
  const { reading } = work;
  if (!reading.judged) return false;
  // Right at a discount that nobody entered is not right as entered.
  if (reading.day.untoldDiscount !== undefined && !terms.has(reading.day.untoldDiscount)) return false;
  const meters = reading.meters.filter((one) => isReported(one) && keys.has(meterKey(one)));
  if (meters.length === 0) return false;
  if (state.kind === 'contract_terms') return terms.has(Number(state.variant.split(':')[1]));
  if (reading.depth !== 'quantities') return state.kind === 'none';
  const of = (evidence: MeterReading['rateEvidence']) =>
    meters.filter((one) => one.rateEvidence === evidence);
  const [sharp, soft] = [of('sharp'), of('soft')];
  if (sharp.length > 0) return sharp.every(isAsExpected);
  // Where calls tell the mix, a day of which nothing is said may still be far from what is entered.
  return state.kind === 'none' && soft.every(isAsExpected);
}

const hasRightLine = ({ work: { reading } }: JudgedDay): boolean =>
  reading.judged &&
  reading.meters.some((one) => one.rateEvidence !== 'none' && isReported(one) && isAsExpected(one));

const isAsExpected = (one: MeterReading): boolean =>
  Math.abs(one.amount - Number(one.of.expectedPico ?? 0n)) <= one.rounding + 3 * one.rateSigma;

/** Exact amounts show a rate from a few times their rounding on; what is compared with calls, from a cent. */
function isReported(meter: MeterReading): boolean {
  return meter.value > (meter.rateEvidence === 'sharp' ? 10 * meter.rounding : CENT);
}

/** Whether the agreed price of the model begins to hold on one of these days, or on the day after it. */
export function isAtPriceChange({ days }: RunOfDays): boolean {
  return days.every(({ judged }) => {
    const { day, agreed, pricedAs } = judged.work.reading.day;
    const periods = pricedAs === null ? [] : (agreed.periodsOf(pricedAs)?.periods ?? []);
    return periods.some(({ fromDay }) => fromDay === day || fromDay === shiftDay(day, 1));
  });
}
