/** Every hypothesis of the library. Their order decides nothing. */
import { batchDiscountQuantity, batchDiscountRate } from './batchDiscount.js';
import { cacheReadRate } from './cacheRead.js';
import { cacheWriteQuantity, cacheWriteRate } from './cacheWrite.js';
import { clientAmounts } from './clientAmounts.js';
import { clientCounts } from './clientCounts.js';
import { contractRate } from './contractRate.js';
import { contractTerms } from './contractTerms.js';
import { cutStreams } from './cutStreams.js';
import { doubleMetered } from './doubleMetered.js';
import { duplicateAmounts, duplicatePart, duplicateQuantity, duplicateTokens } from './duplicates.js';
import { failedRequests } from './failedRequests.js';
import type { Hypothesis } from './hypothesis.js';
import { countInflation } from './inflation.js';
import { longContextEpisode, longContextQuantity, longContextRate } from './longContext.js';
import { modalityQuantity, modalityRate } from './modality.js';
import { lateUsage, periodDoubleCount, periodDoubleCountAlike, timingShift } from './neighbourDays.js';
import { otherModelRate } from './otherModel.js';
import { priceEffectiveDate, promotionalRate } from './priceDates.js';
import { regionUplift } from './region.js';
import { serviceTierQuantity, serviceTierRate, serviceTierUnnamed } from './serviceTier.js';
import { listRate, stalePrice } from './unknownRate.js';
import { reportOfPart, unobservedUsage } from './unobserved.js';

export const HYPOTHESES: readonly Hypothesis[] = [
  batchDiscountRate,
  batchDiscountQuantity,
  cacheReadRate,
  cacheWriteRate,
  cacheWriteQuantity,
  doubleMetered,
  longContextRate,
  longContextQuantity,
  longContextEpisode,
  serviceTierRate,
  serviceTierQuantity,
  serviceTierUnnamed,
  regionUplift,
  modalityRate,
  modalityQuantity,
  contractRate,
  promotionalRate,
  priceEffectiveDate,
  otherModelRate,
  listRate,
  failedRequests,
  duplicateQuantity,
  duplicatePart,
  duplicateTokens,
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
  lateUsage,
  stalePrice,
  contractTerms,
];
