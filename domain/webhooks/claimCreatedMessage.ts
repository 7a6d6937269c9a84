import type { DisputeTier } from '../claims/decision.js';
import { publicId } from '../ids.js';
import { isoFromMicros } from '../period.js';
import { messageBody } from './message.js';

/** A claim that was drafted, as far as receivers are told of it. */
export interface CreatedClaim {
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
