/** Every hypothesis of the library. Their order decides nothing. */
import { batchDiscountQuantity, batchDiscountRate } from './batchDiscount.js';
import { cacheReadRate } from './cacheRead.js';
import { cacheWriteQuantity, cacheWriteRate } from './cacheWrite.js';
import { clientAmounts } from './clientAmounts.js';
import { clientCounts } from './clientCounts.js';
import { contractRate } from './contractRate.js';
import { doubleMetered } from './doubleMetered.js';
import { failedRequests } from './failedRequests.js';
import type { Hypothesis } from './hypothesis.js';
import { longContextQuantity, longContextRate } from './longContext.js';
import { modalityQuantity, modalityRate } from './modality.js';
import { priceEffectiveDate, promotionalRate } from './priceDates.js';
import { regionUplift } from './region.js';
import { serviceTierQuantity, serviceTierRate } from './serviceTier.js';

export const HYPOTHESES: readonly Hypothesis[] = [
  batchDiscountRate,
  batchDiscountQuantity,
  cacheReadRate,
  cacheWriteRate,
  cacheWriteQuantity,
  doubleMetered,
  longContextRate,
  longContextQuantity,
  serviceTierRate,
  serviceTierQuantity,
  regionUplift,
  modalityRate,
  modalityQuantity,
  contractRate,
  promotionalRate,
  priceEffectiveDate,
  failedRequests,
  clientCounts,
  clientAmounts,
];
