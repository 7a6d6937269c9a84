import {
  ActivityFailure,
  condition,
  continueAsNew,
  defineSignal,
  isCancellation,
  log,
  proxyActivities,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { Activities } from '../activities/index.js';
import { PROFILES } from './activityOptions.js';
import { WAKE_SIGNAL, type WebhookDeliveryInput, webhookTaskQueue } from './contract.js';

/** Pause after an activity that failed for an hour; every new signal ends it. */
const FAILED_PAUSE = '1 minute';

export const wake = defineSignal(WAKE_SIGNAL);

/**
 * Sends an endpoint's due messages and sleeps until the next attempt is due. The rows are authoritative: the workflow
 * has no further state, so it ends as soon as nothing is pending. A signal during its end is not lost: Temporal does
 * not complete a workflow with unseen signals, and starts a new one after its end.
 */
export async function webhookDelivery({ orgId, endpointId }: WebhookDeliveryInput): Promise<void> {
  let isAwake = true;
  setHandler(wake, () => {
    isAwake = true;
  });
  const { taskQueue } = workflowInfo();
  const { sendDueWebhooks } = proxyActivities<Activities>({
    ...PROFILES.sending,
    taskQueue: webhookTaskQueue(taskQueue),
  });
  for (;;) {
    isAwake = false;
    const pause = await sendDueWebhooks({ orgId, endpointId }).then(
      ({ nextInMs }) => nextInMs,
      (error: unknown) => {
        if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
        log.warn('webhooks are not sent; trying again', { endpointId, cause: error.cause?.message });
        return FAILED_PAUSE;
      },
    );
    if (pause === null && !isAwake) return;
    if (pause !== null && pause !== 0) await condition(() => isAwake, pause);
    if (workflowInfo().continueAsNewSuggested)
      return await continueAsNew<typeof webhookDelivery>({ orgId, endpointId });
  }
}
