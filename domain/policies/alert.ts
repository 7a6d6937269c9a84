import { publicId } from '../ids.js';
import { isoFromMicros, MICROS_PER_DAY } from '../period.js';
import { messageBody } from '../webhooks/messages.js';
import type { PolicyType } from './policy.js';

/** `policy`: a call broke a policy. `notice`: the service reports about itself. */
export const ALERT_KINDS = ['policy', 'notice'] as const;
export type AlertKind = (typeof ALERT_KINDS)[number];

export const SEVERITIES = ['low', 'medium', 'high'] as const;
export type Severity = (typeof SEVERITIES)[number];

export const ALERT_STATUSES = ['open', 'acknowledged'] as const;
export type AlertStatus = (typeof ALERT_STATUSES)[number];

/** Small values that describe an alert's circumstances; never prompt text. */
export type AlertDetails = { readonly [name: string]: string | number | boolean | null | readonly string[] };

/** A policy that a call breaks, as judged when the call is stored. */
export interface Violation {
  policyType: PolicyType;
  policyId: number;
  severity: Severity;
  /** A sentence without prompt text. */
  message: string;
  details: AlertDetails;
}

/** The kinds of notices. New ones are added with new subjects; none is renamed, since stored rows contain them. */
export const NOTICE_CODES = [
  'connection_broken',
  'double_instrumentation',
  'webhook_failing',
  'webhook_disabled',
  'claim_due',
  'claim_credit_proposed',
  'claim_evidence_stale',
] as const;
export type NoticeCode = (typeof NOTICE_CODES)[number];

export interface Notice {
  code: NoticeCode;
  /** The key of the episode: an organization has at most one notice of a key, ever. */
  key: string;
  /** The subject: `type` in snake_case, `id` as the API writes it. */
  subject: { type: string; id: string };
  severity: Severity;
  message: string;
  details: AlertDetails;
  /** null: the notice concerns no single provider. */
  provider: string | null;
}

/** An alert, reduced to the fields that receivers get. */
interface ToldAlert {
  /** uuid */
  id: string;
  kind: AlertKind;
  /** null for a notice, like the policy's id and the event's uuid. */
  policyType: PolicyType | null;
  policyId: number | null;
  eventId: string | null;
  /** null for a policy's alert. */
  notice: NoticeCode | null;
  subject: { type: string; id: string };
  severity: Severity;
  createdAtMicros: bigint;
}

/** The subject of a policy's alert, as in `subject_type` and `subject_id`: the event, by its uuid. */
export function subjectOfEvent(eventUuid: string): { type: 'event'; id: string } {
  return { type: 'event', id: publicId('evt', eventUuid) };
}

/**
 * The message has ids and kinds only; receivers request the details by id. It has the alert's id, so one alert is
 * one message.
 */
export function alertMessage(alert: ToldAlert): { id: string; type: 'alert.created'; body: string } {
  const createdAt = isoFromMicros(alert.createdAtMicros);
  return {
    id: alert.id,
    type: 'alert.created',
    body: messageBody('alert.created', createdAt, {
      alert_id: publicId('alr', alert.id),
      kind: alert.kind,
      policy_type: alert.policyType,
      policy_id: alert.policyId,
      notice: alert.notice,
      event_id: alert.eventId === null ? null : publicId('evt', alert.eventId),
      subject_type: alert.subject.type,
      subject_id: alert.subject.id,
      severity: alert.severity,
      created_at: createdAt,
    }),
  };
}

/** Only calls of the last day are checked, so that the notice ends soon after the problem is fixed. */
export const LOOK_BACK_MICROS = MICROS_PER_DAY;
/** After an acknowledgement the notice is not repeated for this time, in which the problem can be fixed. */
export const TOLD_AGAIN_AFTER_MICROS = 7n * MICROS_PER_DAY;

/** Two instrumentation scopes of one service that report the same calls. */
interface DoubleScopes {
  /** OTel `service.name`; '': calls without a service name. */
  serviceName: string;
  scopes: readonly string[];
  calls: number;
  costUsd: string;
}

/** The newest notice of the same service and scopes. */
export interface FormerNotice {
  id: string;
  status: AlertStatus;
  acknowledgedAtMicros: bigint | null;
}

/** Whether to publish a notice: there was none, or the problem continues long after the last one was acknowledged. */
export function isWorthNotice(former: FormerNotice | undefined, nowMicros: bigint): boolean {
  if (!former) return true;
  return (
    former.acknowledgedAtMicros !== null && nowMicros - former.acknowledgedAtMicros >= TOLD_AGAIN_AFTER_MICROS
  );
}

/** The id of the episode consists of `pairKey` and the previous notice, so that two processes publish one notice. */
export function doubleInstrumentation(
  found: DoubleScopes,
  pairKey: string,
  former: FormerNotice | undefined,
): Notice {
  const { serviceName, scopes, calls, costUsd } = found;
  const who = serviceName === '' ? 'A service without a name' : `Service ${serviceName}`;
  return {
    code: 'double_instrumentation',
    key: `${pairKey}:${former?.id ?? 'first'}`,
    subject: { type: 'service', id: serviceName },
    severity: 'medium',
    message: `${who} is instrumented twice: ${scopes.join(' and ')} both tell its calls, ${calls} of the last day for $${costUsd}. Name the scope that counts in the setting counted_scopes, or remove one of them.`,
    details: { service: serviceName, scopes, calls, cost_usd: costUsd },
    provider: null,
  };
}
