import type { ChargeCategory } from '../../billing/billedRow.js';
import type { Pico } from '../../money.js';
import { type BucketReason, GRADES, type Grade } from '../matching/cells.js';
import type { DayCharge } from '../matching/charges.js';

/**
 * The figures of a statement for one account, one provider or everything: what was billed, what it is made of, and how
 * surely it is what was used. All of them are sums, so figures of parts add up to those of the whole.
 */
export interface StatementFigures {
  /** Usage at list, as far as it can be priced. */
  listPico: Pico;
  /** List − agreed, by the organization's contract. */
  contractDiscountPico: Pico;
  /** List price that the bill itself names − billed, where the quantity cannot be priced. */
  otherDiscountPico: Pico;
  /** Billed − agreed: charged above (positive) or below the agreed rate. */
  rateDifferencePico: Pico;
  /** Billed usage for which no list price is known. list − discounts + rate difference + this = usage. */
  notPricedPico: Pico;
  /** Of a closed month: billed usage as it was closed − as the bills say now. Items of both sums of usage. */
  restatedPico: Pico;
  /** What usage at amount zero would cost at list: part of no other figure. */
  freeAllowancePico: Pico;
  /** What was billed, by category; they sum to the invoice. */
  billed: Record<ChargeCategory, Pico>;
  /** Billed usage that observed calls explain, by how surely. */
  verified: Record<Grade, Pico>;
  /** The rest of the billed usage, by what is known of it. With `verified` these sum to the billed usage. */
  notObservablePico: Pico;
  notYetObservedPico: Pico;
  /** Days that no run has compared since their bill last changed. */
  notComparedPico: Pico;
  /** Compared only as a sum over the provider's accounts; zero for a provider and for the total. */
  acrossAccountsPico: Pico;
  /** What no call matches: `explainedByFindingsOf` + `unexplained`. */
  notMatchedPico: Pico;
  /** Of `notMatched`: what was charged above the agreed rate. */
  notMatchedRatePico: Pico;
  /** What neither calls nor findings nor nuisances explain, in whole cents: the financial summary's figures. */
  unexplainedPico: Pico;
  /** What findings with an explanation come to, undercharges taken off: part of no sum. */
  inFindingsPico: Pico;
  /** What is disputed of these days now, claimed or not: part of no sum. */
  disputedPico: Pico;
  /** What providers have credited on claims over these days, whenever the credit came: part of no sum. */
  creditedPico: Pico;
}

export function noFigures(): StatementFigures {
  return {
    listPico: 0n,
    contractDiscountPico: 0n,
    otherDiscountPico: 0n,
    rateDifferencePico: 0n,
    notPricedPico: 0n,
    restatedPico: 0n,
    freeAllowancePico: 0n,
    billed: { usage: 0n, tax: 0n, credit: 0n, refund: 0n, purchase: 0n, adjustment: 0n },
    verified: { HIGH: 0n, MEDIUM: 0n, LOW: 0n, UNVERIFIED: 0n },
    notObservablePico: 0n,
    notYetObservedPico: 0n,
    notComparedPico: 0n,
    acrossAccountsPico: 0n,
    notMatchedPico: 0n,
    notMatchedRatePico: 0n,
    unexplainedPico: 0n,
    inFindingsPico: 0n,
    disputedPico: 0n,
    creditedPico: 0n,
  };
}

type AmountName = Exclude<keyof StatementFigures, 'billed' | 'verified'>;

/** Adds the figures of a part to those of the whole. */
export function addFigures(whole: StatementFigures, part: StatementFigures): void {
  for (const name of Object.keys(part) as (keyof StatementFigures)[])
    if (name !== 'billed' && name !== 'verified') whole[name as AmountName] += part[name as AmountName];
  for (const category of Object.keys(part.billed) as ChargeCategory[])
    whole.billed[category] += part.billed[category];
  for (const grade of GRADES) whole.verified[grade] += part.verified[grade];
}

/** Everything that was charged and credited: the invoice. */
export function invoiceTotalOf({ billed }: StatementFigures): Pico {
  return Object.values(billed).reduce((total, amount) => total + amount, 0n);
}

/** List − billed of all that can be priced, signed: what was charged above the agreed rate lessens it. */
export function discountsOf(figures: StatementFigures): Pico {
  return figures.contractDiscountPico + figures.otherDiscountPico - figures.rateDifferencePico;
}

/** Of what no call matches, the part that is not unexplained: findings, nuisances, and what is decided or not final. */
export function explainedByFindingsOf({ notMatchedPico, unexplainedPico }: StatementFigures): Pico {
  return notMatchedPico - unexplainedPico;
}

/** Adds a charge's list price and what became of it. False when it has none and is to be named. */
export function addCharge(figures: StatementFigures, charge: DayCharge): boolean {
  const { verdict, billedPico, agreedPico, listPico, givenListPico } = charge;
  if (verdict === 'free_allowance') {
    figures.freeAllowancePico += listPico ?? givenListPico ?? 0n;
    return true;
  }
  const isJudged = verdict === 'as_agreed' || verdict === 'differs';
  if (isJudged && agreedPico !== null && listPico !== null) {
    figures.listPico += listPico;
    figures.contractDiscountPico += listPico - agreedPico;
    figures.rateDifferencePico += billedPico - agreedPico;
    return true;
  }
  if (givenListPico !== null) {
    figures.listPico += givenListPico;
    figures.otherDiscountPico += givenListPico - billedPico;
    return true;
  }
  figures.notPricedPico += billedPico;
  return billedPico === 0n;
}

/** A published bucket of a day whose bill has not changed since it was compared. */
export interface ComparedBucket {
  provider: string;
  /** '' where calls of unknown account are compared with the sum over all accounts. */
  accountId: string;
  day: string;
  grade: Grade;
  reason: BucketReason | null;
  providerCostPico: Pico;
  matchedPico: Pico;
  /** Null where the bill gives no quantities. */
  ratePico: Pico | null;
}

/** Adds what a bucket verifies of the bill, and where the rest of it belongs. */
export function addBucket(figures: StatementFigures, bucket: ComparedBucket): void {
  const { reason, ratePico } = bucket;
  figures.verified[bucket.grade] += bucket.matchedPico;
  const rest = bucket.providerCostPico - bucket.matchedPico;
  if (reason === 'not_observable' || reason === 'free_allowance') figures.notObservablePico += rest;
  else if (reason === 'not_yet_observed') figures.notYetObservedPico += rest;
  else {
    figures.notMatchedPico += rest;
    if (ratePico !== null && ratePico > 0n && rest > 0n)
      figures.notMatchedRatePico += ratePico < rest ? ratePico : rest;
  }
}
