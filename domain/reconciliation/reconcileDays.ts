import type { SuspectKey } from '../billing/providerKeys.js';
import type { Provider } from '../providers.js';
import { byText } from './evidence/dayEvidence.js';
import type { SeriesDayEvidence } from './evidence/seriesDay.js';
import { explainAccount } from './hypotheses/explainAccount.js';
import { explainSeries } from './inference/explainSeries.js';
import type { Finding, SeriesExplanation } from './inference/finding.js';
import type { DayInput, DayResult, GapBucket } from './matching/cells.js';
import type { ChargePrices } from './matching/charges.js';
import { matchDay } from './matching/matchDay.js';
import { weightsFor } from './weights/learn.js';
import type { WeightSet } from './weights/weightSet.js';

export interface Reconciled {
  buckets: GapBucket[];
  findings: Finding[];
  explanations: SeriesExplanation[];
}

/**
 * Everything that the engine says about a provider's days: each day compared, each series explained, each account's findings
 * as a whole. Gap runs take the same steps one by one and keep what lies between them. Days in any order, each once.
 */
export function reconcileDays(
  provider: Provider,
  days: readonly DayInput[],
  prices: ChargePrices,
  weights: WeightSet,
  suspects: readonly SuspectKey[],
): Reconciled {
  const inOrder = [...days].sort((a, b) => byText(a.day, b.day));
  const matched = inOrder.map((day) => matchDay(prices.agreed, provider, day, weights.link));
  return reconcileMatched(provider, matched, prices, weights, suspects);
}

/** The same of days that are compared already, the oldest first. */
export function reconcileMatched(
  provider: Provider,
  days: readonly Pick<DayResult, 'buckets' | 'evidence'>[],
  prices: ChargePrices,
  weights: WeightSet,
  suspects: readonly SuspectKey[],
): Reconciled {
  const buckets = days.flatMap((day) => day.buckets);
  const evidence = days.flatMap((day) => day.evidence);
  const explanations = explainEvidence(provider, evidence, prices, weights);
  return { buckets, explanations, findings: findingsOf(provider, explanations, prices, weights, suspects) };
}

/** Series by series, in the order of their accounts and models. */
function explainEvidence(
  provider: Provider,
  evidence: readonly SeriesDayEvidence[],
  prices: ChargePrices,
  weights: WeightSet,
): SeriesExplanation[] {
  const judgeBy = weightsFor(weights, provider);
  const series = new Map<string, SeriesDayEvidence[]>();
  for (const one of evidence) {
    const key = JSON.stringify([one.accountId, one.model]);
    const known = series.get(key);
    if (known) known.push(one);
    else series.set(key, [one]);
  }
  return [...series]
    .sort(([a], [b]) => byText(a, b))
    .flatMap(([, days]) => {
      const [first] = days;
      if (!first) return [];
      const { accountId, model } = first;
      return [explainSeries({ provider, accountId, model, days, prices, weights: judgeBy })];
    });
}

function findingsOf(
  provider: Provider,
  explanations: readonly SeriesExplanation[],
  prices: ChargePrices,
  weights: WeightSet,
  suspects: readonly SuspectKey[],
): Finding[] {
  const accounts = [...new Set(explanations.map((one) => one.accountId))].sort(byText);
  return accounts.flatMap((accountId) =>
    explainAccount({
      provider,
      accountId,
      series: explanations.filter((one) => one.accountId === accountId),
      suspectKeys: suspects.filter((key) => key.providerAccountId === accountId),
      prices,
      weights,
    }),
  );
}
