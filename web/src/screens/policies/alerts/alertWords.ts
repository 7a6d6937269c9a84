import type { components } from '../../../api/client';
import { policyName } from '../policyWords';

export type Alert = components['schemas']['Alert'];

export const SEVERITY: Record<Alert['severity'], { label: string; kind: 'plain' | 'warn' | 'bad' }> = {
  high: { label: 'High', kind: 'bad' },
  medium: { label: 'Medium', kind: 'warn' },
  low: { label: 'Low', kind: 'plain' },
};

const NOTICE: Record<NonNullable<Alert['notice']>, string> = {
  connection_broken: 'Connection fails',
  double_instrumentation: 'Service instrumented twice',
  webhook_failing: 'Receiver fails',
  webhook_disabled: 'Receiver switched off',
  claim_due: 'Claim is due',
  claim_credit_proposed: 'Credit found for a claim',
  claim_evidence_stale: 'Evidence of a claim is old',
};

export function alertName({ policy_type: policy, notice }: Alert): string {
  if (policy) return policyName(policy);
  return notice ? NOTICE[notice] : 'Notice';
}

const SCREENS: Record<string, string> = {
  event: '/events',
  connection: '/connections',
  billing_connection: '/connections',
  webhook_endpoint: '/settings/webhooks',
  claim: '/claims',
};

/** The screen of what the alert is about; undefined where none shows it. */
export function subjectAddress({ subject: { type, id } }: Alert): string | undefined {
  if (type === 'service') return '/ingest-health';
  return SCREENS[type] && `${SCREENS[type]}/${id}`;
}
