import {
  CancellationScope,
  log,
  patched,
  proxyActivities,
  setCurrentDetails,
  sleep,
} from '@temporalio/workflow';
import type { Activities } from '../activities/index.js';
import { PROFILES } from './activityOptions.js';
import type { RunInput } from './contract.js';
import { reasonOf, withRunEnding } from './runEnding.js';

/** Pause between two checks whether an older gap run has ended. */
const GAP_RUN_POLL = '10 seconds';
/** After this many checks the next sync, or a person, starts the gap run. */
const GAP_RUN_LOOKS = 180;

const { failSyncChunk, finishBillingSync, startGapRunOfSync, endBillingSyncFailed } =
  proxyActivities<Activities>(PROFILES.database);
const { planBillingSync } = proxyActivities<Activities>(PROFILES.matching);
const { takeSyncChunk } = proxyActivities<Activities>(PROFILES.provider);

/**
 * One sync of a connection: plans the chunks, fetches and reads them one by one, starts a gap run over the changed
 * days, and ends with the result. A chunk that cannot be fetched does not stop the others and makes the sync partial;
 * the next sync fetches it. Chunks are sequential because providers limit requests.
 */
export async function billingSync(input: RunInput): Promise<void> {
  const end = (reason: { code?: string; message: string }) =>
    CancellationScope.nonCancellable(() => endBillingSyncFailed({ ...input, ...reason }));
  const ending = { cancelled: () => end({ message: 'the sync was cancelled' }), failed: end };
  await withRunEnding(ending, () => sync(input));
}

async function sync(input: RunInput): Promise<void> {
  const plan = await planBillingSync(input);
  if (!plan) return;
  for (let ordinal = 0; ordinal < plan.chunks; ordinal += 1) {
    setCurrentDetails(`part ${ordinal + 1} of ${plan.chunks}`);
    if (!(await takeChunk(input, ordinal))) return;
  }
  if (patched('billingSync-ends-last-v1')) {
    await startGapRun(input);
    await finishBillingSync(input);
    return;
  }
  const { changed } = await finishBillingSync(input);
  if (changed) await showGaps(input);
}

/** false: the sync is over, because its connection has ended. */
async function takeChunk(input: RunInput, ordinal: number): Promise<boolean> {
  try {
    return await takeSyncChunk({ ...input, ordinal });
  } catch (error) {
    await failSyncChunk({ ...input, ordinal, ...reasonOf(error) });
    return true;
  }
}

/** The sync already has its bills: without a gap run it ends too, and the next sync, or a person, starts one. */
async function startGapRun(input: RunInput): Promise<void> {
  try {
    await showGaps(input);
  } catch (error) {
    log.error('a sync could not start a gap run', { ...input, reason: reasonOf(error).message });
  }
}

/** An older gap run of the same days may have read them before they changed; then it waits for its end. */
async function showGaps(input: RunInput): Promise<void> {
  for (let look = 0; look < GAP_RUN_LOOKS; look += 1) {
    if ((await startGapRunOfSync(input)) === 'started') return;
    await sleep(GAP_RUN_POLL);
  }
}
