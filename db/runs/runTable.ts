import { isoFromMicros } from '../../domain/period.js';
import { describeRun, type RunKind } from '../../domain/runs/runKinds.js';
import type { RunStatus } from '../../domain/runs/runs.js';
import { type Column, column, defineEntity, type Entity, listEntities, sqlNameOf } from '../entity.js';
import type { OrgDb, SqlValue } from '../orgDb.js';

/** What every run has, whatever its kind. */
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

/** The table of one kind of run. */
export interface RunTable<R extends Run> extends Entity<R> {
  kind: RunKind;
  /** Names the type; there is no value. */
  run?: R;
}

/** The same with what a new run is stored with. */
export interface OpenableRunTable<R extends Run, N extends { id: string }> extends RunTable<R> {
  /** Names the type; there is no value. */
  newRun?: N;
  /** Without it nothing is stored: an SQL condition, given the parameters of a new run's values. */
  insertedWhile?: ((parameters: Record<string, string>) => string) | undefined;
}

/** A kind of run by its own columns. */
export function defineRun<R extends Run, N extends { id: string }>(
  kind: RunKind,
  columns: { [K in Exclude<keyof R, keyof Run>]-?: Column<R[K]> },
  insertedWhile?: (parameters: Record<string, string>) => string,
): OpenableRunTable<R, N> {
  const all = { ...SHARED, ...columns } as unknown as { [K in keyof R]-?: Column<R[K]> };
  return { ...defineEntity<R>(describeRun(kind).table, all), kind, insertedWhile };
}

const IS_OPEN = `status in ('queued', 'running')`;

/** Equality with values by property; null is equal to null. Adds the values to `parameters`. */
function conditions(wanted: object, parameters: SqlValue[]): string[] {
  return Object.entries(wanted).map(([property, value]: [string, SqlValue]) =>
    value === null
      ? `${sqlNameOf(property)} is null`
      : `${sqlNameOf(property)} = $${parameters.push(stored(property, value))}`,
  );
}

function stored(property: string, value: SqlValue): SqlValue {
  return typeof value === 'bigint' && property.endsWith('Micros') ? isoFromMicros(value) : value;
}

async function findOne<R extends Run>(
  orgDb: OrgDb,
  runs: RunTable<R>,
  wanted: object,
  rest = '',
): Promise<R | undefined> {
  const parameters: SqlValue[] = [orgDb.orgId];
  const where = conditions({ ...wanted, ...describeRun(runs.kind).rows }, parameters);
  const rows = await orgDb.rows<R>(
    `select ${runs.columns} from ${runs.table} where ${['org_id = $1', ...where].join(' and ')}${rest}`,
    parameters,
  );
  return runs.read(rows)[0];
}

export function findRun<R extends Run>(orgDb: OrgDb, runs: RunTable<R>, id: string): Promise<R | undefined> {
  return findOne(orgDb, runs, { id });
}

/** A run, locked until the transaction ends. */
export function lockRun<R extends Run>(orgDb: OrgDb, runs: RunTable<R>, id: string): Promise<R | undefined> {
  return findOne(orgDb, runs, { id }, ' for no key update');
}

/** The run that is queued or at work and was opened with these values. */
export function findOpenRun<R extends Run, N extends { id: string }>(
  orgDb: OrgDb,
  runs: OpenableRunTable<R, N>,
  wanted: Partial<N>,
): Promise<R | undefined> {
  return findOne(orgDb, runs, wanted, ` and ${IS_OPEN}`);
}

/** Runs, newest first. A filter is left out where its value is undefined. */
export function listRuns<R extends Run>(
  orgDb: OrgDb,
  runs: RunTable<R>,
  filter: Record<string, string | undefined>,
  page: { limit: number; offset: number },
): Promise<R[]> {
  const columns = Object.entries(filter).map(([property, value]) => [sqlNameOf(property), value] as const);
  return listEntities(orgDb, runs, {
    where: { ...Object.fromEntries(columns), ...describeRun(runs.kind).rows },
    order: [
      { column: 'created_at', type: 'timestamptz' },
      { column: 'id', type: 'uuid' },
    ],
    direction: 'desc',
    page,
  });
}

/** Stores a queued run; undefined while another stands in its way, which a unique index of the table decides. */
export async function insertRun<R extends Run, N extends { id: string }>(
  orgDb: OrgDb,
  runs: OpenableRunTable<R, N>,
  run: N,
): Promise<R | undefined> {
  const values: Record<string, SqlValue> = { ...run, ...describeRun(runs.kind).rows, status: 'queued' };
  const names = ['org_id', ...Object.keys(values).map(sqlNameOf)];
  const parameters = names.map((_, at) => `$${at + 1}`);
  const ofRun = Object.fromEntries(Object.keys(run).map((property, at) => [property, `$${at + 2}`]));
  const condition = runs.insertedWhile?.(ofRun);
  const rows = await orgDb.rows<R>(
    `insert into ${runs.table} (${names.join(', ')}) select ${parameters.join(', ')}${condition ? ` where ${condition}` : ''}
     on conflict do nothing returning ${runs.columns}`,
    [orgDb.orgId, ...Object.entries(values).map(([property, value]) => stored(property, value))],
  );
  return runs.read(rows)[0];
}
