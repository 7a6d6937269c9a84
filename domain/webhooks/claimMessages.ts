import type { ClaimAction, DueClaim } from '../claims/deadlines.js';
import type { DisputeTier } from '../claims/decision.js';
import type { ClaimStatus } from '../claims/lifecycle.js';
import { publicId } from '../ids.js';
import { isoFromMicros } from '../period.js';
import { messageBody } from './message.js';

/** A claim as far as receivers are told of it. */
interface ToldClaim {
  /** uuid */
  id: string;
  version: number;
  status: ClaimStatus;
  provider: string;
  tier: DisputeTier;
  recoverableCents: number;
  creditIssuedCents: number | null;
  externalTicketId: string | null;
  submittedAtMicros: bigint | null;
  resolvedAtMicros: bigint | null;
}

/** The webhook message of a move: `id` is the message's own uuid, `from` the status before it. */
export function claimMovedMessage(
  id: string,
  claim: ToldClaim,
  from: ClaimStatus,
  atMicros: bigint,
): { id: string; type: 'claim.status_changed'; body: string } {
  const at = isoFromMicros(atMicros);
  const iso = (micros: bigint | null) => (micros === null ? null : isoFromMicros(micros));
  return {
    id,
    type: 'claim.status_changed',
    body: messageBody('claim.status_changed', at, {
      claim_id: publicId('clm', claim.id),
      version: claim.version,
      previous_status: from,
      status: claim.status,
      provider: claim.provider,
      confidence_tier: claim.tier,
      total_recoverable_cents: claim.recoverableCents,
      credit_issued_cents: claim.creditIssuedCents,
      external_ticket_id: claim.externalTicketId,
      submitted_at: iso(claim.submittedAtMicros),
      resolved_at: iso(claim.resolvedAtMicros),
      changed_at: at,
    }),
  };
}

/** A claim that was drafted, as far as receivers are told of it. */
interface CreatedClaim {
  /** uuid */
  id: string;
  provider: string;
  tier: DisputeTier;
  recoverableCents: number;
  /** First and last day, `YYYY-MM-DD`. */
  periodStart: string;
  periodEnd: string;
  createdAtMicros: bigint;
}

/** The webhook message of a draft. It has the claim's own id, so one claim is never made twice to a receiver. */
export function claimCreatedMessage(claim: CreatedClaim): {
  id: string;
  type: 'claim.created';
  body: string;
} {
  const createdAt = isoFromMicros(claim.createdAtMicros);
  return {
    id: claim.id,
    type: 'claim.created',
    body: messageBody('claim.created', createdAt, {
      claim_id: publicId('clm', claim.id),
      provider: claim.provider,
      confidence_tier: claim.tier,
      total_recoverable_cents: claim.recoverableCents,
      period_start: claim.periodStart,
      period_end: claim.periodEnd,
      created_at: createdAt,
    }),
  };
}

/** A reminder of a claim. */
interface ClaimReminder {
  claim: DueClaim;
  action: ClaimAction;
  /** When it was due; it may be made later, as after an outage. */
  dueMicros: bigint;
  /** uuid of the alert `claim_due` that was made with it. */
  alertId: string;
  atMicros: bigint;
}

/** The webhook message of a reminder; `id` is the message's own uuid, since the alert's is that of `alert.created`. */
export function claimReminderMessage(
  id: string,
  { claim, action, dueMicros, alertId, atMicros }: ClaimReminder,
): { id: string; type: 'claim.reminder'; body: string } {
  const at = isoFromMicros(atMicros);
  return {
    id,
    type: 'claim.reminder',
    body: messageBody('claim.reminder', at, {
      claim_id: publicId('clm', claim.id),
      alert_id: publicId('alr', alertId),
      action,
      status: claim.status,
      since: isoFromMicros(claim.enteredAtMicros),
      due_at: isoFromMicros(dueMicros),
      provider: claim.provider,
      total_recoverable_cents: claim.recoverableCents,
      created_at: at,
    }),
  };
}
