/** All kinds of mistakes, at the customer's or the provider's expense. */
import type { Kind } from './mistake.js';
import * as quantities from './quantities.js';
import * as rates from './rates.js';
import * as unknown from './unknown.js';

export const OVERCHARGES: readonly Kind[] = [
  rates.batchForgotten,
  rates.readAtInput,
  rates.write5mAt1h,
  rates.longOnShort,
  rates.dearTier,
  rates.upliftOnGlobal,
  rates.contractForgotten,
  rates.oldPrice,
  rates.promotionForgotten,
  quantities.doubleMetered,
  quantities.failedBilled,
  quantities.cancelledOverbilled,
  quantities.duplicateInCosts,
  quantities.duplicateInBoth,
  quantities.inflated,
  quantities.asDearerModel,
  quantities.revokedKey,
  unknown.oddRateOver,
  unknown.noisyClass,
  unknown.surcharge,
];

export const UNDERCHARGES: readonly Kind[] = [
  rates.batchGivenAway,
  rates.inputAtRead,
  rates.write1hAt5m,
  rates.writeAsInput,
  rates.shortOnLong,
  rates.cheapTier,
  rates.upliftForgotten,
  rates.contractTwice,
  quantities.deflated,
  quantities.asCheaperModel,
  unknown.oddRateUnder,
];

export const EFFECTIVE_DATES: readonly Kind[] = [
  rates.oldPrice,
  rates.newPriceTooEarly,
  rates.promotionForgotten,
];
