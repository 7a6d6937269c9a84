import { RETRY_DELAYS_SECONDS } from '../domain/webhooks/retrySchedule.js';

/** How messages go out. Shorter in tests. */
export interface WebhookPace {
  /** Between one attempt and the next. */
  delaysSeconds: readonly number[];
  /** Attempts at one endpoint that are under way at once. */
  lanes: number;
  /** One effect takes up due messages for so long: few entries in a history, and every endpoint gets its turn. */
  passMs: number;
  /**
   * An attempt whose process ended without a word is repeated after this time. Longer than an attempt can take, which is
   * the 15 seconds of adapters/outbound/safeFetch.ts.
   */
  leaseSeconds: number;
  /** Messages that cannot be signed, because no key opens the endpoint's secret, are looked at again after this time. */
  unsignedWaitSeconds: number;
}

export const WEBHOOK_PACE: WebhookPace = {
  delaysSeconds: RETRY_DELAYS_SECONDS,
  lanes: 16,
  passMs: 10_000,
  leaseSeconds: 60,
  unsignedWaitSeconds: 300,
};
