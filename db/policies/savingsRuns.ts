import type { Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { SavingsCause } from '../../domain/policies/savingsCauses.js';
import { column } from '../entity.js';
import type { OrgDb } from '../orgDb.js';
import { defineRun, type Run } from '../runs/runTable.js';

/** A modeling of what the rules would have saved, as it is stored. */
export interface SavingsRun extends Run {
  /** Of the 30 days before it was opened; else of a period that somebody named. */
  isStandard: boolean;
  /** Half-open, by the calls' times. */
  windowStartMicros: bigint;
  windowEndMicros: bigint;
  cause: SavingsCause;
  /** Everything that was stored before is in the result; null before it began. */
  asOfMicros: bigint | null;
  priceVersion: string | null;
  /** Looked at so far. */
  calls: number;
  /** How far in time; null before the first page. */
  cursorMicros: bigint | null;
  /** Over all rules; null until it has succeeded. */
  savedPico: Pico | null;
  blocked: number;
  downgraded: number;
  /** When newer results took the place of what it had found; null while that is there. */
  emptiedAtMicros: bigint | null;
}

/** The calls that a run is about. All standard runs are about the same: the days before now. */
export type SavingsPeriod = Pick<SavingsRun, 'isStandard' | 'windowStartMicros' | 'windowEndMicros'>;

export interface NewSavingsRun extends SavingsPeriod {
  id: string;
  cause: SavingsCause;
  requestedBy: string | null;
}

/** A period has one open run, and so have all standard periods together, which unique indexes decide. */
export const SAVINGS_RUNS = defineRun<SavingsRun, NewSavingsRun>('savings_run', {
  isStandard: column(),
  windowStartMicros: column(),
  windowEndMicros: column(),
  cause: column(),
  asOfMicros: column(),
  priceVersion: column(),
  calls: column(),
  cursorMicros: column('cursor_at'),
  savedPico: column('saved_usd'),
  blocked: column(),
  downgraded: column(),
  emptiedAtMicros: column(),
});

const IS_OPEN = `status in ('queued', 'running')`;

/** By which values the open run of a period is found. */
export function openRunOf(period: SavingsPeriod): Partial<NewSavingsRun> {
  const { isStandard, windowStartMicros, windowEndMicros } = period;
  return isStandard ? { isStandard } : { isStandard, windowStartMicros, windowEndMicros };
}

/** The run whose result holds for a period: the newest that has one; undefined before there is any. */
export async function findSavingsResult(
  orgDb: OrgDb,
  period: SavingsPeriod,
): Promise<SavingsRun | undefined> {
  const rows = await orgDb.rows<SavingsRun>(
    `select ${SAVINGS_RUNS.columns} from savings_runs
     where org_id = $1 and is_standard = $2 and ($2 or (window_start = $3::timestamptz and window_end = $4::timestamptz)) and status = 'succeeded' and emptied_at is null
     order by created_at desc, id desc limit 1`,
    [
      orgDb.orgId,
      period.isStandard,
      isoFromMicros(period.windowStartMicros),
      isoFromMicros(period.windowEndMicros),
    ],
  );
  return SAVINGS_RUNS.read(rows)[0];
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
  const rows = await orgDb.rows<SavingsRun>(
    `update savings_runs set status = 'running', stage = 'replaying', attempt = $3, price_version = $4, calls = 0, cursor_at = null,
       as_of = clock_timestamp(), started_at = coalesce(started_at, now()), heartbeat_at = now()
     where org_id = $1 and id = $2 and ${IS_OPEN} returning ${SAVINGS_RUNS.columns}`,
    [orgDb.orgId, id, attempt.id, attempt.priceVersion],
  );
  return SAVINGS_RUNS.read(rows)[0];
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
