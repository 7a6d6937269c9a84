import type { OrgDb } from '../../db/orgDb.js';
import { insertOutboxMessage } from '../../db/runs/outbox.js';
import {
  findOpenRun,
  findRun,
  insertRun,
  type OpenableRunTable,
  type Run,
  type RunTable,
} from '../../db/runs/runTable.js';
import { DomainError } from '../../domain/errors.js';
import { findUuid, newUuid } from '../../domain/ids.js';
import { runMessage } from '../../domain/runs/outboxMessage.js';
import { describeRun } from '../../domain/runs/runKinds.js';
import { insertWithinLimit, type OpenRunLimit } from './openRunLimit.js';

/** Looks for a run that ends between finding it open and reading it. */
const OPEN_ATTEMPTS = 5;
const RETRY_AFTER_SECONDS = 2;

export interface RunOpening<N> {
  /** What the new run is stored with. */
  wanted: Omit<N, 'id'>;
  /** By which of it the open run is found that stands in its way. */
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

/** Stores a run with the message that starts it; undefined while another one stands in its way. */
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
