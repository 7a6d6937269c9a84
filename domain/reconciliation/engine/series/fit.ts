/**
 * The fit of a prediction to a day: natural logarithms of likelihoods, 0 for a perfect fit, cut off below so that no
 * single meter decides alone. The share of calls that was seen is common to all meters of a day and belongs to the fit.
 */
import { QUANTITY_ONE } from '../../../billing/billedRow.js';
import { groupBy } from '../../../groupBy.js';
import {
  ALMOST_NOTHING,
  ASSUMED_FLOOR,
  BATCH_SIGMA,
  CALL_SCATTER,
  COUNTED_CENTS,
  COUNTED_EXACTLY,
  COVERAGE_FROM,
  COVERAGE_TO,
  EDGE,
  EXACT_MAX,
  FREE,
  LOOSE,
  MEDIAN_TO_SIGMA,
  OPEN_FLOORS,
  OWN_COVERAGE,
  SCATTER_DAYS_MIN,
  SHARE_SIGMA,
  SIGMA_MAX,
  SIGMA_MIN,
  SIGMA_ROOM,
  SILENT,
  SINGLE,
  SOFT_FLOOR,
  SOFT_OPEN_FLOOR,
  TOO_ALIKE,
  USUAL_COVERAGE_MIN,
  USUAL_SPREAD_MIN,
  USUAL_SPREADS,
} from '../calibration.js';
import type { MeterDay, Variant } from '../causes/cause.js';
import { dearerByHour, natsOfHours } from '../causes/hours.js';
import { CENT, type DayReading, isMixAssumed, type MeterReading, type Prediction } from './reading.js';

/** Estimates that a series' days have in common. */
export interface SeriesNoise {
  /** Usual share of the billed quantities that is observed, and how far quantities scatter about it. */
  readonly coverage: number;
  readonly quantitySigma: number;
  /** The same by token class, where the series has shown one of its own. */
  readonly classSigmas: ReadonlyMap<string, number>;
}

/** The least that a meter can score. */
export interface Floors {
  readonly rate: number;
  readonly quantity: number;
}

/**
 * Aspects that are judged by themselves. Where a bill has quantities, its rates need no calls and its counts need no
 * rates: both may be wrong on one day, each for its own reason. Amounts alone are rates and counts in one.
 */
export type Aspect = 'rates' | 'counts' | 'amounts';

export interface Fit {
  readonly rate: number;
  readonly quantity: number;
  /** The share of calls seen under which quantities fit best. */
  readonly coverage: number;
}

/** The fit under some floors: what it compares is worked out once for several of them. */
export function fitsOf(
  reading: DayReading,
  prediction: Prediction,
  noise: SeriesNoise,
): (floors: Floors) => Fit {
  const deviations = reading.comparable ? deviationsOf(reading, prediction, noise) : [];
  const candidates = reading.comparable ? coverageCandidates(deviations, noise) : [];
  return (floors) => {
    const rate = rateFit(reading, prediction, floors, floors);
    if (!reading.comparable) return { rate, quantity: 0, coverage: noise.coverage };
    let best = { quantity: Number.NEGATIVE_INFINITY, coverage: noise.coverage };
    for (const coverage of candidates) {
      const quantity = quantityFit(deviations, coverage, reading.calls, noise, floors);
      if (quantity > best.quantity) best = { quantity, coverage };
    }
    return { rate, ...best };
  };
}

/**
 * The part of a fit that an aspect is judged by. Moved calls change amounts as well: of rates, counts are judged by what they
 * give beyond the null alone.
 */
export function fitOf(fit: Fit, aspect: Aspect, nullRate: number): Fit {
  if (aspect === 'amounts') return fit;
  return aspect === 'rates' ? { ...fit, quantity: 0 } : { ...fit, rate: fit.rate - nullRate };
}

/**
 * Amounts against quantity × rate, where the bill has quantities. `beside`: the least that meters score of which the prediction
 * says nothing else than the null.
 */
export function rateFit(
  reading: DayReading,
  { amounts, touched, repriced }: Prediction,
  floors: Floors,
  beside: Floors,
): number {
  let total = 0;
  reading.meters.forEach((meter, at) => {
    const least = touched?.[at] === false ? beside : floors;
    total += rateScore(meter, amounts[at] ?? Number.NaN, least, repriced?.[at]);
  });
  return total;
}

/** `isNamed`: a mistake is held to give this amount. */
export function rateScore(meter: MeterReading, predicted: number, floors: Floors, isNamed = false): number {
  if (meter.rateEvidence === 'none') return 0;
  if (Number.isNaN(predicted)) return SILENT;
  const deviation = Math.abs(meter.amount - predicted);
  if (deviation <= meter.rounding) return 0;
  const near = Math.max(-0.5 * (deviation / meter.rateSigma) ** 2, rateFloor(meter, floors));
  return isNamed ? near - exactness(meter) : near;
}

function rateFloor(meter: MeterReading, floors: Floors): number {
  if (floors !== OPEN_FLOORS)
    return meter.rateEvidence === 'soft' ? Math.max(SOFT_FLOOR, floors.rate) : floors.rate;
  if (meter.rateEvidence === 'sharp') return floors.rate - exactness(meter);
  return isMixAssumed(meter) ? ASSUMED_FLOOR : SOFT_OPEN_FLOOR;
}

/**
 * Nats by which an amount that agrees to the rounding of its row says more than one within the usual noise: so many other
 * amounts are as near.
 */
const exactness = ({ rateEvidence, rateSigma, rounding }: MeterReading): number =>
  rateEvidence === 'sharp' ? Math.min(EXACT_MAX, Math.max(0, Math.log(rateSigma / rounding))) : 0;

/** A comparison of quantities (or of amounts in their place): log(billed ÷ predicted) if everything was seen. */
export interface Deviation {
  logRatio: number;
  sigma: number;
  /** No size would surprise. */
  isFree: boolean;
  weight: number;
  tokenClass: string;
  /** Tells uses apart: a service has calls of some of them. */
  use: string;
  /** log(billed ÷ observed), of what is free; NaN where none was seen. */
  ownRatio: number;
  /** The worth of a bill with the very count that calls give, nats; 0 where it has another. */
  exact: number;
}

export function deviationsOf(reading: DayReading, prediction: Prediction, noise: SeriesNoise): Deviation[] {
  if (reading.depth === 'total') {
    const predicted = prediction.amounts.reduce(
      (sum, amount) => sum + (Number.isNaN(amount) ? 0 : amount),
      0,
    );
    const all = { seen: reading.billedAmount, observed: 0, tokenClass: '', use: '' };
    return [deviation(all, predicted, reading.billedAmount, noise.quantitySigma, 0)];
  }
  return groupsOf(reading).map((group) => {
    const { of, first, hasQuantity, seen, observed, value } = group;
    const predictions = hasQuantity ? prediction.quantities : prediction.amounts;
    let predicted = 0;
    for (const at of of) predicted += predictions[at] ?? Number.NaN;
    // The predicted cost beyond the billed one counts as well: else any prediction would be free for a class of cents.
    const weight = value * Math.max(1, predicted / Math.max(seen, observed, 1) || 1);
    const isCounted = prediction.isCounted && hasQuantity && of.some((at) => prediction.touched?.[at]);
    const sigma = sigmaOf(first, noise);
    const exact = isCounted && seen === predicted ? exactNats(seen, sigma) : 0;
    return deviation(group, predicted, weight, sigma, exact);
  });
}

/** Both sides of one comparison: what the bill has, quantities or else amounts, and what the calls give. */
interface Compared {
  readonly seen: number;
  readonly observed: number;
  readonly tokenClass: string;
  readonly use: string;
}

interface Group extends Compared {
  /** Places of the meters in the reading, and the first of them. */
  readonly of: readonly number[];
  readonly first: MeterReading;
  readonly hasQuantity: boolean;
  readonly value: number;
}

/**
 * Meters that differ by their place alone are compared as one: calls do not report where they were served. So are all of a
 * class of which a part is booked on another day: the hours that are have a mixture of lines of their own.
 */
function groupsOf(reading: DayReading): readonly Group[] {
  const known = GROUPS.get(reading);
  if (known) return known;
  const groups = groupBy([...reading.meters.keys()], (at) => {
    const { of, billed } = reading.meters[at] as MeterReading;
    const line = of.booked ? '' : `${useOf(of)}|${Number.isNaN(billed)}`;
    return `${of.tokenClass}|${line}`;
  });
  // Usage at amount zero is an allowance where only amounts are known.
  const made = [...groups.values()]
    .map((of) => groupOf(reading, of))
    .filter((one) => one.hasQuantity || one.seen > 0);
  GROUPS.set(reading, made);
  return made;
}

const useOf = ({ meter }: MeterDay): string => `${meter.serviceTier}|${meter.isBatch}|${meter.longContext}`;

function groupOf({ meters }: DayReading, of: readonly number[]): Group {
  const first = meters[of[0] ?? -1] as MeterReading;
  const hasQuantity = !Number.isNaN(first.billed);
  const sum = (name: 'billed' | 'amount' | 'observed' | 'value') =>
    of.reduce((total, at) => total + (meters[at]?.[name] ?? 0), 0);
  const [seen, observed] = hasQuantity ? [sum('billed'), sum('observed')] : [sum('amount'), 0];
  const { tokenClass } = first.of;
  return { of, first, hasQuantity, seen, observed, value: sum('value'), tokenClass, use: useOf(first.of) };
}

/** Worked out once for each reading, asked for with every explanation. */
const GROUPS = new WeakMap<DayReading, readonly Group[]>();

/** The scatter of a meter's quantity: that of its class, and the tokens that cut answers may still have had. */
export function sigmaOf(meter: MeterReading, noise: SeriesNoise): number {
  const own = noise.classSigmas.get(meter.of.tokenClass) ?? noise.quantitySigma;
  return Math.hypot(own, meter.isBatch ? BATCH_SIGMA : 0, meter.cutShare);
}

/**
 * A count of n that scatters by sigma hits one number by chance once in n × sigma × √(2π): equality to the unit is worth that
 * many more nats than being near.
 */
function exactNats(billed: number, sigma: number): number {
  const units = billed / Number(QUANTITY_ONE);
  return Math.log(1 + COUNTED_EXACTLY * units * sigma * Math.sqrt(2 * Math.PI));
}

function deviation(
  { seen: billed, observed, tokenClass, use }: Compared,
  predicted: number,
  value: number,
  seriesSigma: number,
  exact: number,
): Deviation {
  const sigma = Math.hypot(seriesSigma, CENT / Math.max(value, 1));
  const isFree = Number.isNaN(predicted);
  // Only free meters have a ratio of their own.
  const ownRatio = isFree && observed > 0 && billed > 0 ? Math.log(billed / observed) : Number.NaN;
  let logRatio = 0;
  if (!isFree && billed !== predicted) {
    // Half a cent is added to both, so that nothing against almost nothing is no surprise.
    const floor = value > 0 ? (0.5 * CENT * Math.max(billed, predicted)) / Math.max(value, CENT) : 1;
    logRatio = Math.log((billed + floor) / (predicted + floor));
  }
  return { logRatio, sigma, isFree, weight: value, tokenClass, use, ownRatio, exact };
}

function quantityFit(
  deviations: readonly Deviation[],
  coverage: number,
  calls: number,
  noise: SeriesNoise,
  floors: Floors,
): number {
  const logCoverage = Math.log(coverage);
  const mixture = mixtureOf(coverage, calls);
  let total = coveragePrior(coverage, noise) + freeFit(deviations);
  for (const one of deviations) {
    if (one.isFree) continue;
    const sigma = Math.hypot(one.sigma, mixture);
    const z = (one.logRatio + logCoverage) / sigma;
    total += Math.max(-0.5 * z * z, floors.quantity) - Math.log(sigma / one.sigma);
    // Missed calls leave no count as it was.
    if (coverage === 1) total += one.exact;
  }
  return total;
}

/**
 * Free quantities of one class are one ratio on all of its lines, and so one parameter; a line with a ratio of its own costs
 * another. A class of which nothing was seen is one absence, on however many lines.
 */
function freeFit(deviations: readonly Deviation[]): number {
  const free = deviations.filter((one) => one.isFree);
  if (free.length === 0) return 0;
  let total = 0;
  for (const name of new Set(free.map((one) => one.tokenClass))) {
    const lines = free.filter((one) => one.tokenClass === name);
    const seen = lines.filter((one) => !Number.isNaN(one.ownRatio));
    total += FREE;
    if (seen.length === 0) continue;
    const weight = seen.reduce((sum, one) => sum + one.weight, 0);
    const ratio = seen.reduce((sum, one) => sum + (one.weight / Math.max(weight, 1)) * one.ownRatio, 0);
    const [largest, ...others] = [...lines].sort((a, b) => b.weight - a.weight);
    for (const one of others) {
      const z = (one.ownRatio - (largest && weight === 0 ? largest.ownRatio : ratio)) / one.sigma;
      total += Number.isNaN(z) ? FREE : Math.max(-0.5 * z * z, FREE);
    }
  }
  return total;
}

/**
 * The scatter of classes because the missed calls are not like the others: the fewer calls, the more. Calls' own
 * sizes scatter by about their mean.
 */
export function mixtureOf(coverage: number, calls: number): number {
  return CALL_SCATTER * Math.sqrt(Math.max(0, 1 - coverage) / Math.max(1, calls));
}

/** Days scatter about the series' usual coverage; now and then a day has one of its own, below it. */
function coveragePrior(coverage: number, noise: SeriesNoise): number {
  const spread = Math.max(noise.quantitySigma, USUAL_SPREAD_MIN);
  const z = Math.log(coverage / noise.coverage) / spread;
  const usual = Math.exp(-0.5 * z * z);
  const any = coverage <= 1 + USUAL_SPREADS * spread ? OWN_COVERAGE * spread : 0;
  const beyond = Math.max(0, Math.log(coverage)) / spread;
  return Math.log(usual + any + ALMOST_NOTHING) - 0.5 * beyond * beyond;
}

export function coverageCandidates(deviations: readonly Deviation[], noise: SeriesNoise): number[] {
  const candidates = [noise.coverage, 1];
  for (const one of deviations) {
    if (one.isFree || one.weight < CENT) continue;
    const own = Math.exp(-one.logRatio);
    if (own > COVERAGE_FROM && own < COVERAGE_TO) candidates.push(own);
  }
  let weight = 0;
  let sum = 0;
  for (const one of deviations) {
    if (one.isFree) continue;
    weight += one.weight;
    sum += one.weight * Math.exp(-one.logRatio);
  }
  const overall = weight > 0 ? sum / weight : 1;
  if (overall > COVERAGE_FROM && overall < COVERAGE_TO) candidates.push(overall);
  const own = candidates.slice(2);
  const middle = Math.exp(own.reduce((total, one) => total + Math.log(one), 0) / Math.max(1, own.length));
  if (own.length > 1) candidates.push(middle);
  return candidates;
}

/** The usual coverage of a series and the scatter about it, from days before any judgement. */
export function noiseOf(
  readings: readonly DayReading[],
  rights: readonly Prediction[],
  defaultSigma: number,
): SeriesNoise {
  const ratios: number[] = [];
  const scatter: number[] = [];
  const byClass = new Map<string, number[]>();
  const start: SeriesNoise = { coverage: 1, quantitySigma: defaultSigma, classSigmas: new Map() };
  readings.forEach((reading, at) => {
    const right = rights[at];
    if (!right || !reading.judged || !reading.comparable) return;
    const deviations = deviationsOf(reading, right, start).filter(
      (one) => !one.isFree && one.weight >= COUNTED_CENTS * CENT,
    );
    if (deviations.length === 0) return;
    const middle = weightedMedian(deviations);
    ratios.push(middle);
    if (deviations.length > 1) for (const one of deviations) scatter.push(Math.abs(one.logRatio - middle));
    if (reading.depth === 'total') return;
    for (const one of deviations) {
      const known = byClass.get(one.tokenClass) ?? [];
      known.push(Math.abs(one.logRatio - middle));
      byClass.set(one.tokenClass, known);
    }
  });
  if (ratios.length === 0) return start;
  const logMedian = median(ratios);
  const coverage = Math.min(1, Math.max(USUAL_COVERAGE_MIN, Math.exp(-logMedian)));
  const days = ratios.map((one) => Math.abs(one - logMedian));
  const enough = ratios.length >= SCATTER_DAYS_MIN;
  const sigmaFrom = (values: readonly number[]) =>
    Math.min(
      SIGMA_MAX,
      Math.max(SIGMA_MIN, SIGMA_ROOM * MEDIAN_TO_SIGMA * (values.length > 0 ? median(values) : 0)),
    );
  const sigma = enough ? Math.max(sigmaFrom(days), sigmaFrom(scatter)) : defaultSigma;
  const classSigmas = new Map<string, number>();
  for (const [name, values] of byClass)
    if (values.length >= SCATTER_DAYS_MIN) classSigmas.set(name, Math.max(sigmaFrom(values), sigma / 2));
  return { coverage, quantitySigma: sigma, classSigmas };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? 0;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? 0) + upper) / 2;
}

function weightedMedian(deviations: readonly Deviation[]): number {
  const sorted = [...deviations].sort((a, b) => a.logRatio - b.logRatio);
  const half = sorted.reduce((total, one) => total + one.weight, 0) / 2;
  let reached = 0;
  for (const one of sorted) {
    reached += one.weight;
    if (reached >= half) return one.logRatio;
  }
  return 0;
}

/**
 * Score of the amounts if a part of the day was charged by the variant; undefined where no part predicts them. The hours of a
 * mistake are the same for all meters: where they are known they give the parts, else these lie near each other.
 */
export function partialFit(
  reading: DayReading,
  right: Prediction,
  prediction: Prediction,
  variant: Variant,
  floors: Floors,
): { rate: number; hourNats: number } | undefined {
  let rest = 0;
  const parts: { of: MeterDay; dearer: number; wrong: number; slack: number }[] = [];
  for (const [at, meter] of reading.meters.entries()) {
    const predicted = prediction.amounts[at] ?? Number.NaN;
    const usual = right.amounts[at] ?? Number.NaN;
    if (!variant.touches(meter.of) || meter.rateEvidence !== 'sharp' || predicted === usual) {
      rest += rateScore(meter, predicted === usual ? usual : predicted, floors);
      continue;
    }
    if (Number.isNaN(predicted) || Number.isNaN(usual)) return undefined;
    const [wrong, slack] = [meter.amount - usual, meter.rateSigma];
    parts.push({ of: meter.of, dearer: predicted - usual, wrong, slack });
  }
  // No part of a line is more wrong than the whole, or the other way.
  const canBe = parts.every(
    ({ dearer, wrong, slack }) =>
      wrong * Math.sign(dearer) >= -slack && Math.abs(wrong) <= Math.abs(dearer) + slack,
  );
  if (!canBe) return undefined;
  // Where the report counts and the bill has amounts alone, use that is not charged may be booked on another day.
  const isCountedApart = parts.some(({ of }) => of.meter.quantitySource === 'usage');
  const isShift = isCountedApart && parts.some(({ wrong, slack }) => wrong < -slack);
  const lines = isShift
    ? []
    : parts.flatMap(({ of, dearer, ...line }) => {
        const byHour = dearerByHour(reading.day, of, variant, dearer);
        return byHour ? [{ ...line, byHour }] : [];
      });
  const areKnown = lines.length === parts.length;
  const hourNats = areKnown ? natsOfHours(lines) : Number.NEGATIVE_INFINITY;
  const within = parts.map(({ dearer, slack }) => Math.log((slack * ROOT_OF_TWO_PI) / Math.abs(dearer)));
  const timed = EDGE + hourNats + within.reduce((sum, one) => sum + Math.min(0, one), 0);
  const alike = alikeShares(parts);
  const rate = Math.max(timed, alike);
  return rate === Number.NEGATIVE_INFINITY ? undefined : { rate: rest + rate, hourNats };
}

const ROOT_OF_TWO_PI = Math.sqrt(2 * Math.PI);

/** The same without hours: the shares of all lines lie near each other. */
function alikeShares(parts: readonly { dearer: number; wrong: number; slack: number }[]): number {
  const no = Number.NEGATIVE_INFINITY;
  const all = parts.map((one) => ({
    share: one.wrong / one.dearer,
    slack: one.slack / Math.abs(one.dearer),
  }));
  if (all.some(({ share, slack }) => share <= slack || share > 1 + slack)) return no;
  const shares = all.flatMap(({ share, slack }) => (share > 1 - slack ? [] : [share]));
  if (shares.length === 0) return no;
  if (shares.length > 2 && Math.max(...shares) - Math.min(...shares) < TOO_ALIKE) return no;
  const capped = all.map(({ share, slack }) => (share > 1 - slack ? 1 : share));
  const mean = capped.reduce((sum, share) => sum + share, 0) / capped.length;
  const scatter = capped.reduce((sum, share) => sum + ((share - mean) / SHARE_SIGMA) ** 2, 0);
  return EDGE + (all.length === 1 ? SINGLE : LOOSE * shares.length) - 0.5 * scatter;
}

/** The prediction with the charge in place of the variant's prediction of a whole day. */
export function asCharged(reading: DayReading, prediction: Prediction, variant: Variant): Prediction {
  return {
    ...prediction,
    amounts: prediction.amounts.map((amount, at) => {
      const meter = reading.meters[at];
      return meter && variant.touches(meter.of) ? meter.amount : amount;
    }),
  };
}
