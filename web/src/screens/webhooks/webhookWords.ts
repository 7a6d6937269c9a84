import type { components } from '../../api/client';

export type Endpoint = components['schemas']['WebhookEndpoint'];
export type Delivery = components['schemas']['WebhookDelivery'];
export type EventType = Endpoint['event_types'][number];

export const WEBHOOKS = '/api/v1/webhook-endpoints';

export const FORMATS: { value: Endpoint['format']; label: string }[] = [
  { value: 'standard', label: 'Webhook, signed (Standard Webhooks)' },
  { value: 'slack', label: 'Slack' },
  { value: 'teams', label: 'Microsoft Teams' },
  { value: 'email', label: 'E-mail' },
];

export const EVENT_TYPES: { value: EventType; label: string }[] = [
  { value: 'alert.created', label: 'Alert' },
  { value: 'dispute.opened', label: 'Dispute opened' },
  { value: 'dispute.resolved', label: 'Dispute resolved' },
  { value: 'claim.created', label: 'Claim created' },
  { value: 'claim.status_changed', label: 'Claim changed' },
  { value: 'claim.reminder', label: 'Claim reminder' },
  { value: 'gap_run.completed', label: 'Comparison completed' },
  { value: 'invoice.processed', label: 'Invoice processed' },
  { value: 'invoice.failed', label: 'Invoice failed' },
  { value: 'report.generated', label: 'Report generated' },
  { value: 'pricing.proposed', label: 'Prices proposed' },
];

export const targetOf = ({ url, to }: Pick<Endpoint, 'url' | 'to'>): string => url ?? to ?? '–';

export function stateOf({ enabled, disabled_reason: reason }: Endpoint) {
  if (enabled) return { label: 'On', kind: 'good' } as const;
  if (reason === 'gone') return { label: 'Off: the receiver is gone', kind: 'bad' } as const;
  if (reason === 'unsubscribed') return { label: 'Off: unsubscribed', kind: 'warn' } as const;
  return { label: 'Off', kind: 'plain' } as const;
}

export const DELIVERY_STATUS: Record<
  Delivery['status'],
  { label: string; kind: 'plain' | 'good' | 'bad' | 'accent' }
> = {
  pending: { label: 'Pending', kind: 'accent' },
  delivered: { label: 'Delivered', kind: 'good' },
  failed: { label: 'Failed', kind: 'bad' },
  cancelled: { label: 'Cancelled', kind: 'plain' },
  gathered: { label: 'In a digest', kind: 'plain' },
};
