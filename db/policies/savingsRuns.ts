import type { Pico } from '../../domain/money.js';
import { isoFromMicros } from '../../domain/period.js';
import type { SavingsCause } from '../../domain/policies/enforcement/replay.js';
import type { Database } from '../client.js';
import { column } from '../entity.js';
import { type OrgDb, unscoped } from '../orgDb.js';
import { defineRun, type Run } from '../runs/runTable.js';

export interface SavingsRun extends Run {
  /** The period is the 30 days before the run was opened; else a named period. */
  isStandard: boolean;
  /** Half-open, by the calls' times. */
  windowStartMicros: bigint;
  windowEndMicros: bigint;
  cause: SavingsCause;
  /** The result includes everything stored before this time; null: the run has not begun. */
  asOfMicros: bigint | null;
  priceVersion: string | null;
  calls: number;
  /** Progress in time; null before the first page. */
  cursorMicros: bigint | null;
  savedPico: Pico | null;
  blocked: number;
  downgraded: number;
  /** When newer results replaced its result; null: the result is stored. */
  emptiedAtMicros: bigint | null;
}

/** The calls that a run covers. All standard runs cover the same: the days before now. */
export type SavingsPeriod = Pick<SavingsRun, 'isStandard' | 'windowStartMicros' | 'windowEndMicros'>;

export interface NewSavingsRun extends SavingsPeriod {
  id: string;
  cause: SavingsCause;
  requestedBy: string | null;
}

/** Unique indexes permit one open run for a period, and one for all standard periods together. */
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

/** The values that find the open run of a period. */
export function openRunOf(period: SavingsPeriod): Partial<NewSavingsRun> {
  const { isStandard, windowStartMicros, windowEndMicros } = period;
  return isStandard ? { isStandard } : { isStandard, windowStartMicros, windowEndMicros };
}

/** The newest run with a result for a period; undefined: there is none. */
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

/** Requests another run after the open standard one. false: none is open. */
export async function noteRulesChanged(orgDb: OrgDb): Promise<boolean> {
  const changed = await orgDb.run(
    `update savings_runs set again = true where org_id = $1 and is_standard and ${IS_OPEN}`,
    [orgDb.orgId],
  );
  return changed === 1;
}

/** Assigns a run to a new attempt; the former attempt can no longer write. undefined: the run is over. */
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

/** Locks a run for an attempt and records progress. false: it is over or another attempt has it. */
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

/** Records on a run that it reads the rules now: later changes require another run. */
export async function noteRulesRead(inside: OrgDb, id: string): Promise<void> {
  await inside.run('update savings_runs set again = false where org_id = $1 and id = $2', [inside.orgId, id]);
}

/** Ends a run; `again`: the rules changed after it had read them. */
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

/** Pause between two automatic runs, seconds; and the share of time that they may use: a twentieth. */
const PAUSE_SECONDS = 3_600;
const PAUSE_OF_RUN = 20;
/** Seconds after which the last 30 days have changed, with or without new calls. */
const STALE_SECONDS = 86_400;

/** Organizations with enabled rules, no recent run, and new calls, changed rules or a stale result. */
const DUE = `
select o.org_id from (select distinct org_id from enforcement_rules where enabled and removed_at is null) o
left join lateral (
  select status, created_at, started_at, coalesce(finished_at, now()) as ended_at from savings_runs r
  where r.org_id = o.org_id and is_standard order by created_at desc, id desc limit 1) newest on true
left join lateral (
  select window_end, as_of from savings_runs r
  where r.org_id = o.org_id and is_standard and status = 'succeeded' order by created_at desc, id desc limit 1) good on true
where (newest.created_at is null or (newest.status not in ('queued', 'running')
    and newest.created_at < now() - make_interval(secs => $1) - coalesce(newest.ended_at - newest.started_at, interval '0') * $2))
  and (good.as_of is null
    or good.as_of < now() - make_interval(secs => $3)
    or exists (select from enforcement_rules e where e.org_id = o.org_id and greatest(e.updated_at, e.removed_at) > good.as_of)
    or exists (select from events e where e.org_id = o.org_id and e.timestamp >= good.window_end and e.timestamp <= now()))
order by newest.created_at nulls first
limit greatest(0, $4 - (select count(*) from savings_runs where is_standard and status in ('queued', 'running')))`;

/** Due organizations, longest wait first; with the present open runs at most `openMax`. */
export async function listSavingsDue(database: Database, openMax: number): Promise<string[]> {
  const rows = await unscoped(
    database,
    'savings are modeled anew for every organization that has rules',
    (system) => system.rows<{ org_id: string }>(DUE, [PAUSE_SECONDS, PAUSE_OF_RUN, STALE_SECONDS, openMax]),
  );
  return rows.map((row) => row.org_id);
}
