import { describeRun, type RunKind } from '../../domain/runs/runKinds.js';
import { lockByName } from '../locks.js';
import type { OrgDb } from '../orgDb.js';

/** How a run ends. */
export interface RunEnd {
  status: 'succeeded' | 'partial' | 'failed' | 'cancelled';
  error?: { code: string; message: string };
}

/** Longest sentence that is kept of why a run has ended. */
const MESSAGE_CHARS_MAX = 2_000;
const IS_OPEN = `status in ('queued', 'running')`;
const OPEN_RUN = `org_id = $1 and id = $2 and ${IS_OPEN}`;

/** The condition that tells the runs of a kind from other rows of its table. */
export function isRunRow(kind: RunKind): string {
  const parts = Object.entries(describeRun(kind).rows ?? {}).map(([name, value]) => `${name} = '${value}'`);
  return parts.length === 0 ? 'true' : parts.join(' and ');
}

/** Ids of the organization's runs of a kind that are queued or at work, the oldest first; `limit` at most. */
export async function listOpenRuns(orgDb: OrgDb, kind: RunKind, limit: number): Promise<string[]> {
  const rows = await orgDb.rows<{ id: string }>(
    `select id from ${describeRun(kind).table} where org_id = $1 and ${IS_OPEN} and ${isRunRow(kind)}
     order by created_at, id limit $2`,
    [orgDb.orgId, limit],
  );
  return rows.map((row) => row.id);
}

/** Lets nobody else open a run of the kind for the organization until the transaction ends. */
export async function lockOpenRuns(orgDb: OrgDb, kind: RunKind): Promise<void> {
  await lockByName(orgDb, 'openRuns', `${kind} ${orgDb.orgId}`);
}

/** Says on a queued run that the workflow engine is being waited for. */
export async function noteRunWaitingForEngine(orgDb: OrgDb, kind: RunKind, id: string): Promise<void> {
  await orgDb.run(
    `update ${describeRun(kind).table} set stage = 'waiting_for_engine' where org_id = $1 and id = $2 and status = 'queued'`,
    [orgDb.orgId, id],
  );
}

/** Puts a run that the engine has lost back into the queue. False when it has ended. */
export async function requeueRun(orgDb: OrgDb, kind: RunKind, id: string): Promise<boolean> {
  const changed = await orgDb.run(
    `update ${describeRun(kind).table} set status = 'queued', stage = 'queued', heartbeat_at = now() where ${OPEN_RUN}`,
    [orgDb.orgId, id],
  );
  return changed === 1;
}

/** Marks a run as taken up by its workflow; false when it has ended. */
export async function markRunStarted(
  orgDb: OrgDb,
  kind: RunKind,
  id: string,
  stage: string,
): Promise<boolean> {
  const changed = await orgDb.run(
    `update ${describeRun(kind).table} set status = 'running', stage = $3, started_at = coalesce(started_at, now()), heartbeat_at = now()
     where ${OPEN_RUN}`,
    [orgDb.orgId, id, stage],
  );
  return changed === 1;
}

/**
 * Ends a run, once, with its result where it has one. Nothing of its row changes after that. False when it had ended
 * before. Call `endRun` of usecases: with some kinds more ends than the row.
 */
export async function recordRunEnd(
  inside: OrgDb,
  kind: RunKind,
  id: string,
  { status, error, result }: RunEnd & { result?: object },
): Promise<boolean> {
  const { table, emptiedAtEnd = [] } = describeRun(kind);
  const changed = await inside.run(
    `update ${table} set status = $3, stage = $3, error_code = $4, error_message = $5, finished_at = now()
       ${result === undefined ? '' : ', result = $6::jsonb'} ${emptiedAtEnd.map((name) => `, ${name} = null`).join('')}
     where ${OPEN_RUN}`,
    [
      inside.orgId,
      id,
      status,
      error?.code ?? null,
      error?.message.slice(0, MESSAGE_CHARS_MAX) ?? null,
      ...(result === undefined ? [] : [JSON.stringify(result)]),
    ],
  );
  return changed === 1;
}

/**
 * Asks a run to stop: a queued one ends at once, a running one when its workflow hears of it. False when it has ended
 * already, or is not stopped any more.
 */
export async function recordCancelRequest(inside: OrgDb, kind: RunKind, id: string): Promise<boolean> {
  const { table, cancel } = describeRun(kind);
  const changed = await inside.run(
    `update ${table} set cancel_requested_at = coalesce(cancel_requested_at, now()),
       status = case when status = 'queued' then 'cancelled' else status end,
       stage = case when status = 'queued' then 'cancelled' else 'cancelling' end,
       finished_at = case when status = 'queued' then now() end
     where ${OPEN_RUN} ${cancel?.until ? `and ${cancel.until.column} is null` : ''}`,
    [inside.orgId, id],
  );
  return changed === 1;
}
