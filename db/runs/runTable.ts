import { describeRun, type RunKind, type RunStatus } from '../../domain/runs/runKinds.js';
import {
  type Column,
  column,
  columnsOfRow,
  defineEntity,
  type Entity,
  findEntity,
  listNewest,
  sqlNameOf,
} from '../entity.js';
import { lockByName } from '../locks.js';
import type { OrgDb } from '../orgDb.js';

export interface Run {
  id: string;
  status: RunStatus;
  stage: string;
  errorCode: string | null;
  errorMessage: string | null;
  createdAtMicros: bigint;
  startedAtMicros: bigint | null;
  finishedAtMicros: bigint | null;
}

const SHARED: { [K in keyof Run]: Column<Run[K]> } = {
  id: column(),
  status: column(),
  stage: column(),
  errorCode: column(),
  errorMessage: column(),
  createdAtMicros: column(),
  startedAtMicros: column(),
  finishedAtMicros: column(),
};

export interface RunTable<R extends Run> extends Entity<R> {
  kind: RunKind;
  /** Carries the type only; never set. */
  run?: R;
}

/** A run table with the data of a new run. */
export interface OpenableRunTable<R extends Run, N extends { id: string }> extends RunTable<R> {
  /** Carries the type only; never set. */
  newRun?: N;
  /** An SQL condition for storing a run, from the parameters of the new run's values; absent: always. */
  insertedWhile?: ((parameters: Record<string, string>) => string) | undefined;
}

export function defineRun<R extends Run, N extends { id: string }>(
  kind: RunKind,
  columns: { [K in Exclude<keyof R, keyof Run>]-?: Column<R[K]> },
  insertedWhile?: (parameters: Record<string, string>) => string,
): OpenableRunTable<R, N> {
  const all = { ...SHARED, ...columns } as unknown as { [K in keyof R]-?: Column<R[K]> };
  return { ...defineEntity<R>(describeRun(kind).table, all), kind, insertedWhile };
}

const IS_OPEN = `status in ('queued', 'running')`;

function findOne<R extends Run>(
  orgDb: OrgDb,
  runs: RunTable<R>,
  wanted: object,
  rest = '',
): Promise<R | undefined> {
  return findEntity(orgDb, runs, { ...wanted, ...describeRun(runs.kind).rows }, rest);
}

export function findRun<R extends Run>(orgDb: OrgDb, runs: RunTable<R>, id: string): Promise<R | undefined> {
  return findOne(orgDb, runs, { id });
}

export function lockRun<R extends Run>(orgDb: OrgDb, runs: RunTable<R>, id: string): Promise<R | undefined> {
  return findOne(orgDb, runs, { id }, ' for no key update');
}

/** The queued or running run that was opened with these values. */
export function findOpenRun<R extends Run, N extends { id: string }>(
  orgDb: OrgDb,
  runs: OpenableRunTable<R, N>,
  wanted: Partial<N>,
): Promise<R | undefined> {
  return findOne(orgDb, runs, wanted, ` and ${IS_OPEN}`);
}

export function listRuns<R extends Run>(
  orgDb: OrgDb,
  runs: RunTable<R>,
  filter: Record<string, string | undefined>,
  page: { limit: number; offset: number },
): Promise<R[]> {
  const columns = Object.entries(filter).map(([property, value]) => [sqlNameOf(property), value] as const);
  const where = { ...Object.fromEntries(columns), ...describeRun(runs.kind).rows };
  return listNewest(orgDb, runs, { where, page });
}

/** Stores a queued run; undefined: an open run exists, by a unique index of the table. */
export async function insertRun<R extends Run, N extends { id: string }>(
  orgDb: OrgDb,
  runs: OpenableRunTable<R, N>,
  run: N,
): Promise<R | undefined> {
  const { names, values, parameters } = columnsOfRow({
    orgId: orgDb.orgId,
    ...run,
    ...describeRun(runs.kind).rows,
    status: 'queued',
  });
  const ofRun = Object.fromEntries(Object.keys(run).map((property, at) => [property, `$${at + 2}`]));
  const condition = runs.insertedWhile?.(ofRun);
  const rows = await orgDb.rows<R>(
    `insert into ${runs.table} (${names}) select ${parameters}${condition ? ` where ${condition}` : ''}
     on conflict do nothing returning ${runs.columns}`,
    values,
  );
  return runs.read(rows)[0];
}

export interface RunEnd {
  status: 'succeeded' | 'partial' | 'failed' | 'cancelled';
  error?: { code: string; message: string };
}

const MESSAGE_CHARS_MAX = 2_000;
const OPEN_RUN = `org_id = $1 and id = $2 and ${IS_OPEN}`;

/** SQL condition that separates the runs of a kind from other rows of their table. */
export function isRunRow(kind: RunKind): string {
  const parts = Object.entries(describeRun(kind).rows ?? {}).map(([name, value]) => `${name} = '${value}'`);
  return parts.length === 0 ? 'true' : parts.join(' and ');
}

/** Ids of the organization's queued or running runs of a kind, oldest first; at most `limit`. */
export async function listOpenRuns(orgDb: OrgDb, kind: RunKind, limit: number): Promise<string[]> {
  const rows = await orgDb.rows<{ id: string }>(
    `select id from ${describeRun(kind).table} where org_id = $1 and ${IS_OPEN} and ${isRunRow(kind)}
     order by created_at, id limit $2`,
    [orgDb.orgId, limit],
  );
  return rows.map((row) => row.id);
}

/** Prevents others from opening a run of the kind for the organization until the transaction ends. */
export async function lockOpenRuns(orgDb: OrgDb, kind: RunKind): Promise<void> {
  await lockByName(orgDb, 'openRuns', `${kind} ${orgDb.orgId}`);
}

/** Records on a queued run that it waits for Temporal. */
export async function noteRunWaitingForEngine(orgDb: OrgDb, kind: RunKind, id: string): Promise<void> {
  await orgDb.run(
    `update ${describeRun(kind).table} set stage = 'waiting_for_engine' where org_id = $1 and id = $2 and status = 'queued'`,
    [orgDb.orgId, id],
  );
}

/** Queues a run again that Temporal has lost. false: it has ended. */
export async function requeueRun(orgDb: OrgDb, kind: RunKind, id: string): Promise<boolean> {
  const changed = await orgDb.run(
    `update ${describeRun(kind).table} set status = 'queued', stage = 'queued', heartbeat_at = now() where ${OPEN_RUN}`,
    [orgDb.orgId, id],
  );
  return changed === 1;
}

/** Marks a run as started by its workflow; false: it has ended. */
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

/** Ends a run once; false: it had already ended. Call `endRun` of usecases, since some kinds change further rows. */
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

/** Cancels a queued run immediately and asks a running one to stop. false: it is too late. */
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
