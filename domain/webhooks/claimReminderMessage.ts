import type { ClaimAction, DueClaim } from '../claims/deadlines.js';
import { publicId } from '../ids.js';
import { isoFromMicros } from '../period.js';
import { messageBody } from './message.js';

/** A reminder of a claim. */
export interface ClaimReminder {
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
