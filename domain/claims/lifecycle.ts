import { DomainError, invalidField } from '../errors.js';
import type { TaxonomyKind } from '../reconciliation/taxonomy.js';

/** The table of claim statuses and moves; API, workflow, activity, SQL check and docs/claims.md follow it, tests check it. */

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

/** The moves that are legal. Providers skip steps in real correspondence; a refusal that is contested is `escalated`. */
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
  // An approval that is taken back is an escalation first.
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

/** The statuses that a claim may go to from this one; none from a terminal one. Never the same one. */
export function nextStatuses(from: ClaimStatus): readonly ClaimStatus[] {
  return NEXT[from];
}

export function canMove(from: ClaimStatus, to: ClaimStatus): boolean {
  return NEXT[from].includes(to);
}

/** Nothing follows: the claim is over, and `resolved_at` says since when. */
export function isTerminal(status: ClaimStatus): boolean {
  return NEXT[status].length === 0;
}

/** Sent, and not over: the provider has the word. */
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

/** A move of a claim that somebody asks for, on its way from the API through the workflow to the row. */

export interface MoveFields {
  /** Why the provider refused, in its words. */
  denialReason: string | null;
  /** What it was, by the provider's word. */
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
  /** The same for every repeat of one request; a command that is recorded is never carried out again. */
  commandId: string;
  to: ClaimStatus;
  /** Of the claim as whoever asks has seen it: the move is refused where it is another one by now. */
  version: number;
  /** By the database's clock, microseconds since 1970: it is refused from then on. */
  notAfterMicros: number;
  fields: MoveFields;
  keyId: string;
  requestId: string;
}

/** What the workflow of a claim knows of its row: what it waits by. */
export interface ClaimState {
  version: number;
  status: ClaimStatus;
  /** When the next notice is due, microseconds since 1970; null: none is. */
  nextActionAtMicros: number | null;
}

/** What a move makes of a claim: the rules that the row, its disputes and its outcome follow. */

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

/** What somebody may do about credits that look like the answer to a claim. */

export const CREDIT_SOURCES = ['credit_row', 'restatement'] as const;
export type CreditSource = (typeof CREDIT_SOURCES)[number];
export const CREDIT_STATUSES = ['proposed', 'accepted', 'rejected'] as const;
export type CreditStatus = (typeof CREDIT_STATUSES)[number];

interface CreditMove {
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
