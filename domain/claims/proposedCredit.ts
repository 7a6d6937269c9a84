/** What somebody may do about credits that look like the answer to a claim. */
import { type ClaimStatus, canMove } from './lifecycle.js';

export const CREDIT_SOURCES = ['credit_row', 'restatement'] as const;
export type CreditSource = (typeof CREDIT_SOURCES)[number];
export const CREDIT_STATUSES = ['proposed', 'accepted', 'rejected'] as const;
export type CreditStatus = (typeof CREDIT_STATUSES)[number];

/** The move that says that a credit is the answer. */
export interface CreditMove {
  status: 'credit_issued' | 'partial';
  creditIssuedCents: number;
}

/** The move by which credits become the answer; undefined where the claim can no longer be credited, or it is nothing. */
export function moveOfCredit(
  claim: { status: ClaimStatus; recoverableCents: number },
  cents: number,
): CreditMove | undefined {
  const status = cents < claim.recoverableCents ? 'partial' : 'credit_issued';
  return cents > 0 && canMove(claim.status, status) ? { status, creditIssuedCents: cents } : undefined;
}

/** The proposals that a credit of so many cents consists of: all of them, or the first that is as large; else none. */
export function answeredBy<T extends { cents: number }>(proposals: readonly T[], creditCents: number): T[] {
  if (proposals.reduce((sum, { cents }) => sum + cents, 0) === creditCents) return [...proposals];
  return proposals.filter(({ cents }) => cents === creditCents).slice(0, 1);
}
