import type { DisputeTier } from '../claims/decision.js';
import { publicId } from '../ids.js';
import { isoFromMicros } from '../period.js';
import type { FindingKind } from '../reconciliation/taxonomy.js';
import { messageBody } from './message.js';

/** A dispute that was opened, as far as receivers are told of it. */
interface OpenedDispute {
  /** uuid */
  id: string;
  findingId: string;
  kind: FindingKind;
  provider: string;
  tier: DisputeTier;
  amountCents: number;
  /** First and last day, `YYYY-MM-DD`. */
  periodStart: string;
  periodEnd: string;
  openedAtMicros: bigint;
}

/** The webhook message of a dispute. It has the dispute's own id, so one dispute is never two messages. */
export function disputeMessage(dispute: OpenedDispute): { id: string; type: 'dispute.opened'; body: string } {
  const openedAt = isoFromMicros(dispute.openedAtMicros);
  return {
    id: dispute.id,
    type: 'dispute.opened',
    body: messageBody('dispute.opened', openedAt, {
      dispute_id: publicId('dsp', dispute.id),
      finding_id: publicId('fnd', dispute.findingId),
      kind: dispute.kind,
      provider: dispute.provider,
      confidence_tier: dispute.tier,
      amount_cents: dispute.amountCents,
      period_start: dispute.periodStart,
      period_end: dispute.periodEnd,
      opened_at: openedAt,
    }),
  };
}

/** A dispute that was resolved, as far as receivers learn of it. */
export interface ResolvedDispute {
  /** uuid */
  id: string;
  findingId: string;
  /** The claim whose end resolved it; null where somebody resolved it without one. */
  claimId: string | null;
  kind: FindingKind;
  provider: string;
  tier: DisputeTier;
  amountCents: number;
  /** First and last day, `YYYY-MM-DD`. */
  periodStart: string;
  periodEnd: string;
  resolution: string;
  resolvedAtMicros: bigint;
}

/** The webhook message of a resolved dispute; `id` is the message's own uuid, since the dispute's is that of its opening. */
export function disputeResolvedMessage(
  id: string,
  dispute: ResolvedDispute,
): { id: string; type: 'dispute.resolved'; body: string } {
  const resolvedAt = isoFromMicros(dispute.resolvedAtMicros);
  return {
    id,
    type: 'dispute.resolved',
    body: messageBody('dispute.resolved', resolvedAt, {
      dispute_id: publicId('dsp', dispute.id),
      finding_id: publicId('fnd', dispute.findingId),
      claim_id: dispute.claimId === null ? null : publicId('clm', dispute.claimId),
      kind: dispute.kind,
      provider: dispute.provider,
      confidence_tier: dispute.tier,
      amount_cents: dispute.amountCents,
      period_start: dispute.periodStart,
      period_end: dispute.periodEnd,
      resolution: dispute.resolution,
      resolved_at: resolvedAt,
    }),
  };
}
