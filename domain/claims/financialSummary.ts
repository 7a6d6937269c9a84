import { compare } from '../compare.js';
import { centsFromPico, PICO_PER_USD, type Pico } from '../money.js';
import type { Blame, Direction } from '../reconciliation/inference/finding.js';
import type { Grade } from '../reconciliation/matching/cells.js';
import { claimCents } from './claimAmount.js';

/** What there is to get back and to save, in six numbers that add up (docs/financial.md). */

/** Days of findings that count as the same, added up; open and confirmed findings alone. */
export interface FindingSum {
  provider: string;
  accountId: string;
  /** `YYYY-MM` */
  month: string;
  isUnexplained: boolean;
  isConfirmed: boolean;
  direction: Direction;
  blame: Blame;
  claimable: boolean;
  grade: Grade;
  provisional: boolean;
  critical: boolean;
  impactPico: Pico;
}

/** What days of a finding count as. */
type CountedAs =
  | 'confirmed'
  | 'review'
  | 'undercharged'
  | 'unexplained_critical'
  | 'unexplained_review'
  | 'unexplained_undercharged'
  | 'provisional'
  | 'unverified'
  | 'not_claimable'
  | 'nothing';

/**
 * What a finding counts as. Provisional days may be restated, and what is UNVERIFIED cannot be shown: neither is ever asked
 * for. Somebody's confirmation counts whatever the grade, but for these.
 */
function countedAs(sum: Omit<FindingSum, 'provider' | 'accountId' | 'month' | 'impactPico'>): CountedAs {
  const isOver = sum.direction === 'overcharge';
  if (!sum.isUnexplained && sum.blame !== 'provider') return 'nothing';
  if (sum.provisional) return isOver ? 'provisional' : 'nothing';
  if (sum.isUnexplained) {
    if (!isOver) return 'unexplained_undercharged';
    return sum.critical ? 'unexplained_critical' : 'unexplained_review';
  }
  if (sum.grade === 'UNVERIFIED') return isOver ? 'unverified' : 'nothing';
  if (!isOver) return 'undercharged';
  if (sum.isConfirmed) return 'confirmed';
  if (!sum.claimable) return 'not_claimable';
  return sum.grade === 'HIGH' ? 'confirmed' : 'review';
}

/** An account's month: what was charged too much and too little, what is left to ask back, what nothing explains. */
export interface RecoverableMonth {
  provider: string;
  accountId: string;
  month: string;
  confirmedPico: Pico;
  reviewPico: Pico;
  underchargedPico: Pico;
  /** Net of what was charged too little, which is taken from what is confirmed first; in cents, rounded down. */
  recoverableConfirmedPico: Pico;
  recoverableReviewPico: Pico;
  /** Overcharges that nothing explains, each in whole cents. */
  unexplainedCriticalPico: Pico;
  unexplainedReviewPico: Pico;
}

export interface FinancialSummary {
  /** Each in whole cents. */
  recoverableConfirmedPico: Pico;
  recoverableReviewPico: Pico;
  preventedPico: Pico;
  preventableModeledPico: Pico;
  unexplainedCriticalPico: Pico;
  unexplainedReviewPico: Pico;
  /** Of the six as they are shown. */
  totalPico: Pico;
  /** Newest month first, then by provider and account. */
  breakdown: RecoverableMonth[];
  /** Exact: what stands in none of the six. */
  provisionalPico: Pico;
  unverifiedPico: Pico;
  notClaimablePico: Pico;
  unexplainedUnderchargedPico: Pico;
}

const PICO_PER_CENT = PICO_PER_USD / 100n;
const NONE: Record<CountedAs, Pico> = {
  confirmed: 0n,
  review: 0n,
  undercharged: 0n,
  unexplained_critical: 0n,
  unexplained_review: 0n,
  unexplained_undercharged: 0n,
  provisional: 0n,
  unverified: 0n,
  not_claimable: 0n,
  nothing: 0n,
};

const positive = (pico: Pico): Pico => (pico > 0n ? pico : 0n);
const wholeCents = (pico: Pico): Pico => centsFromPico(pico) * PICO_PER_CENT;

/** A finding's amount as a positive number, whichever way the bill is wrong. */
const sizeOf = ({ direction, impactPico }: FindingSum): Pico =>
  direction === 'overcharge' ? impactPico : -impactPico;

/** The accounts' months that have an amount, newest first: the statement of a month shows the same figures. */
export function accountMonthsOf(sums: readonly FindingSum[]): RecoverableMonth[] {
  const months = new Map<string, { first: FindingSum; amounts: Record<CountedAs, Pico> }>();
  for (const sum of sums) {
    const key = JSON.stringify([sum.month, sum.provider, sum.accountId]);
    const found = months.get(key) ?? { first: sum, amounts: { ...NONE } };
    months.set(key, found);
    found.amounts[countedAs(sum)] += sizeOf(sum);
  }
  return [...months.values()]
    .map(({ first, amounts }) => recoverableMonth(first, amounts))
    .filter((month) => Object.values(month).some((value) => typeof value === 'bigint' && value > 0n))
    .sort(byNewestMonth);
}

/** The summary of findings, of what rules have prevented and of what they would have saved. */
export function summarize(
  sums: readonly FindingSum[],
  enforcement: { preventedPico: Pico; preventableModeledPico: Pico },
): FinancialSummary {
  const totals = { ...NONE };
  for (const sum of sums) totals[countedAs(sum)] += sizeOf(sum);
  const breakdown = accountMonthsOf(sums);
  const shown = {
    recoverableConfirmedPico: addUp(breakdown.map((month) => month.recoverableConfirmedPico)),
    recoverableReviewPico: addUp(breakdown.map((month) => month.recoverableReviewPico)),
    preventedPico: wholeCents(enforcement.preventedPico),
    preventableModeledPico: wholeCents(enforcement.preventableModeledPico),
    unexplainedCriticalPico: addUp(breakdown.map((month) => month.unexplainedCriticalPico)),
    unexplainedReviewPico: addUp(breakdown.map((month) => month.unexplainedReviewPico)),
  };
  return {
    ...shown,
    totalPico: addUp(Object.values(shown)),
    breakdown,
    provisionalPico: positive(totals.provisional),
    unverifiedPico: positive(totals.unverified),
    notClaimablePico: positive(totals.not_claimable),
    unexplainedUnderchargedPico: positive(totals.unexplained_undercharged),
  };
}

function recoverableMonth(
  { provider, accountId, month }: FindingSum,
  amounts: Record<CountedAs, Pico>,
): RecoverableMonth {
  const confirmedPico = positive(amounts.confirmed);
  const reviewPico = positive(amounts.review);
  const underchargedPico = positive(amounts.undercharged);
  const leftOver = positive(underchargedPico - confirmedPico);
  return {
    provider,
    accountId,
    month,
    confirmedPico,
    reviewPico,
    underchargedPico,
    recoverableConfirmedPico: claimCents(positive(confirmedPico - underchargedPico)) * PICO_PER_CENT,
    recoverableReviewPico: claimCents(positive(reviewPico - leftOver)) * PICO_PER_CENT,
    unexplainedCriticalPico: wholeCents(positive(amounts.unexplained_critical)),
    unexplainedReviewPico: wholeCents(positive(amounts.unexplained_review)),
  };
}

function addUp(amounts: readonly Pico[]): Pico {
  return amounts.reduce((sum, amount) => sum + amount, 0n);
}

function byNewestMonth(a: RecoverableMonth, b: RecoverableMonth): number {
  const newest = compare(b.month, a.month);
  return newest || compare(a.provider, b.provider) || compare(a.accountId, b.accountId);
}
