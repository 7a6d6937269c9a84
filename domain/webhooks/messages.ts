import type { ClaimAction, DueClaim } from '../claims/deadlines.js';
import type { DisputeTier } from '../claims/financialSummary.js';
import type { ClaimStatus } from '../claims/lifecycle.js';
import { publicId } from '../ids.js';
import type { InvoiceFailure, InvoiceStatus } from '../invoices/invoice.js';
import type { Tie } from '../invoices/tieOut.js';
import { decimalFromPico, type Pico } from '../money.js';
import { isoFromMicros } from '../period.js';
import type { FindingKind } from '../reconciliation/taxonomy.js';
import type { RunStatus } from '../runs/runKinds.js';

/** Event types for webhook subscriptions. The list grows with new subjects. */
export const WEBHOOK_EVENT_TYPES = [
  'alert.created',
  'claim.created',
  'claim.reminder',
  'claim.status_changed',
  'dispute.opened',
  'dispute.resolved',
  'gap_run.completed',
  'invoice.processed',
  'invoice.failed',
  'report.generated',
  'pricing.proposed',
] as const;
export type WebhookEventType = (typeof WEBHOOK_EVENT_TYPES)[number];

/** Sent only on request. */
export const TEST_MESSAGE_TYPE = 'webhook.test';
/** Gathers the messages of a day, for endpoints that want a digest. */
export const DIGEST_MESSAGE_TYPE = 'digest.daily';
export const MESSAGE_TYPES = [...WEBHOOK_EVENT_TYPES, TEST_MESSAGE_TYPE, DIGEST_MESSAGE_TYPE] as const;
export type MessageType = (typeof MESSAGE_TYPES)[number];

/**
 * `standard`: the signed message (Standard Webhooks). The others are for people and contain a sentence, the amount and
 * a link: an incoming webhook of Slack or Teams, or an e-mail.
 */
export const ENDPOINT_FORMATS = ['standard', 'slack', 'teams', 'email'] as const;
export type EndpointFormat = (typeof ENDPOINT_FORMATS)[number];
/** `daily`: one message a day with everything since the last one. */
export const DIGESTS = ['none', 'daily'] as const;
export type Digest = (typeof DIGESTS)[number];

export const ENDPOINT_STATUSES = ['active', 'disabled'] as const;
export type EndpointStatus = (typeof ENDPOINT_STATUSES)[number];
/** `requested`: an admin disabled it. `gone`: the receiver answered 410. `unsubscribed`: the recipient ended it. */
export const DISABLED_REASONS = ['requested', 'gone', 'unsubscribed'] as const;
export type DisabledReason = (typeof DISABLED_REASONS)[number];

/**
 * `failed`: the last attempt failed. `cancelled`: the endpoint was disabled or removed before the delivery. `gathered`:
 * the message is in a digest, which is a delivery of its own.
 */
export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed', 'cancelled', 'gathered'] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** Ids, kinds and amounts; never a payload or prompt text. */
export type MessageData = { readonly [name: string]: MessageValue | readonly MessageData[] };
export type MessageValue = string | number | boolean | null;

/**
 * The body of every attempt: `{type, timestamp, data}` (Standard Webhooks, "Payload structure"); ISO time of the
 * event.
 */
export function messageBody(type: MessageType, timestamp: string, data: MessageData): string {
  return JSON.stringify({ type, timestamp, data });
}

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

/** The webhook message of a claim's status change: `id` is the message's own uuid, `from` the previous status. */
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

/** The webhook message of a draft. It has the claim's id, so a receiver never sees one draft as two messages. */
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

interface ClaimReminder {
  claim: DueClaim;
  action: ClaimAction;
  /** The due time; the reminder can be later, as after an outage. */
  dueMicros: bigint;
  /** uuid of the alert `claim_due` that was created with the reminder. */
  alertId: string;
  atMicros: bigint;
}

/** The webhook message of a reminder; `id` is the message's own uuid, since `alert.created` has the alert's id. */
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

/** The webhook message of a dispute. It has the dispute's id, so one dispute is never two messages. */
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

/** A resolved dispute, reduced to the fields that receivers get. */
export interface ResolvedDispute {
  /** uuid */
  id: string;
  findingId: string;
  /** The claim whose end resolved the dispute; null: it was resolved without a claim. */
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

/**
 * The webhook message of a resolved dispute; `id` is the message's own uuid, since `dispute.opened` has the
 * dispute's id.
 */
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

/** A finished gap run, reduced to the fields that receivers get. */
export interface EndedGapRun {
  /** uuid */
  id: string;
  status: Exclude<RunStatus, 'queued' | 'running'>;
  /** `7d`, `30d` or `90d`. */
  period: string;
  /** null: all providers with bills. */
  provider: string | null;
  /** Lines of the result, and below the flagged ones; null: the run ended without a result. */
  total: number | null;
  flagged: number | null;
  finishedAtMicros: bigint;
}

/** The message contains the run's id only, and has it as its own id, so one run is one message. */
export function gapRunMessage(run: EndedGapRun): { id: string; type: 'gap_run.completed'; body: string } {
  const finishedAt = isoFromMicros(run.finishedAtMicros);
  return {
    id: run.id,
    type: 'gap_run.completed',
    body: messageBody('gap_run.completed', finishedAt, {
      run_id: publicId('run', run.id),
      status: run.status,
      period: run.period,
      provider: run.provider,
      total: run.total,
      flagged: run.flagged,
      finished_at: finishedAt,
    }),
  };
}

/** An invoice whose run has ended, reduced to the fields that receivers get. */
export interface ProcessedInvoice {
  /** uuid */
  id: string;
  runId: string;
  provider: string;
  status: InvoiceStatus;
  failureCode: InvoiceFailure | null;
  number: string | null;
  currency: string | null;
  total: Pico | null;
  tie: Tie | null;
  finishedAtMicros: bigint;
}

/** The message of an invoice's run. It has the run's id, so one run is never two messages. */
export function invoiceMessage(invoice: ProcessedInvoice): { id: string; type: MessageType; body: string } {
  const finishedAt = isoFromMicros(invoice.finishedAtMicros);
  const about = {
    invoice_id: publicId('inv', invoice.id),
    run_id: publicId('run', invoice.runId),
    provider: invoice.provider,
    status: invoice.status,
  };
  const type = invoice.status === 'failed' ? 'invoice.failed' : 'invoice.processed';
  const data =
    type === 'invoice.failed'
      ? { ...about, failure_code: invoice.failureCode, finished_at: finishedAt }
      : {
          ...about,
          number: invoice.number,
          currency: invoice.currency,
          total: invoice.total === null ? null : decimalFromPico(invoice.total),
          tie: invoice.tie,
          finished_at: finishedAt,
        };
  return { id: invoice.runId, type, body: messageBody(type, finishedAt, data) };
}

/** A report that was generated, as far as receivers learn of it. */
export interface AnnouncedReport {
  /** uuid */
  id: string;
  periodFrom: string;
  periodTo: string;
  sections: readonly string[];
  cause: string;
  cadence: string | null;
  sizeBytes: number;
  generatedAtMicros: bigint;
  expiresAtMicros: bigint;
}

/** The message of a report, with the report's own id: one report is never two messages. */
export function reportMessage(report: AnnouncedReport): {
  id: string;
  type: 'report.generated';
  body: string;
} {
  const generatedAt = isoFromMicros(report.generatedAtMicros);
  return {
    id: report.id,
    type: 'report.generated',
    body: messageBody('report.generated', generatedAt, {
      report_id: publicId('rpt', report.id),
      period_from: report.periodFrom,
      period_to: report.periodTo,
      sections: report.sections.join(','),
      cause: report.cause,
      cadence: report.cadence,
      size_bytes: report.sizeBytes,
      generated_at: generatedAt,
      expires_at: isoFromMicros(report.expiresAtMicros),
    }),
  };
}

/** A proposed price, as far as receivers learn of it. */
export interface AnnouncedProposal {
  readonly calls: number;
  readonly currentPico: Pico | null;
  readonly proposedPico: Pico | null;
}

/** The message of new proposals of a price feed: one for each comparison that made some. */
export function proposedMessage(
  id: string,
  feed: string,
  proposals: readonly AnnouncedProposal[],
  atMicros: bigint,
): { id: string; type: 'pricing.proposed'; body: string } {
  const proposedAt = isoFromMicros(atMicros);
  const used = proposals.filter(({ calls }) => calls > 0);
  const changes = used.map(({ currentPico, proposedPico }) =>
    currentPico === null || proposedPico === null ? null : proposedPico - currentPico,
  );
  const change = changes.some((one) => one === null)
    ? null
    : changes.reduce<Pico>((sum, one) => sum + (one ?? 0n), 0n);
  return {
    id,
    type: 'pricing.proposed',
    body: messageBody('pricing.proposed', proposedAt, {
      feed,
      proposals: proposals.length,
      models_in_use: used.length,
      change_30d_usd: change === null ? null : decimalFromPico(change),
      proposed_at: proposedAt,
    }),
  };
}
