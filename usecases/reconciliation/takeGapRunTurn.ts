import type { OrgDb } from '../../db/orgDb.js';
import { lockGapRunTurn, recordGapRunTurn } from '../../db/reconciliation/gapRuns.js';
import { RUN_TERMINAL_STATUSES } from '../../domain/runs/runs.js';
import { endRun } from '../runs/endRun.js';

/**
 * Whether a run may go on now, has to wait for others of its organization, or is over. `published`: its findings are
 * published, and what is left is what follows from them.
 */
export type RunTurn = 'go' | 'wait' | 'published' | 'over';

/**
 * Marks a run as taken up by its workflow, when fewer than `runningMax` others of the organization are at work. A run
 * that has ended, also one that was cancelled before it began, stays ended; one that was asked to stop ends here.
 */
export async function takeGapRunTurn(orgDb: OrgDb, id: string, runningMax: number): Promise<RunTurn> {
  return orgDb.transaction(async (inside) => {
    const run = await lockGapRunTurn(inside, id);
    if (!run || RUN_TERMINAL_STATUSES.has(run.status)) return 'over';
    if (run.isCancelRequested && !run.isPublished) {
      await endRun(inside, 'gap_run', id, { status: 'cancelled' });
      return 'over';
    }
    const goes = run.isPublished || run.status === 'running' || run.others < runningMax;
    await recordGapRunTurn(inside, id, goes);
    if (run.isPublished) return 'published';
    return goes ? 'go' : 'wait';
  });
}
