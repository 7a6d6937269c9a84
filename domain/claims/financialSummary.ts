import { compare } from '../compare.js';
import { centsFromPico, PICO_PER_USD, type Pico } from '../money.js';
import type { Severity } from '../policies/alert.js';
import type { Blame, Direction, Finding } from '../reconciliation/engine/index.js';

import type { Grade } from '../reconciliation/matching/cells.js';

/** Recoverable and avoidable money in six numbers that add up (docs/financial.md). */

/** Sums of finding days that count alike; open and confirmed findings only. */
export interface FindingSum {
  provider: string;
  accountId: string;
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

/** The number to which days of a finding count. */
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

/** Provisional and UNVERIFIED amounts never count; otherwise a confirmation counts at any grade. */
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

/** An account's month: overcharges, undercharges, the recoverable amount, and unexplained dollars. */
export interface RecoverableMonth {
  provider: string;
  accountId: string;
  month: string;
  confirmedPico: Pico;
  reviewPico: Pico;
  underchargedPico: Pico;
  /** Net of undercharges, which are subtracted from confirmed amounts first; in cents, rounded down. */
  recoverableConfirmedPico: Pico;
  recoverableReviewPico: Pico;
  /** Unexplained overcharges, each in whole cents. */
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
  totalPico: Pico;
  /** Newest month first, then by provider and account. */
  breakdown: RecoverableMonth[];
  /** Exact amounts that are in none of the six numbers. */
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

/** A finding's amount as a positive number, for overcharges and undercharges. */
const sizeOf = ({ direction, impactPico }: FindingSum): Pico =>
  direction === 'overcharge' ? impactPico : -impactPico;

/** The months of accounts with an amount, newest first; the statement of a month shows the same figures. */
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

/** The decisions of people about findings: which findings they review, and which become disputes. */

/** `gone`: a decided finding that later runs no longer contain. */
export const FINDING_STATUSES = ['open', 'confirmed', 'dismissed', 'gone'] as const;
export type FindingStatus = (typeof FINDING_STATUSES)[number];

/** `claimed`: a claim with the dispute was sent to the provider. An open dispute can be resolved without a claim. */
export const DISPUTE_STATUSES = ['open', 'claimed', 'resolved'] as const;
export type DisputeStatus = (typeof DISPUTE_STATUSES)[number];

/** The certainty of disputes; UNVERIFIED findings are never disputed. */
export const DISPUTE_TIERS = ['HIGH', 'MEDIUM', 'LOW'] as const satisfies readonly Grade[];
export type DisputeTier = (typeof DISPUTE_TIERS)[number];

const HIGH_IMPACT_PICO = 100n * PICO_PER_USD;
const MEDIUM_IMPACT_PICO = 10n * PICO_PER_USD;

type Judged = Pick<Finding, 'kind' | 'direction' | 'blame' | 'grade' | 'provisional'>;

/** People review provider mistakes and unexplained gaps, once days are final. */
export function isForReview({ kind, blame, provisional }: Judged): boolean {
  return !provisional && (blame === 'provider' || kind === 'unexplained');
}

/** The severity by dollars; high for every finding that the engine marks critical. */
export function severityOf({ impactPico, critical }: Pick<Finding, 'impactPico' | 'critical'>): Severity {
  const size = impactPico < 0n ? -impactPico : impactPico;
  if (critical || size >= HIGH_IMPACT_PICO) return 'high';
  return size >= MEDIUM_IMPACT_PICO ? 'medium' : 'low';
}

/**
 * The tier of a dispute; undefined: too uncertain. An unexplained gap is LOW, since its grade concerns the gap and
 * not the cause.
 */
export function disputeTier({ kind, grade }: Pick<Judged, 'kind' | 'grade'>): DisputeTier | undefined {
  if (kind === 'unexplained') return 'LOW';
  return DISPUTE_TIERS.find((tier) => tier === grade);
}

/** The reason why a finding is not reviewed, as a sentence; undefined: it is. */
export function whyNotForReview(finding: Judged): string | undefined {
  if (isForReview(finding)) return undefined;
  return finding.provisional
    ? 'the provider may still restate these days; decide when they are final'
    : 'it is no mistake of the provider, so there is nothing to decide; its advice says what to change';
}

export function whyNotDisputable(finding: Judged): string | undefined {
  if (finding.direction === 'undercharge')
    return 'the provider charged too little, so there is nothing to ask back; claims of the same month are netted with it';
  if (disputeTier(finding) === undefined)
    return 'it is UNVERIFIED, and what cannot be shown is not disputed; its advice says what would raise its grade';
  return undefined;
}

/** All amounts of findings, disputes and claims are rounded here, so that each amount has one figure everywhere. */

/** Whole cents of an amount, rounded toward zero, so that a claim never asks for more than it can prove. */
export function claimCents(pico: Pico): bigint {
  return pico / PICO_PER_CENT;
}

/** Cents as dollars with commas: `$1,234.56`, `-$0.05`. */
export function dollarsText(cents: bigint): string {
  const digits = (cents < 0n ? -cents : cents).toString().padStart(3, '0');
  const whole = digits.slice(0, -2).replace(/\B(?=(\d{3})+$)/g, ',');
  return `${cents < 0n ? '-' : ''}$${whole}.${digits.slice(-2)}`;
}

/** An exact amount as a finding or claim shows it: `$109.01` for 109.0176. */
export const claimDollars = (pico: Pico): string => dollarsText(claimCents(pico));

/** The claimed amount of a month, `YYYY-MM`. */
export interface ClaimedMonth {
  month: string;
  impactPico: Pico;
}

/** Divides a credit among months in proportion to the claim, exactly and independent of their order. */
export function allotCredit(creditCents: number, months: readonly ClaimedMonth[]): Map<string, Pico> {
  const creditPico = BigInt(creditCents) * PICO_PER_CENT;
  const claimed = months
    .filter(({ impactPico }) => impactPico > 0n)
    .sort((a, b) => (a.month < b.month ? -1 : 1));
  const total = claimed.reduce((sum, { impactPico }) => sum + impactPico, 0n);
  const parts = new Map<string, Pico>();
  let upTo = 0n;
  for (const { month, impactPico } of claimed) {
    const before = (creditPico * upTo) / total;
    upTo += impactPico;
    parts.set(month, (parts.get(month) ?? 0n) + (creditPico * upTo) / total - before);
  }
  return parts;
}
