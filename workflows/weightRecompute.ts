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
import { POKE_SIGNAL, WEIGHTS_QUIET_MS, type WeightRecomputeInput } from './contract.js';

const { recomputeWeights } = proxyActivities<Activities>(PROFILES.database);

/** Most consecutive outcomes that postpone the computation. */
const PUT_OFF_MAX = 10;
/** Pause after a failed recomputation; every further outcome ends it. */
const FAILED_PAUSE = '1 minute';

export const poke = defineSignal(POKE_SIGNAL);

/**
 * Computes weights once no outcome has come for a while, and ends. Outcomes are rows, and one recomputation reads all
 * of them. A signal during a recomputation starts another one; Temporal does not complete a workflow with unseen
 * signals.
 */
export async function weightRecompute(input: WeightRecomputeInput): Promise<void> {
  const { orgId, quietMs = WEIGHTS_QUIET_MS } = input;
  let pokes = 0;
  setHandler(poke, () => {
    pokes += 1;
  });
  for (;;) {
    for (let putOff = 0; putOff < PUT_OFF_MAX; putOff += 1) {
      const heard = pokes;
      if (!(await condition(() => pokes > heard, quietMs))) break;
    }
    const heard = pokes;
    try {
      await recomputeWeights({ orgId });
      if (pokes === heard) return;
    } catch (error) {
      if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
      log.warn('weights are not learned; trying again', { orgId, cause: error.cause?.message });
      await condition(() => pokes > heard, FAILED_PAUSE);
    }
    if (workflowInfo().continueAsNewSuggested) return await continueAsNew<typeof weightRecompute>(input);
  }
}
