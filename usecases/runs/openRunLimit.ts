import type { OrgDb } from '../../db/orgDb.js';
import { listOpenRuns, lockOpenRuns } from '../../db/runs/runStates.js';
import { LimitError } from '../../domain/access/limits/rate.js';
import { describeRun, publicRunId, type RunKind } from '../../domain/runs/runKinds.js';

/** How soon a run may have ended. */
const RETRY_AFTER_SECONDS = 5;
/** Runs that a refusal names at most. */
const NAMED_MAX = 10;

/** How many runs of a kind an organization may have open at once. */
export interface OpenRunLimit {
  kind: RunKind;
  /** undefined: any number. */
  max: number | undefined;
  /** Why no new one may be begun now, though one that is open may be answered. */
  refusal?: LimitError | undefined;
}

/**
 * Stores a run by `insert` where its organization has fewer than the most of them open, by the rows themselves and
 * under a lock, so that two requests never take the last place both. What `insert` refuses itself (undefined) is not
 * counted: it is answered with the run that is there. Call it in the run's transaction. Error: rate_limited, naming what
 * is under way.
 */
export async function insertWithinLimit<R>(
  inside: OrgDb,
  limit: OpenRunLimit | undefined,
  insert: () => Promise<R | undefined>,
): Promise<R | undefined> {
  if (limit?.max === undefined) return insert();
  const { kind, max, refusal } = limit;
  await lockOpenRuns(inside, kind);
  const open = await listOpenRuns(inside, kind, max);
  const inserted = await insert();
  if (inserted && open.length >= max) throw tooManyOpen(kind, open);
  if (inserted && refusal) throw refusal;
  return inserted;
}

/** Refuses early what would be refused at its end, before it is received. Error: rate_limited. */
export async function assertRoomForRun(orgDb: OrgDb, limit: OpenRunLimit | undefined): Promise<void> {
  if (limit?.max === undefined) return;
  const { kind, max, refusal } = limit;
  const open = await listOpenRuns(orgDb, kind, max);
  if (open.length >= max) throw tooManyOpen(kind, open);
  if (refusal) throw refusal;
}

function tooManyOpen(kind: RunKind, open: readonly string[]): LimitError {
  const { openPolicy, plural } = describeRun(kind);
  const ids = open.slice(0, NAMED_MAX).map((id) => publicRunId(kind, id));
  return new LimitError(
    [openPolicy],
    `the organization has as many ${plural} open as it may (${open.length}), among them ${ids.join(', ')}; wait until one has ended`,
    RETRY_AFTER_SECONDS,
  );
}
