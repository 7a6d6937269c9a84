import { publicId } from '../../ids.js';
import { isoFromMicros } from '../../period.js';
import { messageBody } from '../../webhooks/message.js';
import type { PolicyType } from '../policy.js';
import type { AlertKind, NoticeCode, Severity } from './alert.js';

/** An alert as far as receivers are told of it. */
export interface ToldAlert {
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

/**
 * The webhook message of an alert: ids and kinds alone. Its sentence and its details are asked for by the id, so that
 * whoever runs a receiver sees no more than its key may read. The message has the alert's own id, so one alert is never
 * two messages.
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
