import type { AuditActor } from '../access/auditLog.js';
import { DomainError, invalidField } from '../errors.js';
import type { TaxonomyKind } from '../reconciliation/taxonomy.js';

/**
 * The claim statuses and their moves. API, workflow, activity, SQL check and docs/claims.md follow this table, and
 * tests check that.
 */

export const CLAIM_STATUSES = [
  'draft',
  'submitted_to_provider',
  'provider_acknowledged',
  'under_review',
  'credit_approved',
  'credit_issued',
  'denied',
  'partial',
  'escalated',
] as const;
export type ClaimStatus = (typeof CLAIM_STATUSES)[number];

/** The legal moves. Providers skip steps in real correspondence; a contested refusal is `escalated`. */
const NEXT: Readonly<Record<ClaimStatus, readonly ClaimStatus[]>> = {
  draft: ['submitted_to_provider'],
  submitted_to_provider: [
    'provider_acknowledged',
    'under_review',
    'credit_approved',
    'credit_issued',
    'partial',
    'denied',
    'escalated',
  ],
  provider_acknowledged: [
    'under_review',
    'credit_approved',
    'credit_issued',
    'partial',
    'denied',
    'escalated',
  ],
  under_review: ['credit_approved', 'credit_issued', 'partial', 'denied', 'escalated'],
  // If an approval is withdrawn, the claim is escalated first.
  credit_approved: ['credit_issued', 'partial', 'escalated'],
  escalated: [
    'provider_acknowledged',
    'under_review',
    'credit_approved',
    'credit_issued',
    'partial',
    'denied',
  ],
  credit_issued: [],
  denied: [],
  partial: [],
};

/** The statuses that may follow this one, never including it; empty for a terminal status. */
export function nextStatuses(from: ClaimStatus): readonly ClaimStatus[] {
  return NEXT[from];
}

export function canMove(from: ClaimStatus, to: ClaimStatus): boolean {
  return NEXT[from].includes(to);
}

/** Whether the claim has ended, at `resolved_at`: no status follows. */
export function isTerminal(status: ClaimStatus): boolean {
  return NEXT[status].length === 0;
}

/** Whether the claim was sent and has not ended: the provider must answer. */
export function isFiled(status: ClaimStatus): boolean {
  return status !== 'draft' && !isTerminal(status);
}

interface MoveRequirements {
  denialReason: boolean;
  violationType: boolean;
  creditIssued: boolean;
}

export function requiredFor(to: ClaimStatus): MoveRequirements {
  return {
    denialReason: to === 'denied',
    violationType: to === 'denied',
    creditIssued: to === 'credit_issued' || to === 'partial',
  };
}

/** A requested move of a claim, on its way from the API through the workflow to the row. */

export interface MoveFields {
  /** The reason of the refusal, in the provider's words. */
  denialReason: string | null;
  /** The provider's classification of the mistake. */
  violationType: TaxonomyKind | null;
  creditIssuedCents: number | null;
  /** The provider's reference. */
  externalTicketId: string | null;
}

export const NO_FIELDS: MoveFields = {
  denialReason: null,
  violationType: null,
  creditIssuedCents: null,
  externalTicketId: null,
};

export interface ClaimCommand {
  claimId: string;
  /** Equal for every repeat of a request; a recorded command is not executed again. */
  commandId: string;
  to: ClaimStatus;
  /** The version of the claim that the client saw; the move is refused if the claim has changed since. */
  version: number;
  /** The move is refused from this time on, by the database's clock, microseconds since 1970. */
  notAfterMicros: number;
  fields: MoveFields;
  keyId: string;
  /** Its actor in the audit log, where it is no key. */
  actor?: AuditActor;
  requestId: string;
}

/** The fields of a claim's row that its workflow needs to wait. */
export interface ClaimState {
  version: number;
  status: ClaimStatus;
  /** The time of the next notice, microseconds since 1970; null: none is due. */
  nextActionAtMicros: number | null;
}

/** The effect of a move on the claim's row, its disputes and its outcome. */

/** Decimals of a fraction. */
const FRACTION_DIGITS = 12;
/** A credit below this share of the claimed amount counts as partial. */
const WHOLE_CREDIT_PERCENT = 98n;

/** The columns that a move may change, except times, which the database sets. */
export interface MovedFields {
  externalTicketId: string | null;
  creditIssuedCents: number | null;
}

/** A ticket or credit stays until another one is named; a denied claim has no credit. */
export function movedFields(before: MovedFields, to: ClaimStatus, said: MoveFields): MovedFields {
  return {
    externalTicketId: said.externalTicketId ?? before.externalTicketId,
    creditIssuedCents: to === 'denied' ? null : (said.creditIssuedCents ?? before.creditIssuedCents),
  };
}

/** Whether a credit is too large to count as partial: the whole amount or more. */
function isWhollyCredited(creditIssuedCents: number, recoverableCents: number): boolean {
  return creditIssuedCents >= recoverableCents;
}

/** Error illegal_transition, claim_conflict or invalid_body if the claim's present state does not allow the move. */
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

/**
 * Whether a claim is recorded as credited in full although clearly less was returned; it may have been meant as
 * partial.
 */
export function isShortCredit(claim: {
  status: ClaimStatus;
  creditIssuedCents: number | null;
  recoverableCents: number;
}): boolean {
  if (claim.status !== 'credit_issued' || claim.creditIssuedCents === null) return false;
  return BigInt(claim.creditIssuedCents) * 100n < BigInt(claim.recoverableCents) * WHOLE_CREDIT_PERCENT;
}

/** The returned share of the claimed amount, 0 to 1, as a decimal rounded down. */
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

/** Classifications by which the mistake was the organization's own. */
const OWN_MISTAKES: ReadonlySet<TaxonomyKind> = new Set(['client_metering_error', 'stale_price_reference']);
/** Classifications by which the bill was right. */
const RIGHT_BILLS: ReadonlySet<TaxonomyKind> = new Set([
  'unobserved_usage',
  'timing_shift',
  'late_usage_adjustment',
  'contract_terms',
]);

/** The resolution of a claim's disputes when it ends; undefined: it has not ended. */
export function resolutionOf(status: ClaimStatus, violationType: TaxonomyKind | null): string | undefined {
  if (!isTerminal(status)) return undefined;
  if (status === 'credit_issued') return 'credit_received';
  if (status === 'partial') return 'credit_partial';
  if (violationType !== null && OWN_MISTAKES.has(violationType)) return 'our_error';
  if (violationType !== null && RIGHT_BILLS.has(violationType)) return 'provider_correct';
  // Refused for lack of evidence or without an explanation: the bill was not proven right.
  return 'written_off';
}

/** The kinds of credits that can be proposed as the answer to a claim. */

export const CREDIT_SOURCES = ['credit_row', 'restatement'] as const;
export type CreditSource = (typeof CREDIT_SOURCES)[number];
export const CREDIT_STATUSES = ['proposed', 'accepted', 'rejected'] as const;
export type CreditStatus = (typeof CREDIT_STATUSES)[number];

interface CreditMove {
  status: 'credit_issued' | 'partial';
  creditIssuedCents: number;
}

/**
 * The move that accepts credits as the answer; undefined: the claim can no longer be credited, or the credit is
 * zero.
 */
export function moveOfCredit(
  claim: { status: ClaimStatus; recoverableCents: number },
  cents: number,
): CreditMove | undefined {
  const status = cents < claim.recoverableCents ? 'partial' : 'credit_issued';
  return cents > 0 && canMove(claim.status, status) ? { status, creditIssuedCents: cents } : undefined;
}

/** The proposals that add up to a credit: all of them, or the first of the same amount; else none. */
export function answeredBy<T extends { cents: number }>(proposals: readonly T[], creditCents: number): T[] {
  if (proposals.reduce((sum, { cents }) => sum + cents, 0) === creditCents) return [...proposals];
  return proposals.filter(({ cents }) => cents === creditCents).slice(0, 1);
}
