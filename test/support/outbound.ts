import { type DeliverWebhook, deliverWebhookBy } from '../../adapters/outbound/deliverWebhook.js';
import { SafeFetch, type SafeFetchOptions } from '../../adapters/outbound/safeFetch.js';
import { microsFromDate } from '../../domain/period.js';

/** A permitted address without a listener: requests to it are refused immediately. */
export const NOWHERE = 'http://127.0.0.1:1';
/** Every name in a test resolves to this address, without a name server. Nothing may be sent to it: it is not ours. */
const PUBLIC = { address: '93.184.215.14', family: 4 };

/** The product's way out, with receivers on loopback where a test allows them as `127.0.0.1:port`. */
export function testOutbound(
  allowedHosts: readonly string[] = [],
  options: SafeFetchOptions = {},
): SafeFetch {
  return new SafeFetch({
    allowedHosts: new Set([new URL(NOWHERE).host, ...allowedHosts]),
    resolve: async (host) => [/^[\d.]+$/.test(host) ? { address: host, family: 4 } : PUBLIC],
    ...options,
  });
}

/** Attempts at webhook endpoints by this way out, on this machine's clock. */
export function testWebhookDelivery(outbound: SafeFetch): DeliverWebhook {
  return deliverWebhookBy(outbound, {
    nowMicros: () => microsFromDate(new Date()),
    nowMs: () => performance.now(),
  });
}
