import { findCredits } from '../../db/claims/findCredits.js';
import { loadRun, type RunWork } from './runWork.js';

/** Looks for the answers to filed claims on the bills that a run has compared. A run that has published nothing looks for none. */
export async function findRunCredits(work: RunWork): Promise<void> {
  const run = await loadRun(work);
  if (run.status !== 'succeeded' && run.status !== 'partial') return;
  await findCredits(work.orgDb, { provider: run.provider, checkpoint: work.checkpoint });
}
