import type { components } from '../../api/client';

export type Claim = components['schemas']['Claim'];
export type ListedClaim = components['schemas']['ListedClaim'];
export type ClaimStatus = ListedClaim['status'];
type Kind = 'plain' | 'good' | 'warn' | 'bad' | 'accent';

/** In the order in which a claim passes through them. */
export const STATUS: Record<ClaimStatus, { label: string; kind: Kind; move: string }> = {
  draft: { label: 'Draft', kind: 'plain', move: 'Back to draft' },
  submitted_to_provider: { label: 'Submitted', kind: 'accent', move: 'Mark as submitted' },
  provider_acknowledged: { label: 'Acknowledged', kind: 'accent', move: 'Provider acknowledged it' },
  under_review: { label: 'Under review', kind: 'accent', move: 'Provider reviews it' },
  escalated: { label: 'Escalated', kind: 'warn', move: 'Escalate' },
  credit_approved: { label: 'Credit approved', kind: 'good', move: 'Provider approved the credit' },
  credit_issued: { label: 'Credit issued', kind: 'good', move: 'Record the credit' },
  partial: { label: 'Partly credited', kind: 'warn', move: 'Record a partial credit' },
  denied: { label: 'Denied', kind: 'bad', move: 'Provider denied it' },
};

export const STATUSES = Object.keys(STATUS) as ClaimStatus[];

const ENDS: readonly ClaimStatus[] = ['credit_issued', 'partial', 'denied'];
export const isOver = ({ status }: { status: ClaimStatus }) => ENDS.includes(status);

/** Possible moves in the order of the statuses. */
export const movesOf = (claim: { next_statuses: ClaimStatus[] }) =>
  STATUSES.filter((status) => claim.next_statuses.includes(status));

export const NEXT_ACTION: Record<string, string> = {
  remind: 'Reminder',
  urgent: 'Urgent: many providers reject charges older than 60 days',
  suggest_escalation: 'Escalation is suggested',
};

/** `2026-10-20 – 2026-10-24`, or the one day. */
export const daysOf = ({
  period_start: from,
  period_end: to,
}: {
  period_start: string;
  period_end: string;
}) => (from === to ? from : `${from} – ${to}`);

/** Whole cents of `1,234.5`; undefined where the text is no amount of dollars and cents. */
export function centsOf(text: string): number | undefined {
  const match = /^\$?(\d+)(?:\.(\d{1,2}))?$/.exec(text.trim().replaceAll(',', ''));
  return match ? Number(`${match[1]}${(match[2] ?? '').padEnd(2, '0')}`) : undefined;
}

export const dollarsOf = (cents: number) =>
  `${Math.trunc(cents / 100)}.${String(cents % 100).padStart(2, '0')}`;
