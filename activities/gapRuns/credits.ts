import { keepPublishedRunOpen } from '../../db/reconciliation/publishedGapRuns.js';
import { findCredits } from '../../usecases/claims/findCredits.js';
import { loadRun, type RunWork } from './runWork.js';

/**
 * Looks for the answers to filed claims on the bills that a run has compared. A run that has published nothing, or has
 * ended, looks for none.
 */
export async function findRunCredits(work: RunWork): Promise<void> {
  const { orgDb, runId, checkpoint } = work;
  const { provider } = await loadRun(work);
  await findCredits(orgDb, {
    provider,
    checkpoint,
    holds: (inside) => keepPublishedRunOpen(inside, runId),
  });
}
