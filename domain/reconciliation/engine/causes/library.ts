/** Every hypothesis of the library. Their order decides nothing. */
import {
  batchDiscountQuantity,
  batchDiscountRate,
  regionUplift,
  serviceTierRate,
  serviceTierUnnamed,
} from './batchAndTiers.js';
import { bookedLate } from './bookedLate.js';
import { cacheReadRate, cacheWriteQuantity, cacheWriteRate, doubleMetered } from './cache.js';
import type { Hypothesis } from './cause.js';
import { clientAmounts, clientCounts } from './client.js';
import { countInflation, cutStreams, failedRequests } from './counts.js';
import { longContextEpisode, longContextQuantity, longContextRate } from './longContext.js';
import { lateUsage, periodDoubleCount, periodDoubleCountAlike, timingShift } from './neighbourDays.js';
import { listRate, modalityQuantity, modalityRate, stalePrice } from './otherRates.js';
import {
  doubleMeteredOnBill,
  duplicateAmounts,
  duplicatePart,
  duplicateQuantity,
  reportOfPart,
  unobservedUsage,
} from './repeats.js';
import { contractRate, contractTerms, priceEffectiveDate, promotionalRate } from './terms.js';

export const HYPOTHESES: readonly Hypothesis[] = [
  batchDiscountRate,
  batchDiscountQuantity,
  cacheReadRate,
  cacheWriteRate,
  cacheWriteQuantity,
  doubleMetered,
  doubleMeteredOnBill,
  longContextRate,
  longContextQuantity,
  longContextEpisode,
  serviceTierRate,
  serviceTierUnnamed,
  regionUplift,
  modalityRate,
  modalityQuantity,
  contractRate,
  promotionalRate,
  priceEffectiveDate,
  listRate,
  failedRequests,
  duplicateQuantity,
  duplicatePart,
  duplicateAmounts,
  cutStreams,
  countInflation,
  periodDoubleCount,
  periodDoubleCountAlike,
  clientCounts,
  clientAmounts,
  unobservedUsage,
  reportOfPart,
  timingShift,
  bookedLate,
  lateUsage,
  stalePrice,
  contractTerms,
];
