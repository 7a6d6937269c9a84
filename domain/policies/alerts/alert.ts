import type { PolicyType } from '../policy.js';

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
