import { type DeliverWebhook, deliverWebhookBy } from '../../adapters/outbound/deliverWebhook.js';
import { SafeFetch } from '../../adapters/outbound/safeFetch.js';
import { microsFromDate } from '../../domain/period.js';
import type { Config } from '../../platform/config.js';

/** The way to addresses that users set, as the settings narrow and widen it. */
export function safeFetchOf(config: Pick<Config, 'outboundAllowedHosts'>): SafeFetch {
  return new SafeFetch({ allowedHosts: new Set(config.outboundAllowedHosts) });
}

/** Attempts at webhook endpoints, by the same way out. */
export function webhookDeliveryOf(config: Pick<Config, 'outboundAllowedHosts'>): DeliverWebhook {
  return deliverWebhookBy(safeFetchOf(config), {
    nowMicros: () => microsFromDate(new Date()),
    nowMs: () => performance.now(),
  });
}
