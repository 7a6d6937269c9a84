/**
 * A series-day in the numbers that explanations are weighed by. Floats serve scores alone: no amount that anybody sees is
 * made of them.
 */

import { PICO_PER_USD, type Pico } from '../../../money.js';
import { isTokenClass } from '../../audit/dayRates.js';
import { judgeMeter, type Verdict } from '../../audit/judgeMeter.js';
import type { WeightSet } from '../../weights/weightSet.js';
import {
  CUT_SHARE,
  CUT_SHARE_MAX,
  FAR_BELOW,
  MIX_MISSED_MAX,
  SHARP_SHARE,
  SHORT_CALLS_MIN,
  SHORT_SEEN_MIN,
  SOFT_SHARE,
} from '../calibration.js';
import { asBooked } from '../causes/bookedLate.js';
import type { MeterDay, SeriesDay, Variant } from '../causes/cause.js';
import { amountAs } from '../causes/predict.js';

/** The depth of the bill: quantities, amounts by class, or one amount for all. */
export type Depth = 'quantities' | 'classes' | 'total';

/** The evidence of a meter's amount for its rate: full, little (the mix is a guess), or none. */
type RateEvidence = 'sharp' | 'soft' | 'none';

export interface MeterReading {
  readonly of: MeterDay;
  readonly amount: number;
  /** Billed quantity; NaN where the bill has none. */
  readonly billed: number;
  readonly observed: number;
  /** Standard deviation of the amount about quantity × rate, pico-dollars. */
  readonly rateSigma: number;
  readonly rounding: number;
  readonly rateEvidence: RateEvidence;
  /** Dollars that hang on the meter: below some cents it decides nothing. */
  readonly value: number;
  /** Standard deviation of quantities of batch calls: a batch may end a day after it was counted. */
  readonly isBatch: boolean;
  /** Share of the quantity that answers which were cut off may have held unseen. */
  readonly cutShare: number;
  readonly verdict: Verdict;
}

export interface DayReading {
  readonly day: SeriesDay;
  readonly depth: Depth;
  readonly meters: readonly MeterReading[];
  /** Calls that a provider charges for. */
  readonly calls: number;
  /** Of all meters, those without a token class included; pico-dollars. */
  readonly billedAmount: number;
  /** False where nothing may be concluded: provisional days, labels that no grammar knows, days without a bill. */
  readonly judged: boolean;
  /** False where nothing was observed that could be compared. */
  readonly comparable: boolean;
}

/** A predicted bill, meter by meter; NaN: unknown. */
export interface Prediction {
  readonly amounts: readonly number[];
  readonly quantities: readonly number[];
  /** The meters that a variant speaks about, by place; absent: none. */
  readonly touched?: readonly boolean[];
  /** Those of them whose amounts it gives otherwise than they are right. */
  readonly repriced?: readonly boolean[];
  /** Calls alone give the quantities of these meters, to the unit. */
  readonly isCounted?: boolean;
}

/** All that was billed, lines without a token class included. */
export const billedPicoOf = ({ evidence }: SeriesDay): Pico =>
  evidence.billed.reduce((total, cell) => total + cell.amountPico, 0n);

export function readDay(day: SeriesDay, weights: WeightSet): DayReading {
  const { evidence } = day;
  const meters = day.meters.map((meter) => readMeter(day, meter, weights));
  return {
    day,
    depth: depthOf(day),
    meters,
    calls: evidence.observed.reduce((sum, one) => (one.status === 'error' ? sum : sum + one.calls), 0),
    billedAmount: Number(billedPicoOf(day)),
    judged:
      evidence.fixedReason === null &&
      !evidence.provisional &&
      day.pricedAs !== null &&
      evidence.billed.length > 0,
    comparable: !evidence.notYetObserved && meters.some((meter) => meter.observed > 0),
  };
}

function depthOf({ evidence, meters }: SeriesDay): Depth {
  if (evidence.visibility === 'V2' || evidence.visibility === 'V3') return 'quantities';
  const hasClasses = evidence.billed.every((cell) => isTokenClass(cell.tokenClass) || cell.amountPico === 0n);
  return hasClasses && meters.some((one) => one.meter.amountPico !== 0n) ? 'classes' : 'total';
}

function readMeter(day: SeriesDay, of: MeterDay, weights: WeightSet): MeterReading {
  const { meter } = of;
  const amount = Number(meter.amountPico);
  const judged = judgeMeter(meter, day.pricedAs, day.agreed).verdict;
  const verdict = judged === 'length_unknown' && areAllShort(day, of) ? 'differs' : judged;
  const share =
    meter.split === 'observed_mix' || verdict === 'batch_unknown' || verdict === 'length_unknown'
      ? softShareOf(of)
      : meter.quantitySource === 'usage'
        ? weights.rateSigma
        : SHARP_SHARE;
  const charged = amountAs(day, of, of.observed);
  return {
    of,
    amount,
    billed: meter.quantity === null ? Number.NaN : Number(meter.quantity),
    observed: Number(of.observed),
    rateSigma: Number(meter.roundingPico) + 1 + share * Math.abs(Number(of.expectedPico ?? 0n)),
    rounding: Number(meter.roundingPico) + 1,
    rateEvidence: rateEvidenceOf(of, verdict),
    value: Math.max(amount, Number(of.expectedPico ?? 0n), Number(charged ?? 0n)),
    isBatch: of.mix.some((part) => part.circumstances.isBatch),
    cutShare: cutShareOf(day, of),
    verdict,
  };
}

/**
 * That no call is near the boundary of long requests: then a line that does not state the length holds ordinary requests,
 * and no mix of lengths explains its amount.
 */
function areAllShort({ evidence, agreed, pricedAs }: SeriesDay, { meter, observed }: MeterDay): boolean {
  const above = pricedAs === null ? undefined : agreed.longAbove(pricedAs);
  if (above === undefined || Number(observed) < SHORT_SEEN_MIN * Number(meter.quantity ?? 0n)) return false;
  let [calls, tokens] = [0, 0];
  for (const cell of evidence.observed) {
    if (cell.status === 'error') continue;
    if (cell.contextBand > 0) return false;
    calls += cell.calls;
    const { output: _, output_audio: __, ...whole } = cell.tokens;
    tokens += Object.values(whole).reduce((sum, one) => sum + Number(one), 0);
  }
  return calls >= SHORT_CALLS_MIN && tokens * FAR_BELOW <= calls * above;
}

/** Who used what is as sure as the calls seen are all that there were. */
function softShareOf({ meter, observed }: MeterDay): number {
  const billed = Number(meter.quantity ?? 0n);
  const missing = billed > 0 ? Math.abs(billed - Number(observed)) / billed : 1;
  return Math.min(SOFT_SHARE, SHARP_SHARE + 2 * missing);
}

/**
 * Tokens that cut answers may have had beyond the observed ones: as much again as is seen of them, and an ordinary
 * answer's length for each.
 */
function cutShareOf(day: SeriesDay, { tokenClass, interrupted, observed }: MeterDay): number {
  if (tokenClass !== 'output' && tokenClass !== 'output_audio') return 0;
  let [cut, all] = [0, 0];
  for (const cell of day.evidence.observed) {
    if (cell.status === 'error') continue;
    all += cell.calls;
    if (cell.status === 'cancelled') cut += cell.calls;
  }
  if (cut === 0 || observed === 0n) return 0;
  return Math.min(
    CUT_SHARE_MAX,
    CUT_SHARE * Math.max(Number(interrupted) / Number(observed), cut / Math.max(all, 1)),
  );
}

function rateEvidenceOf({ meter, expectedPico }: MeterDay, verdict: Verdict): RateEvidence {
  if (meter.quantity === null || meter.quantity === 0n || expectedPico === null) return 'none';
  if (verdict === 'batch_unknown' || verdict === 'length_unknown' || meter.split === 'observed_mix')
    return 'soft';
  return verdict === 'as_agreed' || verdict === 'differs' ? 'sharp' : 'none';
}

/**
 * Who used what under which tier and length is taken from the calls seen, and these are not the billed ones: so many are
 * missing, or too many, that their mix is little evidence of the bill's.
 */
export function isMixAssumed({ rateEvidence, billed, observed }: MeterReading): boolean {
  return rateEvidence === 'soft' && Math.abs(billed - observed) > MIX_MISSED_MAX * billed;
}

/** The bill if nothing is wrong. */
export function rightPrediction(reading: DayReading): Prediction {
  return {
    amounts: reading.meters.map(({ of, billed }) =>
      numberOf(Number.isNaN(billed) ? amountAs(reading.day, of, of.observed) : of.expectedPico),
    ),
    quantities: reading.meters.map(({ observed }) => observed),
  };
}

/** The bill if the variant holds; `right` has the meters that it does not touch. */
export function predict(reading: DayReading, variant: Variant, right: Prediction): Prediction {
  const amounts = [...right.amounts];
  const quantities = variant.isOfBooking
    ? [...right.quantities]
    : reading.meters.map(({ of }) => Number(asBooked(of, of.observed)));
  const touched = reading.meters.map(({ of }) => variant.touches(of));
  reading.meters.forEach(({ of, billed }, at) => {
    if (!touched[at]) return;
    const counted = variant.quantityOf(of);
    const quantity = counted === null || variant.isOfBooking ? counted : asBooked(of, counted);
    quantities[at] = numberOf(quantity);
    if (!Number.isNaN(billed)) amounts[at] = numberOf(variant.amountOf(of, of.meter.quantity ?? 0n));
    else amounts[at] = quantity === null ? Number.NaN : numberOf(variant.amountOf(of, quantity));
  });
  const repriced = amounts.map((amount, at) => touched[at] === true && amount !== right.amounts[at]);
  return { amounts, quantities, touched, repriced, isCounted: variant.isCounted === true };
}

const numberOf = (value: bigint | null): number => (value === null ? Number.NaN : Number(value));

export const CENT = Number(PICO_PER_USD / 100n);
