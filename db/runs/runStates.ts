import type { OrgDb } from '../orgDb.js';
import { publishGapRunEnd } from '../reconciliation/gapRunMessages.js';
import { settleGapRunEnd } from '../reconciliation/publishedGapRuns.js';

/** The kinds of work that is polled by its id, each with the table of its rows. */
const RUN_TABLES = {
  gap_run: 'gap_runs',
  billing_import: 'billing_sources',
  billing_sync: 'sync_runs',
  reprice: 'reprice_runs',
  savings_run: 'savings_runs',
} as const;
export type RunKind = keyof typeof RUN_TABLES;
export const RUN_KINDS = Object.keys(RUN_TABLES) as RunKind[];

/** How a run ends. */
export interface RunEnd {
  status: 'succeeded' | 'partial' | 'failed' | 'cancelled';
  error?: { code: string; message: string };
}

/** Longest sentence that is kept of why a run has ended. */
const MESSAGE_CHARS_MAX = 2_000;

/** The error of an end as its two columns. */
export function errorColumns(error: RunEnd['error']): [code: string | null, message: string | null] {
  return [error?.code ?? null, error?.message.slice(0, MESSAGE_CHARS_MAX) ?? null];
}

/** The table of a kind of run; its rows have org_id, id, status, stage, created_at and heartbeat_at. */
export function runTable(kind: RunKind): string {
  return RUN_TABLES[kind];
}

/** Says on a queued run that the workflow engine is being waited for. */
export async function noteRunWaitingForEngine(orgDb: OrgDb, kind: RunKind, id: string): Promise<void> {
  await orgDb.run(
    `update ${RUN_TABLES[kind]} set stage = 'waiting_for_engine' where org_id = $1 and id = $2 and status = 'queued'`,
    [orgDb.orgId, id],
  );
}

/** Puts a run that the engine has lost back into the queue. False when it has ended. */
export async function requeueRun(orgDb: OrgDb, kind: RunKind, id: string): Promise<boolean> {
  const changed = await orgDb.run(
    `update ${RUN_TABLES[kind]} set status = 'queued', stage = 'queued', heartbeat_at = now()
     where org_id = $1 and id = $2 and status in ('queued', 'running')`,
    [orgDb.orgId, id],
  );
  return changed === 1;
}

/** What ends with a run besides. */
const ENDED_WITH: Partial<Record<RunKind, string>> = {
  billing_sync: ', waiting_code = null, waiting_message = null, waiting_until = null',
};

/**
 * Ends a run, once, with its result where it has one; what it has stored stays. Nothing of its row changes after that. A
 * gap run that has published ends as that allows (`settleGapRunEnd`), and its end leaves its webhook message in the same
 * transaction. False when it had ended before.
 */
export async function endRun(
  orgDb: OrgDb,
  kind: Exclude<RunKind, 'billing_import'>,
  id: string,
  end: RunEnd & { result?: object },
): Promise<boolean> {
  const result = end.result === undefined ? [] : [JSON.stringify(end.result)];
  return orgDb.transaction(async (inside) => {
    const { status, error } = kind === 'gap_run' ? await settleGapRunEnd(inside, id, end) : end;
    const changed = await inside.run(
      `update ${RUN_TABLES[kind]} set status = $3, stage = $3, error_code = $4, error_message = $5, finished_at = now()
       ${result.length === 0 ? '' : ', result = $6::jsonb'} ${ENDED_WITH[kind] ?? ''}
     where org_id = $1 and id = $2 and status in ('queued', 'running')`,
      [inside.orgId, id, status, ...errorColumns(error), ...result],
    );
    if (changed === 1 && kind === 'gap_run') await publishGapRunEnd(inside, id);
    return changed === 1;
  });
}

/** What a run that is not stopped any more has done. */
const STOPS_NO_MORE: Partial<Record<RunKind, string>> = { gap_run: ' and published_at is null' };

/**
 * Asks a run to stop: a queued one ends at once, a running one when its workflow hears of it. False when it has ended
 * already, or has published what it found.
 */
export async function requestRunCancel(
  orgDb: OrgDb,
  kind: 'gap_run' | 'reprice',
  id: string,
): Promise<boolean> {
  return orgDb.transaction(async (inside) => {
    const changed = await inside.run(
      `update ${RUN_TABLES[kind]} set cancel_requested_at = coalesce(cancel_requested_at, now()),
       status = case when status = 'queued' then 'cancelled' else status end,
       stage = case when status = 'queued' then 'cancelled' else 'cancelling' end,
       finished_at = case when status = 'queued' then now() end
     where org_id = $1 and id = $2 and status in ('queued', 'running')${STOPS_NO_MORE[kind] ?? ''}`,
      [inside.orgId, id],
    );
    if (changed === 1 && kind === 'gap_run') await publishGapRunEnd(inside, id);
    return changed === 1;
  });
}
