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

/** Webhook transactions in a process at once, so that other work has connections however many endpoints there are. */
const TRANSACTIONS_MAX = 4;

/** The activities of webhook delivery. */
export function createWebhookActivities(deps: ActivityDeps) {
  const sending = { ...deps, places: new Places(TRANSACTIONS_MAX) };
  return {
    /** Sends an endpoint's due messages for one pass; returns the milliseconds until the next attempt is due. */
    sendDueWebhooks: ({ orgId, endpointId }: EndpointRef): Promise<{ nextInMs: number | null }> =>
      // An attempt is counted before it is sent, and a delivery in progress is leased: a repeat takes the rest.
      withFailures(() =>
        withHeartbeat(() =>
          sendDueWebhooks(orgDbOf(deps, orgId), endpointId, sending, Context.current().cancellationSignal),
        ),
      ),
  };
}
