/** Events that receivers may subscribe to. Grows as their subjects come to exist. */
export const WEBHOOK_EVENT_TYPES = [
  'alert.created',
  'claim.created',
  'claim.reminder',
  'claim.status_changed',
  'dispute.opened',
  'dispute.resolved',
  'gap_run.completed',
] as const;
export type WebhookEventType = (typeof WEBHOOK_EVENT_TYPES)[number];

/** What is sent only when somebody asks for it. */
export const TEST_MESSAGE_TYPE = 'webhook.test';
export const MESSAGE_TYPES = [...WEBHOOK_EVENT_TYPES, TEST_MESSAGE_TYPE] as const;
export type MessageType = (typeof MESSAGE_TYPES)[number];

export const ENDPOINT_STATUSES = ['active', 'disabled'] as const;
export type EndpointStatus = (typeof ENDPOINT_STATUSES)[number];
/** `requested`: by an admin. `gone`: the receiver answered 410. */
export const DISABLED_REASONS = ['requested', 'gone'] as const;
export type DisabledReason = (typeof DISABLED_REASONS)[number];

/** `failed`: given up after the last attempt. `cancelled`: its endpoint was switched off or removed before. */
export const DELIVERY_STATUSES = ['pending', 'delivered', 'failed', 'cancelled'] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/** Ids, kinds and amounts; never a payload or a text of a prompt. */
type MessageData = { readonly [name: string]: string | number | boolean | null };

/**
 * The body as it is sent, the same bytes at every attempt: `{type, timestamp, data}` (Standard Webhooks, "Payload
 * structure"). `timestamp` is ISO 8601 of the event itself.
 */
export function messageBody(type: MessageType, timestamp: string, data: MessageData): string {
  return JSON.stringify({ type, timestamp, data });
}
