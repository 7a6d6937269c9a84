import type { OrgDb } from '../../db/orgDb.js';
import { insertOutboxMessage } from '../../db/runs/outbox.js';
import {
  findOpenRun,
  findRun,
  insertRun,
  listOpenRuns,
  lockOpenRuns,
  type OpenableRunTable,
  type Run,
  type RunTable,
} from '../../db/runs/runTable.js';
import { LimitError } from '../../domain/access/rate.js';
import { DomainError } from '../../domain/errors.js';
import { findUuid, newUuid } from '../../domain/ids.js';
import { describeRun, publicRunId, type RunKind, runMessage } from '../../domain/runs/runKinds.js';

/** Attempts, since an open run may end between the insert that finds it and the read. */
const OPEN_ATTEMPTS = 5;
const RETRY_AFTER_SECONDS = 2;

export interface RunOpening<N> {
  /** The new run's data. */
  wanted: Omit<N, 'id'>;
  /** The properties by which an open run equals the new one. */
  open: Partial<N>;
  /** Called when no run is open: throws the reason why none can be opened. */
  assertOpenable?(orgDb: OrgDb): Promise<void>;
}

export interface OpeningOptions<R> {
  nowMicros: bigint;
  /** Limit of open runs of the kind; absent: unlimited. */
  limit?: OpenRunLimit | undefined;
  /** Further statements of a new run, such as its row in the audit log: the last of the transaction. */
  record?(inside: OrgDb, run: R): Promise<void>;
}

/**
 * Opens a run, stored with the message that starts it, or returns the open one. Errors: rate_limited,
 * service_unavailable, and those of the opening.
 */
export async function openRun<R extends Run, N extends { id: string }>(
  orgDb: OrgDb,
  runs: OpenableRunTable<R, N>,
  { wanted, open, assertOpenable }: RunOpening<N>,
  { nowMicros, limit, record }: OpeningOptions<R>,
): Promise<{ run: R; existing: boolean }> {
  const id = newUuid(nowMicros);
  for (let attempt = 0; attempt < OPEN_ATTEMPTS; attempt += 1) {
    const run = await orgDb.transaction(async (inside) => {
      const queued = await insertWithinLimit(inside, limit, () =>
        queueRun(inside, runs, { id, ...wanted } as unknown as N),
      );
      if (queued) await record?.(inside, queued);
      return queued;
    });
    if (run) return { run, existing: false };
    const found = await findOpenRun(orgDb, runs, open);
    if (found) return { run: found, existing: true };
    await assertOpenable?.(orgDb);
  }
  throw new DomainError(
    'service_unavailable',
    'runs of this kind begin and end faster than one can be opened; try again',
    { retryAfterSeconds: RETRY_AFTER_SECONDS },
  );
}

/** Stores a run with the message that starts it; undefined while another one is open. */
export async function queueRun<R extends Run, N extends { id: string }>(
  orgDb: OrgDb,
  runs: OpenableRunTable<R, N>,
  wanted: N,
): Promise<R | undefined> {
  return orgDb.transaction(async (inside) => {
    const run = await insertRun(inside, runs, wanted);
    if (run) await insertOutboxMessage(inside, runMessage(runs.kind, 'start'), run.id);
    return run;
  });
}

/** The run with a public id; with `within`, it must belong to that. Error: not_found. */
export async function getRun<R extends Run>(
  orgDb: OrgDb,
  runs: RunTable<R>,
  id: string,
  within: Record<string, string> = {},
): Promise<R> {
  const { idPrefix, noun } = describeRun(runs.kind);
  const uuid = findUuid(idPrefix, id);
  const run = uuid === undefined ? undefined : await findRun(orgDb, runs, uuid);
  const isWithin = Object.entries(within).every(([name, value]) => run?.[name as keyof R] === value);
  if (run && isWithin) return run;
  throw new DomainError('not_found', `there is no ${noun} with this id`);
}

/** Retry-After, seconds: the least time in which a run may end. */
const ROOM_RETRY_SECONDS = 5;
/** Most runs that a refusal names. */
const NAMED_MAX = 10;

/** The limit of open runs of a kind in an organization. */
export interface OpenRunLimit {
  kind: RunKind;
  /** undefined: unlimited. */
  max: number | undefined;
  /** Refuses a new run, although an open one may be returned. */
  refusal?: LimitError | undefined;
}

/**
 * Stores a run by `insert` if its organization has fewer open ones than the limit. The open rows are counted under a
 * lock, so that two requests cannot take the same last place. If `insert` returns undefined, an open run exists and is
 * returned without counting. Call it in the run's transaction. Error: rate_limited, naming the open runs.
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

/** Refuses an upload before it is received, if it would be refused at its end. Error: rate_limited. */
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
    ROOM_RETRY_SECONDS,
  );
}
