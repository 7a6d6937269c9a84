/**
 * The life of a claim as one table: which status may follow which, and what a move must say. The API, the workflow, the
 * activity, the check in Postgres and the diagram in docs/claims.md all say what stands here; tests hold them to it.
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

/** What a move must say beside the status. */
export interface MoveRequirements {
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
