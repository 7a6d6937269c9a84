import type { Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { RunStatus } from '../../domain/runs/runs.js';
import type { OrgDb } from '../orgDb.js';

/** Why a run was opened. */
export const SAVINGS_CAUSES = ['request', 'rule_change', 'schedule'] as const;
export type SavingsCause = (typeof SAVINGS_CAUSES)[number];

/** A modeling of what the rules would have saved, as it is stored. */
export interface SavingsRun {
  id: string;
  /** Of the 30 days before it was opened; else of a period that somebody named. */
  isStandard: boolean;
  /** Half-open, by the calls' times. */
  windowStartMicros: bigint;
  windowEndMicros: bigint;
  cause: SavingsCause;
  status: RunStatus;
  stage: string;
  /** Everything that was stored before is in the result; null before it began. */
  asOfMicros: bigint | null;
  priceVersion: string | null;
  /** Looked at so far. */
  calls: number;
  /** How far in time; null before the first page. */
  cursorMicros: bigint | null;
  /** Over all rules; null until it has succeeded. */
  totals: { savedPico: Pico; blocked: number; downgraded: number } | null;
  errorCode: string | null;
  errorMessage: string | null;
  createdAtMicros: bigint;
  startedAtMicros: bigint | null;
  finishedAtMicros: bigint | null;
  /** When newer results took the place of what it had found; null while that is there. */
  emptiedAtMicros: bigint | null;
}

interface SavingsRunRow {
  id: string;
  is_standard: boolean;
  window_start: bigint;
  window_end: bigint;
  cause: SavingsCause;
  status: RunStatus;
  stage: string;
  as_of: bigint | null;
  price_version: string | null;
  calls: number;
  cursor_at: bigint | null;
  saved_usd: Pico | null;
  blocked: number;
  downgraded: number;
  error_code: string | null;
  error_message: string | null;
  created_at: bigint;
  started_at: bigint | null;
  finished_at: bigint | null;
  emptied_at: bigint | null;
}

const COLUMNS =
  'id, is_standard, window_start, window_end, cause, status, stage, as_of, price_version, calls, cursor_at, saved_usd, blocked, downgraded, error_code, error_message, created_at, started_at, finished_at, emptied_at';
const IS_OPEN = `status in ('queued', 'running')`;

function fromSavingsRunRow(row: SavingsRunRow): SavingsRun {
  return {
    id: row.id,
    isStandard: row.is_standard,
    windowStartMicros: row.window_start,
    windowEndMicros: row.window_end,
    cause: row.cause,
    status: row.status,
    stage: row.stage,
    asOfMicros: row.as_of,
    priceVersion: row.price_version,
    calls: row.calls,
    cursorMicros: row.cursor_at,
    totals:
      row.saved_usd === null
        ? null
        : { savedPico: row.saved_usd, blocked: row.blocked, downgraded: row.downgraded },
    errorCode: row.error_code,
    errorMessage: row.error_message,
    createdAtMicros: row.created_at,
    startedAtMicros: row.started_at,
    finishedAtMicros: row.finished_at,
    emptiedAtMicros: row.emptied_at,
  };
}

/** The calls that a run is about. All standard runs are about the same: the days before now. */
export type SavingsPeriod = Pick<SavingsRun, 'isStandard' | 'windowStartMicros' | 'windowEndMicros'>;

export interface NewSavingsRun extends SavingsPeriod {
  id: string;
  cause: SavingsCause;
  requestedBy: string | null;
}

/** Stores a queued run; undefined when one of the same period is open, which a unique index decides. */
export async function insertSavingsRun(orgDb: OrgDb, run: NewSavingsRun): Promise<SavingsRun | undefined> {
  const rows = await orgDb.rows<SavingsRunRow>(
    `insert into savings_runs (org_id, id, is_standard, window_start, window_end, cause, requested_by, status)
     values ($1, $2, $3, $4, $5, $6, $7, 'queued') on conflict do nothing returning ${COLUMNS}`,
    [
      orgDb.orgId,
      run.id,
      run.isStandard,
      isoFromMicros(run.windowStartMicros),
      isoFromMicros(run.windowEndMicros),
      run.cause,
      run.requestedBy,
    ],
  );
  return rows[0] && fromSavingsRunRow(rows[0]);
}

const OF_PERIOD = `is_standard = $2 and ($2 or (window_start = $3::timestamptz and window_end = $4::timestamptz))`;
const periodValues = (orgDb: OrgDb, period: SavingsPeriod) => [
  orgDb.orgId,
  period.isStandard,
  isoFromMicros(period.windowStartMicros),
  isoFromMicros(period.windowEndMicros),
];

export async function findOpenSavingsRun(
  orgDb: OrgDb,
  period: SavingsPeriod,
): Promise<SavingsRun | undefined> {
  const rows = await orgDb.rows<SavingsRunRow>(
    `select ${COLUMNS} from savings_runs where org_id = $1 and ${OF_PERIOD} and ${IS_OPEN}`,
    periodValues(orgDb, period),
  );
  return rows[0] && fromSavingsRunRow(rows[0]);
}

/** The run whose result holds for a period: the newest that has one; undefined before there is any. */
export async function findSavingsResult(
  orgDb: OrgDb,
  period: SavingsPeriod,
): Promise<SavingsRun | undefined> {
  const rows = await orgDb.rows<SavingsRunRow>(
    `select ${COLUMNS} from savings_runs
     where org_id = $1 and ${OF_PERIOD} and status = 'succeeded' and emptied_at is null
     order by created_at desc, id desc limit 1`,
    periodValues(orgDb, period),
  );
  return rows[0] && fromSavingsRunRow(rows[0]);
}

export async function findSavingsRun(orgDb: OrgDb, id: string): Promise<SavingsRun | undefined> {
  const rows = await orgDb.rows<SavingsRunRow>(
    `select ${COLUMNS} from savings_runs where org_id = $1 and id = $2`,
    [orgDb.orgId, id],
  );
  return rows[0] && fromSavingsRunRow(rows[0]);
}

/** Runs, newest first. */
export async function listSavingsRuns(
  orgDb: OrgDb,
  page: { status: RunStatus | undefined; limit: number; offset: number },
): Promise<SavingsRun[]> {
  const rows = await orgDb.rows<SavingsRunRow>(
    `select ${COLUMNS} from savings_runs where org_id = $1 and ($2::text is null or status = $2)
     order by created_at desc, id desc limit $3 offset $4`,
    [orgDb.orgId, page.status ?? null, page.limit, page.offset],
  );
  return rows.map(fromSavingsRunRow);
}

/**
 * Makes another run follow the open standard one, whether it has read the rules by now or not. False when none is open:
 * one that was just ending has ended then.
 */
export async function noteRulesChanged(orgDb: OrgDb): Promise<boolean> {
  const changed = await orgDb.run(
    `update savings_runs set again = true where org_id = $1 and is_standard and ${IS_OPEN}`,
    [orgDb.orgId],
  );
  return changed === 1;
}

/** Gives a run to a new attempt; whoever worked on it writes nothing more. Undefined when it is over. */
export async function takeSavingsRun(
  orgDb: OrgDb,
  id: string,
  attempt: { id: string; priceVersion: string },
): Promise<SavingsRun | undefined> {
  const rows = await orgDb.rows<SavingsRunRow>(
    `update savings_runs set status = 'running', stage = 'replaying', attempt = $3, price_version = $4, calls = 0, cursor_at = null,
       as_of = clock_timestamp(), started_at = coalesce(started_at, now()), heartbeat_at = now()
     where org_id = $1 and id = $2 and ${IS_OPEN} returning ${COLUMNS}`,
    [orgDb.orgId, id, attempt.id, attempt.priceVersion],
  );
  return rows[0] && fromSavingsRunRow(rows[0]);
}

/**
 * Holds a run for an attempt until the transaction ends, and notes how far it has come. False when the run is over, or
 * another attempt has taken it: then nothing may be written.
 */
export async function holdSavingsRun(
  inside: OrgDb,
  id: string,
  attemptId: string,
  progress: { calls: number; cursorMicros: bigint } | undefined,
): Promise<boolean> {
  const held = await inside.run(
    `update savings_runs set heartbeat_at = clock_timestamp(), calls = calls + $4, cursor_at = coalesce($5::timestamptz, cursor_at)
     where org_id = $1 and id = $2 and attempt = $3 and status = 'running'`,
    [
      inside.orgId,
      id,
      attemptId,
      progress?.calls ?? 0,
      progress ? isoFromMicros(progress.cursorMicros) : null,
    ],
  );
  return held === 1;
}

/** Says of a run that the rules are read now: what changes from here on is for the next one. */
export async function noteRulesRead(inside: OrgDb, id: string): Promise<void> {
  await inside.run('update savings_runs set again = false where org_id = $1 and id = $2', [inside.orgId, id]);
}

/**
 * Ends a run with what its rules came to, in the transaction that recorded it and holds the run. Says whether the rules
 * changed after it had read them.
 */
export async function succeedSavingsRun(inside: OrgDb, id: string): Promise<{ again: boolean }> {
  const rows = await inside.rows<{ again: boolean }>(
    `update savings_runs r set status = 'succeeded', stage = 'succeeded', finished_at = clock_timestamp(), saved_usd = t.saved_usd,
       blocked = t.blocked, downgraded = t.downgraded
     from (select coalesce(sum(saved_usd), 0) as saved_usd, coalesce(sum(blocked), 0) as blocked, coalesce(sum(downgraded), 0) as downgraded
       from modeled_savings where org_id = $1 and run_id = $2) t
     where r.org_id = $1 and r.id = $2 and r.status = 'running' returning r.again`,
    [inside.orgId, id],
  );
  return { again: rows[0]?.again ?? false };
}
