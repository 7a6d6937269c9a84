import type { Pico } from '../../money.js';
import { isTokenClass } from '../audit/dayRates.js';
import type { BucketReason, ClassLine, GapBucket } from '../matching/cells.js';

/** Tokens of a bucket, all classes together, in 1e-12 tokens. */
export interface BucketTokens {
  /** Null where the bill does not say how much it charges for. */
  billed: bigint | null;
  observed: bigint | null;
  /** Of the billed ones, those that were observed, class by class: never more than either side. */
  covered: bigint | null;
}

/** What was billed and seen of a bucket's classes; all null for a bucket without classes, such as an hour. */
export function tokensOf(lines: readonly ClassLine[]): BucketTokens {
  if (lines.length === 0) return { billed: null, observed: null, covered: null };
  const tokens = { billed: 0n, observed: 0n, covered: 0n };
  let isCounted = true;
  for (const { tokenClass, billedQuantity, observedQuantity, billedPico } of lines) {
    tokens.observed += observedQuantity;
    if (!isTokenClass(tokenClass)) {
      if (tokenClass === 'other' && billedPico !== 0n) isCounted = false;
      continue;
    }
    if (billedQuantity === null) {
      isCounted = false;
      continue;
    }
    tokens.billed += billedQuantity;
    tokens.covered += least(billedQuantity, observedQuantity);
  }
  return isCounted ? tokens : { billed: null, observed: tokens.observed, covered: null };
}

const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);

/** What bills and calls of a group of days say of each other. All are sums, so that groups add up to their total. */
export interface CoverageFigures {
  calls: number;
  /** Tokens that the bill counts, observed ones, and those of the billed ones that were observed; 1e-12 tokens. */
  billedTokens: bigint;
  observedTokens: bigint;
  coveredTokens: bigint;
  /** explained + not matched + not observable + not yet observed + not compared. */
  billedPico: Pico;
  /** Of the billed dollars: what observed calls explain at the agreed rates. */
  explainedPico: Pico;
  notMatchedPico: Pico;
  /** Charges that no call can show, free allowances among them. */
  notObservablePico: Pico;
  /** Days before the account's first event. */
  notYetObservedPico: Pico;
  /** Days that no run has compared since their bill last changed. */
  notComparedPico: Pico;
  /** Of the explained and not matched dollars: those whose tokens the bill does not count. */
  uncountedPico: Pico;
}

export function noCoverage(): CoverageFigures {
  return {
    calls: 0,
    billedTokens: 0n,
    observedTokens: 0n,
    coveredTokens: 0n,
    billedPico: 0n,
    explainedPico: 0n,
    notMatchedPico: 0n,
    notObservablePico: 0n,
    notYetObservedPico: 0n,
    notComparedPico: 0n,
    uncountedPico: 0n,
  };
}

/** Adds a part to the whole. */
export function addCoverage(whole: CoverageFigures, part: CoverageFigures): void {
  whole.calls += part.calls;
  for (const name of Object.keys(whole) as (keyof CoverageFigures)[])
    if (name !== 'calls') whole[name] += part[name];
}

const SHARE_DIGITS = 1_000_000n;

/** part ÷ whole from 0 to 1 to six digits; null where the whole is nothing, so that nothing can be said of it. */
function shareOf(part: bigint, whole: bigint): number | null {
  if (whole <= 0n) return null;
  const share = Number((part * SHARE_DIGITS) / whole) / Number(SHARE_DIGITS);
  return Math.min(1, Math.max(0, share));
}

/** The share of the billed tokens that was observed; null where no bill counts tokens. */
export function tokenShare(figures: CoverageFigures): number | null {
  return shareOf(figures.coveredTokens, figures.billedTokens);
}

/** The share of the dollars that calls could explain which they do explain; null where there are none. */
export function dollarShare({ explainedPico, notMatchedPico }: CoverageFigures): number | null {
  return shareOf(explainedPico, explainedPico + notMatchedPico);
}

const UNSEEN_BY_CALLS: ReadonlySet<BucketReason> = new Set(['not_observable', 'free_allowance']);
/** Tokens of an allowance are used and counted like others; what is left out of the bill is compared with nothing. */
const WITHOUT_TOKENS: ReadonlySet<BucketReason> = new Set([
  'not_observable',
  'not_yet_observed',
  'not_in_cost_report',
  'unconverted',
]);

/** What a day's bucket adds to the coverage of its group. */
export function figuresOfBucket(bucket: GapBucket): CoverageFigures {
  const figures = noCoverage();
  const { reason, matchedPico, providerCostPico } = bucket;
  const { billed, observed, covered } = tokensOf(bucket.lines);
  const rest = providerCostPico - matchedPico;
  figures.calls = bucket.eventCount;
  figures.billedPico = providerCostPico;
  figures.explainedPico = matchedPico;
  if (reason !== null && UNSEEN_BY_CALLS.has(reason)) figures.notObservablePico = rest;
  else if (reason === 'not_yet_observed') figures.notYetObservedPico = rest;
  else {
    figures.notMatchedPico = rest;
    if (billed === null) figures.uncountedPico = providerCostPico;
  }
  if (billed !== null && !(reason !== null && WITHOUT_TOKENS.has(reason))) {
    figures.billedTokens = billed;
    figures.observedTokens = observed ?? 0n;
    figures.coveredTokens = covered ?? 0n;
  }
  return figures;
}

/** One model of one account: how much of it was observed. */
export interface ModelCoverage {
  accountId: string;
  model: string;
  days: number;
  figures: CoverageFigures;
}

/** Coverage of days' buckets by account and model, the most billed first, and of all of them. */
export function coverageOfBuckets(buckets: readonly GapBucket[]): {
  models: ModelCoverage[];
  totals: CoverageFigures;
} {
  const models = new Map<string, ModelCoverage>();
  const totals = noCoverage();
  for (const bucket of buckets) {
    if (bucket.width !== 'day') continue;
    const { accountId, model } = bucket;
    const name = JSON.stringify([accountId, model]);
    const known = models.get(name) ?? { accountId, model, days: 0, figures: noCoverage() };
    models.set(name, known);
    known.days += 1;
    const figures = figuresOfBucket(bucket);
    addCoverage(known.figures, figures);
    addCoverage(totals, figures);
  }
  const sorted = [...models].sort(([one, a], [other, b]) =>
    a.figures.billedPico === b.figures.billedPico
      ? one < other
        ? -1
        : 1
      : a.figures.billedPico > b.figures.billedPico
        ? -1
        : 1,
  );
  return { models: sorted.map(([, model]) => model), totals };
}
