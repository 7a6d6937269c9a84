/**
 * One model's day at one account, as it is kept with its bucket: all that the search for explanations needs of it. A
 * series is the days of one (provider, account, model) in their order. Nothing here is derived: meters, expected charges
 * and scores are worked out from it by the prices of the time.
 */
import type { BilledCell, BucketReason, ObservedCell, UsageCell, Visibility } from '../matching/cells.js';
import type { ModelLevel } from '../matching/linkModels.js';

/** Calls of a day that were used under the same circumstances and ended alike; hours are added up. */
export type ObservedVector = Omit<ObservedCell, 'hourMicros' | 'hours' | 'accountId'>;

export interface SeriesDayEvidence {
  /** UTC day, or the provider's own where its days are shifted. */
  day: string;
  /** The account that the bill names; '' where calls of unknown account are compared with the sum over all. */
  accountId: string;
  /** The name that buckets and findings show. */
  model: string;
  /** The id by which quantities are priced: the billed one where there is one. */
  pricedAs: string | null;
  /** How surely the billed and the observed ids are one model. */
  level: ModelLevel;
  /** Set for charges that no call can show and for labels that no grammar knows: nothing is searched there. */
  fixedReason: BucketReason | null;
  visibility: Visibility;
  provisional: boolean;
  accountKnown: boolean;
  notYetObserved: boolean;
  billed: readonly BilledCell[];
  /** The provider's own usage report; hours are added up. */
  usage: readonly UsageCell[];
  observed: readonly ObservedVector[];
  /** The services whose calls these are and what their clients cannot send, the busiest first; at most SOURCES_MAX. */
  sources: readonly ObservedSource[];
}

/** Where calls came from. */
export interface ObservedSource {
  serviceName: string;
  calls: number;
  /** Calls whose client cannot tell cached from uncached input, or any class at all. */
  callsWithoutCache: number;
  /** Calls whose model is the one that the answer names, not the one that was asked for; absent: none is known to be. */
  namedByAnswer?: number;
  /** Attempts that the provider itself refused, with an HTTP status of 400 or more; absent: none is known to be. */
  refused?: number;
}

export const SOURCES_MAX = 5;
