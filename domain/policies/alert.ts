import { publicId } from '../ids.js';
import { isoFromMicros, MICROS_PER_DAY } from '../period.js';
import { messageBody } from '../webhooks/messages.js';
import type { PolicyType } from './policy.js';

/** `policy`: a call broke one. `notice`: the system has something to say of its own. */
export const ALERT_KINDS = ['policy', 'notice'] as const;
export type AlertKind = (typeof ALERT_KINDS)[number];

export const SEVERITIES = ['low', 'medium', 'high'] as const;
export type Severity = (typeof SEVERITIES)[number];

export const ALERT_STATUSES = ['open', 'acknowledged'] as const;
export type AlertStatus = (typeof ALERT_STATUSES)[number];

/** Small values that tell an alert's circumstances; never text of a prompt. */
export type AlertDetails = { readonly [name: string]: string | number | boolean | null | readonly string[] };

/** One policy that one call breaks, as judged when the call is stored. */
export interface Violation {
  policyType: PolicyType;
  policyId: number;
  severity: Severity;
  /** A sentence without anything that a prompt says. */
  message: string;
  details: AlertDetails;
}

/** What the system tells of its own. Grows with each subject; none is renamed, since rows of it stay. */
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
  /** What must not be told twice while it lasts: of one key an organization has at most one notice, ever. */
  key: string;
  /** What it is about: `type` in snake_case, `id` as the API writes it. */
  subject: { type: string; id: string };
  severity: Severity;
  message: string;
  details: AlertDetails;
  /** Of the provider that it concerns, where it concerns one. */
  provider: string | null;
}

/** An alert as far as receivers are told of it. */
interface ToldAlert {
  /** uuid */
  id: string;
  kind: AlertKind;
  /** Of a notice null, as the policy's id and the event's uuid are. */
  policyType: PolicyType | null;
  policyId: number | null;
  eventId: string | null;
  /** Of a policy's alert null. */
  notice: NoticeCode | null;
  subject: { type: string; id: string };
  severity: Severity;
  createdAtMicros: bigint;
}

/** What a policy's alert is about, as its `subject_type` and `subject_id` are stored: the event, by its uuid. */
export function subjectOfEvent(eventUuid: string): { type: 'event'; id: string } {
  return { type: 'event', id: publicId('evt', eventUuid) };
}

/** Ids and kinds only; details are requested by id. The message has the alert's id, so one alert is one message. */
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

/** Calls that are looked at: those of the last day, so that what was mended is soon seen no more. */
export const LOOK_BACK_MICROS = MICROS_PER_DAY;
/** Whoever has acknowledged the notice has so long to mend what it tells, before it is told again. */
export const TOLD_AGAIN_AFTER_MICROS = 7n * MICROS_PER_DAY;

/** Two scopes of one service that tell the same calls. */
interface DoubleScopes {
  /** OTel `service.name`; '' for calls that name none. */
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

/** Whether it is to be told: for the first time, or since it goes on long after somebody has said that it was seen to. */
export function isWorthNotice(former: FormerNotice | undefined, nowMicros: bigint): boolean {
  if (!former) return true;
  return (
    former.acknowledgedAtMicros !== null && nowMicros - former.acknowledgedAtMicros >= TOLD_AGAIN_AFTER_MICROS
  );
}

/** `pairKey` and the notice before it name the episode, so that two processes publish one notice. */
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
