import { publicId } from '../ids.js';
import { dayOf, isoFromMicros, shiftDay } from '../period.js';
import type { Notice } from '../policies/alerts/alert.js';
import { type ClaimClock, type ClaimDeadline, DISPUTE_WINDOW_DAYS } from './deadlines.js';
import type { ClaimStatus } from './lifecycle.js';

/** A claim as far as its notices tell of it. */
export interface DueClaim extends ClaimClock {
  /** uuid */
  id: string;
  provider: string;
  recoverableCents: number;
}

/** What has not happened yet. */
const WAITING: Readonly<Partial<Record<ClaimStatus, string>>> = {
  draft: 'is still a draft: send it to the provider, or discard it',
  submitted_to_provider: 'was not acknowledged by the provider',
  provider_acknowledged: 'was acknowledged and not taken up by the provider',
  under_review: 'is still under review',
  credit_approved: 'was approved, and its credit is not recorded',
  escalated: 'is escalated and not decided',
};

/** The notice of a deadline that was due at a time: of each there is one, whatever becomes of the calendar. */
export function dueNotice(claim: DueClaim, deadline: ClaimDeadline, dueMicros: bigint): Notice {
  const { status, enteredAtMicros, provider, recoverableCents } = claim;
  const { action, name } = deadline;
  const id = publicId('clm', claim.id);
  const since = isoFromMicros(enteredAtMicros);
  return {
    code: 'claim_due',
    key: `claim_due:${id}:${status}:${since}:${name}`,
    subject: { type: 'claim', id },
    severity: action === 'urgent' ? 'high' : 'medium',
    message: sentenceOf(claim, action, id),
    details: {
      action,
      status,
      due_at: isoFromMicros(dueMicros),
      since,
      total_recoverable_cents: recoverableCents,
    },
    provider,
  };
}

function sentenceOf(claim: DueClaim, action: ClaimDeadline['action'], id: string): string {
  const { status, periodEnd, enteredAtMicros } = claim;
  const waiting = `The claim ${id} ${WAITING[status] ?? 'is open'} (since ${dayOf(enteredAtMicros)})`;
  if (action === 'urgent')
    return `${waiting}. Its charges are of ${periodEnd} and before; the terms of many providers hear of none that is older than ${DISPUTE_WINDOW_DAYS} days, which it will be on ${shiftDay(periodEnd, DISPUTE_WINDOW_DAYS)}.`;
  return action === 'suggest_escalation' ? `${waiting}. It may be time to escalate it.` : `${waiting}.`;
}
