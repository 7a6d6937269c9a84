import { isStandardTier } from '../../pricing/rateCards.js';
import type { SeriesDayEvidence } from '../evidence/evidenceText.js';
import type { SeriesContext } from './hypothesis.js';

/** What holds for all days of a series; `evidence` in any order, at least one day. */
export function seriesContextOf(evidence: readonly SeriesDayEvidence[], hasContract: boolean): SeriesContext {
  const days = evidence.map((one) => one.day).sort();
  const calls = evidence.flatMap((one) => one.observed);
  return {
    firstDay: days[0] ?? '',
    lastDay: days.at(-1) ?? '',
    hasContract,
    tells: {
      serviceTier: calls.some((one) => one.serviceTier !== ''),
      otherTiers: calls.some((one) => !isStandardTier(one.serviceTier)),
      batch: calls.some((one) => one.isBatch),
      cache: calls.some(
        ({ tokens }) => tokens.cache_read + tokens.cache_write_5m + tokens.cache_write_1h > 0n,
      ),
      longWrites: calls.some(({ tokens }) => tokens.cache_write_1h > 0n),
      longRequests: calls.some((one) => one.contextBand > 0),
    },
  };
}
