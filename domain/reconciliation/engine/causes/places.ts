/** The meter of a day on which a use would have been, had the bill named it otherwise. */

import type { TokenClass } from '../../../events/event.js';
import { absPico, type Pico } from '../../../money.js';
import type { SeriesDayEvidence } from '../../evidence/evidenceText.js';
import { sumKnown } from '../../matching/classLines.js';
import { isProfileOf } from '../../matching/profiles.js';
import { SAME_RATIO_PARTS } from '../calibration.js';
import type { MeterDay, SeriesDay } from './cause.js';

/** The circumstances of all of a meter's use; null where it holds several. */
export interface Place {
  serviceTier: string | null;
  isBatch: boolean | null;
  longContext: boolean | null;
  region: string | null;
}

export function placeOf({ mix }: MeterDay): Place {
  return {
    serviceTier: one(mix.map((part) => part.circumstances.serviceTier)),
    isBatch: one(mix.map((part) => part.circumstances.isBatch)),
    longContext: one(mix.map((part) => part.circumstances.longContext || part.circumstances.contextBand > 0)),
    region: one(mix.map((part) => part.circumstances.region)),
  };
}

function one<T>(values: readonly T[]): T | null {
  const [first] = values;
  return first !== undefined && values.every((value) => value === first) ? first : null;
}

/** Text that two meters of the same class and place share. */
export function placeKey(meter: MeterDay): string {
  const { serviceTier, isBatch, longContext, region } = placeOf(meter);
  return JSON.stringify([meter.tokenClass, serviceTier, isBatch, longContext, region]);
}

/** The meter of the same class whose place differs by exactly this; undefined where the day has none. */
export function partnerOf(day: SeriesDay, meter: MeterDay, change: Partial<Place>): MeterDay | undefined {
  const own = placeOf(meter);
  const wanted = { ...own, ...change };
  if (sameUse(own, wanted)) return undefined;
  const candidates = day.meters.filter(
    (other) => other.index !== meter.index && other.tokenClass === meter.tokenClass,
  );
  return (
    candidates.find((other) => sameUse(placeOf(other), wanted) && placeOf(other).region === wanted.region) ??
    candidates.find((other) => sameUse(placeOf(other), wanted))
  );
}

function sameUse(a: Place, b: Place): boolean {
  return a.serviceTier === b.serviceTier && a.isBatch === b.isBatch && a.longContext === b.longContext;
}

/** Pairs of every meter that has a partner with that partner: what leaves the first arrives at the second. */
export function pairsBy(
  day: SeriesDay,
  isMeant: (place: Place) => boolean,
  change: Partial<Place>,
): (readonly [MeterDay, MeterDay])[] {
  return day.meters.flatMap((meter) => {
    const partner = isMeant(placeOf(meter)) ? partnerOf(day, meter, change) : undefined;
    return partner ? [[meter, partner] as const] : [];
  });
}

/**
 * The meter of another class that the bill names alike: of a line that holds several uses, not every class has all of them.
 * Without one, the meter of the same use.
 */
export function partnerOfClass(
  day: SeriesDay,
  meter: MeterDay,
  tokenClass: MeterDay['tokenClass'],
): MeterDay | undefined {
  const ofClass = day.meters.filter((other) => other.tokenClass === tokenClass);
  const named = ofClass.find((other) => isNamedLike(other, meter));
  if (named) return named;
  const own = placeOf(meter);
  const candidates = ofClass.filter((other) => sameUse(placeOf(other), own));
  return candidates.find((other) => placeOf(other).region === own.region) ?? candidates[0];
}

/** Every meter of one class with its meter of another. */
export function pairsOfClasses(
  day: SeriesDay,
  from: TokenClass,
  to: TokenClass,
): (readonly [MeterDay, MeterDay])[] {
  return day.meters.flatMap((meter) => {
    const partner = meter.tokenClass === from ? partnerOfClass(day, meter, to) : undefined;
    return partner ? [[meter, partner] as const] : [];
  });
}

const isNamedLike = ({ meter: a }: MeterDay, { meter: b }: MeterDay): boolean =>
  a.serviceTier === b.serviceTier &&
  a.isBatch === b.isBatch &&
  a.longContext === b.longContext &&
  a.region === b.region;

export interface Ratio {
  readonly billedPico: Pico;
  readonly expectedPico: Pico;
}

/**
 * Meters whose amount can be held against quantity × rate; an amount of zero is an allowance, and no rate. A line that holds
 * other use than it names is charged as it names it: its rate is no question.
 */
export function chargedMeters(meters: readonly MeterDay[]): MeterDay[] {
  return meters.filter(
    ({ meter, expectedPico }) =>
      !meter.crossed &&
      meter.quantity !== null &&
      expectedPico !== null &&
      expectedPico > 0n &&
      meter.amountPico > 0n,
  );
}

/** The ratio that all these meters share within their rounding; undefined where they share none, or it is one. */
export function sharedRatio(meters: readonly MeterDay[]): Ratio | undefined {
  let billedPico = 0n;
  let expectedPico = 0n;
  for (const one of meters) {
    billedPico += one.meter.amountPico;
    expectedPico += one.expectedPico ?? 0n;
  }
  if (expectedPico <= 0n || billedPico <= 0n) return undefined;
  const isShared = meters.every(({ meter, expectedPico: own }) => {
    const predicted = ((own ?? 0n) * billedPico) / expectedPico;
    const slack = meter.roundingPico + 1n + (own ?? 0n) / SAME_RATIO_PARTS;
    return absPico(meter.amountPico - predicted) <= slack;
  });
  const isOne = absPico(billedPico - expectedPico) * SAME_RATIO_PARTS < expectedPico;
  return isShared && !isOne ? { billedPico, expectedPico } : undefined;
}

/** The ratio with three digits after the point, as variants are named by it. */
export function ratioText({ billedPico, expectedPico }: Ratio): string {
  const perMille = (billedPico * 1_000n + expectedPico / 2n) / expectedPico;
  return `${perMille / 1_000n}.${String(perMille % 1_000n).padStart(3, '0')}`;
}

/**
 * Neither an answer nor the provider's usage report nor the label of a line names the tier that served the day's calls. The
 * tier of other cost lines is mostly the reader's word for "no tier named", so it is no evidence.
 */
export function isTierOpen({ evidence, meters }: SeriesDay): boolean {
  const isReported = evidence.observed.some((one) => one.status !== 'error' && one.serviceTier !== '');
  return (
    !isReported &&
    meters.some(
      ({ meter, tokenClass }) =>
        meter.amountPico !== 0n &&
        meter.split !== 'usage_report' &&
        !meter.tierNamed &&
        !isOfOneTier(evidence, meters, tokenClass),
    )
  );
}

/**
 * The usage report, divided by tier and batch, counts as much of the class as is billed, and all of it in one tier: then
 * that is the tier, on whichever of the class's lines a call is.
 */
function isOfOneTier(
  { usage }: SeriesDayEvidence,
  meters: readonly MeterDay[],
  tokenClass: TokenClass,
): boolean {
  const counted = usage.filter((one) => one.tokenClass === tokenClass);
  const [first] = counted;
  if (!first || counted.some((one) => one.serviceTier !== first.serviceTier || one.isBatch === null))
    return false;
  const billed = meters.filter((one) => one.tokenClass === tokenClass).map(({ meter }) => meter.quantity);
  return sumKnown(billed) === sumKnown(counted.map((one) => one.quantity));
}

/**
 * The bill has amounts alone, on lines whose labels were read to their end: such labels show the length of requests, and name
 * a tier that is paid for beside the ordinary one (OpenAI's `priority | …`). What they do not name is most likely of none.
 */
export function areLinesLabelled({ meters }: SeriesDay): boolean {
  const charged = meters.filter(({ meter }) => meter.amountPico !== 0n);
  return (
    charged.length > 0 &&
    charged.every(
      ({ meter }) => meter.quantity === null && meter.longContext !== null && meter.isBatch === null,
    )
  );
}

/** The tiers that such labels name. */
export const LABELLED_TIERS: ReadonlySet<string> = new Set(['priority']);

/** The bill folds tiers and batch into one line, and no usage report divides it. */
export function isMixOpen({ meters }: SeriesDay): boolean {
  return meters.some(({ meter }) => meter.isBatch === null && meter.split !== 'usage_report');
}

/** Some calls of the day name no tier: they may have used any. */
export function hasUntoldCalls({ evidence }: SeriesDay): boolean {
  return evidence.observed.some((one) => one.status !== 'error' && one.serviceTier === '');
}

/** Every attempt that failed was refused by the provider itself: its client reports an HTTP status of 400 or more. */
export function areRefusalsTold({ observed, sources }: SeriesDayEvidence): boolean {
  const failed = observed.reduce((sum, one) => (one.status === 'error' ? sum + one.calls : sum), 0);
  return sources.reduce((sum, one) => sum + (one.refused ?? 0), 0) >= failed;
}

/** The model of every call of the day is the one that its answer names. */
export function areModelsAnswered({ observed, sources }: SeriesDayEvidence): boolean {
  const calls = observed.reduce((sum, one) => (one.status === 'error' ? sum : sum + one.calls), 0);
  return calls > 0 && sources.reduce((sum, one) => sum + (one.namedByAnswer ?? 0), 0) >= calls;
}

/** Bedrock's other profiles of the model, by place, one for each price: each is a model of its own. */
export function profilesBeside({ pricedAs, agreed }: SeriesDay): (readonly [place: string, model: string])[] {
  const base = pricedAs?.replace(/^[a-z-]+\./, '') ?? '';
  // Without a profile only the vendor precedes the model.
  if (pricedAs === null || !base.includes('.')) return [];
  return agreed
    .otherModelsOf(pricedAs)
    .filter((model) => isProfileOf(model, base))
    .filter((model, at, all) => all.findIndex((one) => agreed.samePrice(one, model)) === at)
    .map((model) => [model.slice(0, -base.length - 1), model] as const);
}
