import type { OrgDb } from '../../db/orgDb.js';
import { publishGapRunEnd } from '../../db/reconciliation/gapRunMessages.js';
import { settleGapRunEnd } from '../../db/reconciliation/publishedGapRuns.js';
import { type RunEnd, recordRunEnd } from '../../db/runs/runStates.js';
import type { RunKind } from '../../domain/runs/runKinds.js';

/** What ends with a run of a kind besides, in the transaction of its end. */
interface RunEnding {
  /** How it ends, where that is not as it was asked to. */
  settle?(inside: OrgDb, id: string, end: RunEnd): Promise<RunEnd>;
  /** Called once it has ended, also when it was cancelled before it began. */
  ended(inside: OrgDb, id: string): Promise<void>;
}

export const RUN_ENDINGS: Partial<Record<RunKind, RunEnding>> = {
  gap_run: { settle: settleGapRunEnd, ended: publishGapRunEnd },
};

/** Ends a run, once, with its result where it has one; what it has stored stays. False when it had ended before. */
export async function endRun(
  orgDb: OrgDb,
  kind: RunKind,
  id: string,
  end: RunEnd & { result?: object },
): Promise<boolean> {
  const ending = RUN_ENDINGS[kind];
  return orgDb.transaction(async (inside) => {
    const settled = ending?.settle ? await ending.settle(inside, id, end) : end;
    const { result } = end;
    const hasEnded = await recordRunEnd(inside, kind, id, {
      status: settled.status,
      ...(settled.error ? { error: settled.error } : {}),
      ...(result ? { result } : {}),
    });
    if (hasEnded) await ending?.ended(inside, id);
    return hasEnded;
  });
}
