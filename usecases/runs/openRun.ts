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

/** Looks for a run that ends between finding it open and reading it. */
const OPEN_ATTEMPTS = 5;
const RETRY_AFTER_SECONDS = 2;

export interface RunOpening<N> {
  /** What the new run is stored with. */
  wanted: Omit<N, 'id'>;
  /** The properties that an open run shares with it. */
  open: Partial<N>;
  /** Called where there is neither: throws why none can be opened. */
  assertOpenable?(orgDb: OrgDb): Promise<void>;
}

export interface OpeningOptions<R> {
  nowMicros: bigint;
  /** How many of its kind may be open at once; absent: any number. */
  limit?: OpenRunLimit | undefined;
  /** What else belongs to a new run's beginning, such as its row in the audit log: the last of the transaction. */
  record?(inside: OrgDb, run: R): Promise<void>;
}

/**
 * A new run, stored with the message that starts it, or the open one. Errors: rate_limited, service_unavailable, and
 * what the opening says.
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

/** The run with a public id, which belongs to `within` where that is given. Error not_found. */
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

/** How soon a run may have ended. */
const ROOM_RETRY_SECONDS = 5;
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
    ROOM_RETRY_SECONDS,
  );
}
