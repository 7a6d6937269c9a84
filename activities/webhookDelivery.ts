import { Context } from '@temporalio/activity';
import { Places } from '../domain/places.js';
import { orgDbOf } from '../usecases/useCaseDeps.js';
import { sendDueWebhooks } from '../usecases/webhooks/sendDueWebhooks.js';
import type { ActivityDeps } from './deps.js';
import { withFailures } from './failures.js';
import { withHeartbeat } from './heartbeat.js';

interface EndpointRef {
  orgId: string;
  endpointId: string;
}

/** Transactions of webhooks in a process at once: however many endpoints are sent to, the other work has connections. */
const TRANSACTIONS_MAX = 4;

/** The effects of the delivery of webhooks. */
export function createWebhookActivities(deps: ActivityDeps) {
  const sending = { ...deps, places: new Places(TRANSACTIONS_MAX) };
  return {
    /** Sends what is due at an endpoint for a while; returns in how many milliseconds the next attempt is due. */
    sendDueWebhooks: ({ orgId, endpointId }: EndpointRef): Promise<{ nextInMs: number | null }> =>
      // An attempt is counted before it is sent, and a delivery under way is leased: a repeat takes up what is left.
      withFailures(() =>
        withHeartbeat(() =>
          sendDueWebhooks(orgDbOf(deps, orgId), endpointId, sending, Context.current().cancellationSignal),
        ),
      ),
  };
}
