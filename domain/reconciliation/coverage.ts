import { QUANTITY_ONE } from '../billing/billedRow.js';
import { TOKEN_CLASSES, type TokenClass } from '../events/event.js';
import type { Pico } from '../money.js';
import { microsOfDay } from '../period.js';
import { isTokenClass } from './audit/dayRates.js';
import type { BucketReason, ClassLine, GapBucket } from './matching/cells.js';

/** Tokens of a bucket, the sum of all classes, in 1e-12 tokens. */
interface BucketTokens {
  /** null: the bill has no quantity. */
  billed: bigint | null;
  observed: bigint | null;
  /** The billed tokens that were observed, by class: never more than either side. */
  covered: bigint | null;
}

/** Billed and observed tokens of a bucket's classes; all null for a bucket without classes, such as an hour. */
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

/** The comparison of bills and calls of a group of days. All figures are sums, so that groups add up to their total. */
export interface CoverageFigures {
  calls: number;
  /** Billed tokens, and below observed tokens and billed tokens that were observed; 1e-12 tokens. */
  billedTokens: bigint;
  observedTokens: bigint;
  coveredTokens: bigint;
  /** explained + not matched + not observable + not yet observed + not compared. */
  billedPico: Pico;
  /** Billed dollars that observed calls explain at the agreed rates. */
  explainedPico: Pico;
  notMatchedPico: Pico;
  /** Charges that no call can show, including free allowances. */
  notObservablePico: Pico;
  /** Days before the account's first event. */
  notYetObservedPico: Pico;
  /** Days whose bill changed after the last comparison. */
  notComparedPico: Pico;
  /** The part of explained and not matched dollars whose tokens the bill does not count. */
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

export function addCoverage(whole: CoverageFigures, part: CoverageFigures): void {
  whole.calls += part.calls;
  for (const name of Object.keys(whole) as (keyof CoverageFigures)[])
    if (name !== 'calls') whole[name] += part[name];
}

const SHARE_DIGITS = 1_000_000n;

/** part ÷ whole from 0 to 1 with six digits; null: the whole is zero. */
function shareOf(part: bigint, whole: bigint): number | null {
  if (whole <= 0n) return null;
  const share = Number((part * SHARE_DIGITS) / whole) / Number(SHARE_DIGITS);
  return Math.min(1, Math.max(0, share));
}

/** The share of billed tokens that was observed; null: no bill counts tokens. */
export function tokenShare(figures: CoverageFigures): number | null {
  return shareOf(figures.coveredTokens, figures.billedTokens);
}

/** The explained share of the dollars that calls can explain; null: there are none. */
export function dollarShare({ explainedPico, notMatchedPico }: CoverageFigures): number | null {
  return shareOf(explainedPico, explainedPico + notMatchedPico);
}

const UNSEEN_BY_CALLS: ReadonlySet<BucketReason> = new Set(['not_observable', 'free_allowance']);
/**
 * Reasons of buckets without comparable tokens; allowances are not among them, since their tokens are counted like
 * others.
 */
const WITHOUT_TOKENS: ReadonlySet<BucketReason> = new Set([
  'not_observable',
  'not_yet_observed',
  'not_in_cost_report',
  'unconverted',
]);

/** The contribution of a day's bucket to its group's coverage. */
function figuresOfBucket(bucket: GapBucket): CoverageFigures {
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

export interface ModelCoverage {
  accountId: string;
  model: string;
  days: number;
  figures: CoverageFigures;
}

/** Coverage of daily buckets by account and model, most billed first, and in total. */
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

/** The bill of one provider key on one day; '': the bill names no key. */
export interface BilledKeyDay {
  provider: string;
  providerKeyId: string;
  day: string;
  /** Dollars of usage that calls can show, and below of other usage. */
  billedPico: Pico;
  notObservablePico: Pico;
  /** By class, in 1e-12 tokens; null: some of the charges have no quantity. */
  quantities: { tokenClass: TokenClass; quantity: bigint | null }[];
}

/** The observed calls of one provider key on one day; '': calls without a key. */
export interface ObservedKeyDay {
  provider: string;
  providerKeyId: string;
  day: string;
  calls: number;
  /** Whole tokens, not scaled. */
  tokens: Readonly<Record<TokenClass, bigint>>;
  computedPico: Pico;
}

/** A provider key with its figures and the number of its days. */
interface KeyCoverage {
  provider: string;
  providerKeyId: string;
  days: number;
  figures: CoverageFigures;
}

/** Coverage by provider key and class; charges without a key are not compared. `observedSince` in microseconds. */
export function coverageByKey(
  billed: readonly BilledKeyDay[],
  observed: readonly ObservedKeyDay[],
  observedSince: ReadonlyMap<string, bigint>,
): KeyCoverage[] {
  const namesKeys = new Set(observed.flatMap((day) => (day.providerKeyId === '' ? [] : [day.provider])));
  const found = new Map<string, KeyCoverage>();
  const groupOf = (day: BilledKeyDay | ObservedKeyDay): KeyCoverage => {
    const name = `${day.provider}\n${day.providerKeyId}`;
    const known = found.get(name) ?? {
      provider: day.provider,
      providerKeyId: day.providerKeyId,
      days: 0,
      figures: noCoverage(),
    };
    found.set(name, known);
    return known;
  };
  const seen = new Map(observed.map((day) => [dayName(day), day]));
  for (const day of billed) {
    const group = groupOf(day);
    const since = observedSince.get(day.provider);
    const isComparable = day.providerKeyId !== '' && namesKeys.has(day.provider);
    const isObserved = since !== undefined && since <= microsOfDay(day.day);
    group.days += 1;
    addCoverage(group.figures, figuresOfKeyDay(day, seen.get(dayName(day)), { isComparable, isObserved }));
    seen.delete(dayName(day));
  }
  const billedDays = new Set(billed.map(({ provider, day }) => `${provider}\n${day}`));
  for (const day of seen.values()) {
    // A day without a bill does not count for coverage.
    if (!billedDays.has(`${day.provider}\n${day.day}`)) continue;
    const group = groupOf(day);
    group.days += 1;
    group.figures.calls += day.calls;
    if (day.providerKeyId !== '') group.figures.observedTokens += sumOf(day.tokens);
  }
  return [...found.values()];
}

const dayName = (day: { provider: string; providerKeyId: string; day: string }) =>
  `${day.provider}\n${day.providerKeyId}\n${day.day}`;

const sumOf = (tokens: ObservedKeyDay['tokens']): bigint =>
  TOKEN_CLASSES.reduce((total, name) => total + tokens[name], 0n) * QUANTITY_ONE;

function figuresOfKeyDay(
  billed: BilledKeyDay,
  observed: ObservedKeyDay | undefined,
  { isComparable, isObserved }: { isComparable: boolean; isObserved: boolean },
): CoverageFigures {
  const figures = noCoverage();
  figures.calls = observed?.calls ?? 0;
  figures.billedPico = billed.billedPico + billed.notObservablePico;
  figures.notObservablePico = billed.notObservablePico;
  if (!isComparable) {
    figures.notComparedPico = billed.billedPico;
    return figures;
  }
  const computed = observed?.computedPico ?? 0n;
  const explained = least(billed.billedPico, computed);
  figures.explainedPico = explained > 0n ? explained : 0n;
  const rest = billed.billedPico - figures.explainedPico;
  if (isObserved) figures.notMatchedPico = rest;
  else figures.notYetObservedPico = rest;
  if (!isObserved) return figures;
  if (billed.quantities.some(({ quantity }) => quantity === null)) {
    figures.uncountedPico = billed.billedPico;
    return figures;
  }
  figures.observedTokens = observed ? sumOf(observed.tokens) : 0n;
  for (const { tokenClass, quantity } of billed.quantities) {
    figures.billedTokens += quantity ?? 0n;
    figures.coveredTokens += least(quantity ?? 0n, (observed?.tokens[tokenClass] ?? 0n) * QUANTITY_ONE);
  }
  return figures;
}
