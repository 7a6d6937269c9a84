import type { DisputeTier } from '../claims/decision.js';
import type { ClaimStatus } from '../claims/lifecycle.js';
import { publicId } from '../ids.js';
import { isoFromMicros } from '../period.js';
import { messageBody } from './message.js';

/** A claim as far as receivers are told of it. */
export interface ToldClaim {
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
