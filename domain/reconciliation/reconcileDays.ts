import type { SuspectKey } from '../billing/providerKeys.js';
import type { Provider } from '../providers.js';
import {
  explainAccount,
  explainSeries,
  type Finding,
  keepDays,
  type SeriesExplanation,
} from './engine/index.js';
import { byText, type SeriesDayEvidence } from './evidence/evidenceText.js';

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

/** All results of the engine for a provider's days, unique and in any order; gap runs take the same steps. */
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

/** The same for days that are already compared, oldest first. */
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

/** Explains series by series, ordered by account and model. */
function explainEvidence(
  provider: Provider,
  evidence: readonly SeriesDayEvidence[],
  prices: ChargePrices,
  weights: WeightSet,
): SeriesExplanation[] {
  const judgeBy = weightsFor(weights, provider);
  return divideBySeries(evidence).map((series) =>
    explainSeries({ provider, ...series, prices, weights: judgeBy }),
  );
}

/** The days of a series, in the order in which they were given. */
export interface SeriesOfDays {
  accountId: string;
  model: string;
  days: SeriesDayEvidence[];
}

/** The evidence of a provider by account and model, in the order of both. */
export function divideBySeries(evidence: readonly SeriesDayEvidence[]): SeriesOfDays[] {
  const series = new Map<string, SeriesOfDays>();
  for (const one of evidence) {
    const { accountId, model } = one;
    const key = JSON.stringify([accountId, model]);
    const known = series.get(key);
    if (known) known.days.push(one);
    else series.set(key, { accountId, model, days: [one] });
  }
  return [...series].sort(([a], [b]) => byText(a, b)).map(([, of]) => of);
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

/** A day in a present or past dispute. */
export interface DisputedDay {
  disputeId: string;
  /** The finding over which the dispute was opened. */
  findingId: string;
  model: string;
  day: string;
  kind: string;
  variant: string;
  /** false: the dispute is resolved. */
  live: boolean;
}

/** Days of a finding that are published as one finding. */
export interface FoundPart {
  finding: Finding;
  /** The decided finding whose dispute contains these days; null: the days are in no dispute. */
  decidedWith: string | null;
  /**
   * The live dispute that contains the days under a kind that is no longer found; no decision is possible until it
   * is resolved.
   */
  heldBy: string | null;
}

/** Splits findings so that a part's days belong to one dispute or none; undercharges are not split. */
export function separateDisputed(found: readonly Finding[], disputed: readonly DisputedDay[]): FoundPart[] {
  const byPlace = new Map<string, DisputedDay[]>();
  for (const one of [...disputed].sort(byLiveness)) {
    const place = key(one.model, one.day);
    byPlace.set(place, [...(byPlace.get(place) ?? []), one]);
  }
  const kinds = new Set<string>();
  const explanations = new Set<string>();
  for (const { model, kind, variant, direction, days } of found)
    if (direction === 'overcharge')
      for (const { day } of days) {
        kinds.add(key(model, day, kind));
        explanations.add(key(model, day, kind, variant));
      }
  const holderOf = ({ model, kind, variant }: Finding, day: string): DisputedDay | undefined => {
    const candidates = byPlace.get(key(model, day)) ?? [];
    return (
      candidates.find((one) => one.kind === kind && one.variant === variant) ??
      candidates.find((one) => one.kind === kind && !explanations.has(key(model, day, kind, one.variant))) ??
      candidates.find((one) => one.kind !== kind && one.live && !kinds.has(key(model, day, one.kind)))
    );
  };
  return found.flatMap((finding) => {
    if (finding.direction !== 'overcharge') return [{ finding, decidedWith: null, heldBy: null }];
    const parts = new Map<string, FoundPart & { days: Set<string> }>();
    for (const { day } of finding.days) {
      const holder = holderOf(finding, day);
      const decidedWith = holder?.findingId ?? null;
      const heldBy = holder && holder.kind !== finding.kind ? holder.disputeId : null;
      const name = key(decidedWith ?? '', heldBy ?? '');
      const part = parts.get(name) ?? { finding, decidedWith, heldBy, days: new Set() };
      part.days.add(day);
      parts.set(name, part);
    }
    return [...parts.values()].flatMap(({ days, decidedWith, heldBy }) => {
      const part = keepDays(finding, (day) => days.has(day));
      return part ? [{ finding: part, decidedWith, heldBy }] : [];
    });
  });
}

const key = (...names: string[]): string => JSON.stringify(names);

/** Unresolved disputes first, in an order that does not depend on the reading order. */
function byLiveness(a: DisputedDay, b: DisputedDay): number {
  if (a.live !== b.live) return a.live ? -1 : 1;
  return a.disputeId < b.disputeId ? -1 : a.disputeId > b.disputeId ? 1 : 0;
}
