/** What a move makes of a claim: the rules that the row, its disputes and its outcome follow. */

import { DomainError, invalidField } from '../errors.js';
import type { TaxonomyKind } from '../reconciliation/taxonomy.js';
import type { ClaimCommand, MoveFields } from './command.js';
import { type ClaimStatus, canMove, isTerminal, nextStatuses } from './lifecycle.js';

/** Digits of a fraction after the point. */
const FRACTION_DIGITS = 12;
/** A credit of less than this share of what was asked for is a partial one by most people's reckoning. */
const WHOLE_CREDIT_PERCENT = 98n;

/** What a move leaves in the columns that it may change; times are left to the database. */
export interface MovedFields {
  externalTicketId: string | null;
  creditIssuedCents: number | null;
}

/** A ticket or a credit that was named before stays until another one is named; nothing is credited on a denied claim. */
export function movedFields(before: MovedFields, to: ClaimStatus, said: MoveFields): MovedFields {
  return {
    externalTicketId: said.externalTicketId ?? before.externalTicketId,
    creditIssuedCents: to === 'denied' ? null : (said.creditIssuedCents ?? before.creditIssuedCents),
  };
}

/** Whether a credit is too large to be called partial: it is then the whole of what was asked for, or more. */
function isWhollyCredited(creditIssuedCents: number, recoverableCents: number): boolean {
  return creditIssuedCents >= recoverableCents;
}

/** Error illegal_transition, claim_conflict or invalid_body where the claim cannot be moved so, as it is. */
export function assertMovable(
  claim: { status: ClaimStatus; version: number; recoverableCents: number },
  command: Pick<ClaimCommand, 'to' | 'version' | 'fields'>,
): void {
  if (!canMove(claim.status, command.to)) {
    const next = nextStatuses(claim.status);
    const remedy = next.length === 0 ? 'nothing follows it' : `from there it goes to ${next.join(', ')}`;
    throw new DomainError(
      'illegal_transition',
      `the claim is ${claim.status} and cannot become ${command.to}: ${remedy}`,
    );
  }
  if (claim.version !== command.version)
    throw new DomainError(
      'claim_conflict',
      `somebody else has changed the claim meanwhile; it is ${claim.status} now: look at it and ask again`,
    );
  const { creditIssuedCents } = command.fields;
  if (
    command.to === 'partial' &&
    creditIssuedCents !== null &&
    isWhollyCredited(creditIssuedCents, claim.recoverableCents)
  )
    throw invalidField(
      'body',
      'credit_issued_cents',
      `must be below total_recoverable_cents (${claim.recoverableCents}) of a partial credit; say credit_issued where all of it came`,
      'invalid_body',
    );
}

/** Whether a claim was recorded as credited in full though clearly less came: it may have been meant as partial. */
export function isShortCredit(claim: {
  status: ClaimStatus;
  creditIssuedCents: number | null;
  recoverableCents: number;
}): boolean {
  if (claim.status !== 'credit_issued' || claim.creditIssuedCents === null) return false;
  return BigInt(claim.creditIssuedCents) * 100n < BigInt(claim.recoverableCents) * WHOLE_CREDIT_PERCENT;
}

/** The share of what was claimed that came back, 0 to 1, as a decimal that is rounded down. */
export function creditedFraction(
  status: ClaimStatus,
  creditIssuedCents: number | null,
  recoverableCents: number,
): string {
  if (status === 'denied' || creditIssuedCents === null) return '0';
  if (creditIssuedCents >= recoverableCents) return '1';
  const scaled = (BigInt(creditIssuedCents) * 10n ** BigInt(FRACTION_DIGITS)) / BigInt(recoverableCents);
  return `0.${scaled.toString().padStart(FRACTION_DIGITS, '0')}`;
}

/** By the provider's word it was a mistake of the organization's own. */
const OWN_MISTAKES: ReadonlySet<TaxonomyKind> = new Set(['client_metering_error', 'stale_price_reference']);
/** By the provider's word the bill was right. */
const RIGHT_BILLS: ReadonlySet<TaxonomyKind> = new Set([
  'unobserved_usage',
  'timing_shift',
  'late_usage_adjustment',
  'contract_terms',
]);

/** What the disputes of a claim are resolved with when it ends; undefined while it has not. */
export function resolutionOf(status: ClaimStatus, violationType: TaxonomyKind | null): string | undefined {
  if (!isTerminal(status)) return undefined;
  if (status === 'credit_issued') return 'credit_received';
  if (status === 'partial') return 'credit_partial';
  if (violationType !== null && OWN_MISTAKES.has(violationType)) return 'our_error';
  if (violationType !== null && RIGHT_BILLS.has(violationType)) return 'provider_correct';
  // Refused for want of evidence, or without another explanation: nobody has shown the bill to be right.
  return 'written_off';
}
