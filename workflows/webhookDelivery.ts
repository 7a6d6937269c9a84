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

/** Pause after an effect that could not be had for an hour; every word of something new ends it. */
const FAILED_PAUSE = '1 minute';

export const wake = defineSignal(WAKE_SIGNAL);

/**
 * Sends what is due at one endpoint and sleeps until the next attempt is. The rows are the record: it knows nothing that
 * a new run would not find there, so it ends as soon as nothing is pending. Word that arrives while it ends is not lost:
 * the engine refuses to end a workflow that has not seen all its signals, and starts another where it has ended.
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
