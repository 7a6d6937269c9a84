/**
 * An error begins and ends at any hour: on its first and last day a part of each meter's use was charged wrongly. The parts
 * lie near each other, since the hours are the same for all meters, and differ by what was used in them.
 */
import type { Variant } from '../hypotheses/hypothesis.js';
import { type Floors, rateScore } from './fit.js';
import type { DayReading, Prediction } from './reading.js';

/** That a day is one on which an error begins or ends, against its being one like the others. */
const EDGE = -3;
/** A share is told to a few percent, an amount to a few parts in ten thousand: what the looser word is worth less. */
const LOOSE = -4.5;
/** A single share can be any. */
const SINGLE = -5.5;
const SHARE_SIGMA = 0.15;
/** Several meters never change at the very same share, nor does one stay as it was while the others change. */
const TOO_ALIKE = 0.002;

/** Score of the amounts if a part of the day was charged by the variant; undefined where no part gives them. */
export function partialFit(
  reading: DayReading,
  right: Prediction,
  prediction: Prediction,
  variant: Variant,
  floors: Floors,
): number | undefined {
  let rest = 0;
  const shares: number[] = [];
  let whole = 0;
  for (const [at, meter] of reading.meters.entries()) {
    const predicted = prediction.amounts[at] ?? Number.NaN;
    const usual = right.amounts[at] ?? Number.NaN;
    if (!variant.touches(meter.of) || meter.rateEvidence !== 'sharp' || predicted === usual) {
      rest += rateScore(meter, predicted === usual ? usual : predicted, floors);
      continue;
    }
    if (Number.isNaN(predicted) || Number.isNaN(usual)) return undefined;
    const share = (meter.amount - usual) / (predicted - usual);
    const slack = meter.rateSigma / Math.abs(predicted - usual);
    if (share < -slack || share > 1 + slack) return undefined;
    if (share > 1 - slack) whole += 1;
    else if (share > slack) shares.push(share);
    else return undefined;
  }
  if (shares.length === 0) return undefined;
  const spread = Math.max(...shares) - Math.min(...shares);
  if (shares.length > 2 && spread < TOO_ALIKE) return undefined;
  const all = [...shares, ...Array.from({ length: whole }, () => 1)];
  const mean = all.reduce((sum, share) => sum + share, 0) / all.length;
  const scatter = all.reduce((sum, share) => sum + ((share - mean) / SHARE_SIGMA) ** 2, 0);
  const loose = all.length === 1 ? SINGLE : LOOSE * shares.length;
  return rest + EDGE + loose - 0.5 * scatter;
}

/** The prediction with what was charged in place of what the variant says of a whole day. */
export function asCharged(reading: DayReading, prediction: Prediction, variant: Variant): Prediction {
  return {
    ...prediction,
    amounts: prediction.amounts.map((amount, at) => {
      const meter = reading.meters[at];
      return meter && variant.touches(meter.of) ? meter.amount : amount;
    }),
  };
}
