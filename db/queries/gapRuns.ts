import type { SuspectKeyReason } from '../../domain/billing/providerKeys.js';
import type { GapPeriod } from '../../domain/period.js';
import { isoFromMicros } from '../../domain/period.js';
import type { MergedMismatch } from '../../domain/reconciliation/mergeMismatches.js';
import { RUN_TERMINAL_STATUSES, type RunStatus } from '../../domain/runs.js';
import { lockByName } from '../locks.js';
import type { OrgDb } from '../orgDb.js';
import { textArray } from '../pgArray.js';
import type { RunDrafts } from './runDrafts.js';

/** A gap run as it is stored. */
export interface GapRun {
  id: string;
  period: GapPeriod;
  /** Null: all providers that have bills. */
  provider: string | null;
  status: RunStatus;
  stage: string;
  windowStartMicros: bigint;
  windowEndMicros: bigint;
  doneUnits: number;
  totalUnits: number;
  /** By provider and account ('' without one): ISO time of the first event. */
  observedSince: Record<string, Record<string, string>>;
  /** Provider-days that were compared with what is published and found unchanged: no units. */
  unchangedUnits: number;
  /** By provider: by how many hours its days are shifted; absent: by none. */
  dayOffsets: Record<string, number>;
  result: GapRunResult | null;
  errorCode: string | null;
  errorMessage: string | null;
  createdAtMicros: bigint;
  startedAtMicros: bigint | null;
  finishedAtMicros: bigint | null;
}

/** What a run's answer carries besides its buckets. */
export interface GapRunResult {
  /** Provider-days that were compared, and how many of them were as they had been published; absent in older results. */
  provider_days?: number;
  unchanged_days?: number;
  total: number;
  flagged: number;
  reason?: 'no_billing_data';
  rate_mismatches: MergedMismatch[];
  /** All of them; the list is cut. */
  rate_mismatch_count: number;
  source_differences: {
    provider: string;
    provider_account_id: string;
    day: string;
    /** Absent in results from before months were compared: a day. */
    span?: 'day' | 'month';
    charge_category: string;
    counted_import_id: string;
    /** Absent in runs from before bills were fetched: a file. */
    counted_kind?: 'file' | 'api';
    counted_usd: string;
    other_import_id: string;
    other_kind?: 'file' | 'api';
    other_usd: string;
  }[];
  /** Absent in results from before they were looked for. */
  suspect_keys?: {
    provider: string;
    provider_account_id: string;
    provider_key_id: string;
    reason: SuspectKeyReason;
    first_day: string;
    last_day: string;
    billed_usd: string | null;
  }[];
  /** All of them; the list is cut. */
  suspect_key_count?: number;
  failed_units: { provider: string; day: string; message: string }[];
  /** Accounts whose differences could not be explained: their findings are those from before. */
  failed_accounts?: { provider: string; provider_account_id: string; message: string }[];
  /** Added after the run has ended; absent where there was nothing to draft. */
  drafts?: RunDrafts;
}

interface GapRunRow {
  id: string;
  period: GapPeriod;
  provider: string | null;
  status: RunStatus;
  stage: string;
  window_start: bigint;
  window_end: bigint;
  done_units: number;
  total_units: number;
  observed_since: Record<string, Record<string, string>>;
  unchanged_units: number;
  day_offsets: Record<string, number>;
  result: GapRunResult | null;
  error_code: string | null;
  error_message: string | null;
  created_at: bigint;
  started_at: bigint | null;
  finished_at: bigint | null;
}

const COLUMNS =
  'id, period, provider, status, stage, window_start, window_end, done_units, total_units, observed_since, unchanged_units, day_offsets, result, error_code, error_message, created_at, started_at, finished_at';

function fromGapRunRow(row: GapRunRow): GapRun {
  return {
    id: row.id,
    period: row.period,
    provider: row.provider,
    status: row.status,
    stage: row.stage,
    windowStartMicros: row.window_start,
    windowEndMicros: row.window_end,
    doneUnits: row.done_units,
    totalUnits: row.total_units,
    observedSince: row.observed_since,
    unchangedUnits: row.unchanged_units,
    dayOffsets: row.day_offsets,
    result: row.result,
    errorCode: row.error_code,
    errorMessage: row.error_message,
    createdAtMicros: row.created_at,
    startedAtMicros: row.started_at,
    finishedAtMicros: row.finished_at,
  };
}

export interface NewGapRun {
  id: string;
  period: GapPeriod;
  provider: string | null;
  windowStartMicros: bigint;
  windowEndMicros: bigint;
}

/** Stores a queued run; undefined when one of the same period and provider is open, which the unique index decides. */
export async function insertGapRun(orgDb: OrgDb, run: NewGapRun): Promise<GapRun | undefined> {
  const rows = await orgDb.rows<GapRunRow>(
    `insert into gap_runs (org_id, id, period, provider, status, window_start, window_end)
     values ($1, $2, $3, $4, 'queued', $5, $6)
     on conflict (org_id, period, provider) where status in ('queued', 'running') do nothing returning ${COLUMNS}`,
    [
      orgDb.orgId,
      run.id,
      run.period,
      run.provider,
      isoFromMicros(run.windowStartMicros),
      isoFromMicros(run.windowEndMicros),
    ],
  );
  return rows[0] && fromGapRunRow(rows[0]);
}

export async function findOpenGapRun(
  orgDb: OrgDb,
  period: GapPeriod,
  provider: string | null,
): Promise<GapRun | undefined> {
  const rows = await orgDb.rows<GapRunRow>(
    `select ${COLUMNS} from gap_runs
     where org_id = $1 and period = $2 and provider is not distinct from $3 and status in ('queued', 'running')`,
    [orgDb.orgId, period, provider],
  );
  return rows[0] && fromGapRunRow(rows[0]);
}

export async function findGapRun(orgDb: OrgDb, id: string): Promise<GapRun | undefined> {
  const rows = await orgDb.rows<GapRunRow>(`select ${COLUMNS} from gap_runs where org_id = $1 and id = $2`, [
    orgDb.orgId,
    id,
  ]);
  return rows[0] && fromGapRunRow(rows[0]);
}

/** Runs, newest first. */
export async function listGapRuns(
  orgDb: OrgDb,
  page: { provider: string | undefined; status: RunStatus | undefined; limit: number; offset: number },
): Promise<GapRun[]> {
  const rows = await orgDb.rows<GapRunRow>(
    `select ${COLUMNS} from gap_runs
     where org_id = $1 and ($2::text is null or provider = $2) and ($3::text is null or status = $3)
     order by created_at desc, id desc limit $4 offset $5`,
    [orgDb.orgId, page.provider ?? null, page.status ?? null, page.limit, page.offset],
  );
  return rows.map(fromGapRunRow);
}

/** Whether a run may go on now, has to wait for others of its organization, or is over. */
export type RunTurn = 'go' | 'wait' | 'over';

/**
 * Marks a run as taken up by its workflow, when fewer than `runningMax` others of the organization are at work. A run
 * that has ended, also one that was cancelled before it began, stays ended.
 */
export async function takeGapRunTurn(orgDb: OrgDb, id: string, runningMax: number): Promise<RunTurn> {
  return orgDb.transaction(async (inside) => {
    await lockByName(inside, 'gapRunTurn', inside.orgId);
    const rows = await inside.rows<{ status: RunStatus; others: number }>(
      `select r.status, (select count(*)::bigint from gap_runs o where o.org_id = $1 and o.status = 'running' and o.id <> r.id) as others
       from gap_runs r where r.org_id = $1 and r.id = $2`,
      [inside.orgId, id],
    );
    const run = rows[0];
    if (!run || RUN_TERMINAL_STATUSES.has(run.status)) return 'over';
    const goes = run.status === 'running' || run.others < runningMax;
    await inside.run(
      `update gap_runs set status = case when $3 then 'running' else status end, stage = case when $3 then 'planning' else 'waiting_for_turn' end,
         started_at = case when $3 then coalesce(started_at, now()) end, heartbeat_at = now(),
         explaining_since = case when status = 'running' then explaining_since end
       where org_id = $1 and id = $2 and status in ('queued', 'running')`,
      [inside.orgId, id, goes],
    );
    return goes ? 'go' : 'wait';
  });
}

export interface GapRunUnit {
  ordinal: number;
  provider: string;
  day: string;
}

/** What a run found out when it was planned. */
export interface GapRunPlan {
  units: readonly { provider: string; day: string; inputMark: string }[];
  unchangedUnits: number;
  observedSince: GapRun['observedSince'];
  dayOffsets: GapRun['dayOffsets'];
}

/** How many units the run has, where it was planned before: a repeat goes by that plan. */
export async function findGapRunPlan(orgDb: OrgDb, runId: string): Promise<{ units: number } | undefined> {
  const rows = await orgDb.rows<{ units: number }>(
    `select (select count(*) from gap_run_units u where u.org_id = $1 and u.run_id = $2)::bigint as units
     from gap_runs where org_id = $1 and id = $2 and planned_at is not null`,
    [orgDb.orgId, runId],
  );
  return rows[0];
}

/** Stores a run's units in their order; a repeat changes nothing. Returns how many the run has. */
export async function insertGapRunUnits(orgDb: OrgDb, runId: string, plan: GapRunPlan): Promise<number> {
  return orgDb.transaction(async (inside) => {
    const { units } = plan;
    await inside.run(
      `insert into gap_run_units (org_id, run_id, ordinal, provider, day, input_mark)
       select $1::uuid, $2::uuid, ordinality - 1, provider, day, mark
       from unnest($3::text[], $4::date[], $5::text[]) with ordinality as u(provider, day, mark, ordinality)
       where not exists (select from gap_run_units where org_id = $1::uuid and run_id = $2::uuid)`,
      [
        inside.orgId,
        runId,
        units.map((unit) => unit.provider),
        units.map((unit) => unit.day),
        textArray(units.map((unit) => unit.inputMark)),
      ],
    );
    const rows = await inside.rows<{ total_units: number }>(
      `update gap_runs set stage = 'matching', heartbeat_at = now(), planned_at = coalesce(planned_at, now()),
         observed_since = $3::jsonb, unchanged_units = $4, day_offsets = $5::jsonb,
         total_units = (select count(*) from gap_run_units u where u.org_id = $1 and u.run_id = $2)
       where org_id = $1 and id = $2 returning total_units`,
      [
        inside.orgId,
        runId,
        JSON.stringify(plan.observedSince),
        plan.unchangedUnits,
        JSON.stringify(plan.dayOffsets),
      ],
    );
    return rows[0]?.total_units ?? 0;
  });
}

export async function findGapRunUnit(
  orgDb: OrgDb,
  runId: string,
  ordinal: number,
): Promise<(GapRunUnit & { status: string }) | undefined> {
  const rows = await orgDb.rows<GapRunUnit & { status: string }>(
    'select ordinal, provider, day, status from gap_run_units where org_id = $1 and run_id = $2 and ordinal = $3',
    [orgDb.orgId, runId, ordinal],
  );
  return rows[0];
}

/** Notes that a unit failed for good. */
export async function failGapRunUnit(
  orgDb: OrgDb,
  runId: string,
  ordinal: number,
  message: string,
): Promise<void> {
  await orgDb.transaction(async (inside) => {
    await inside.run(
      `update gap_run_units set status = 'failed', error_message = $4 where org_id = $1 and run_id = $2 and ordinal = $3 and status <> 'done'`,
      [inside.orgId, runId, ordinal, message.slice(0, 1_000)],
    );
    await countGapRunUnits(inside, runId);
  });
}

/**
 * Sets the run's progress from its units and series, so that it is right however often a unit was repeated. The row is locked
 * before the units are counted: a count beside the update would not see a unit that ends at the same time. The lock is
 * the weaker one that the units' foreign keys allow.
 */
export async function countGapRunUnits(orgDb: OrgDb, runId: string): Promise<void> {
  await orgDb.transaction(async (inside) => {
    await inside.rows('select id from gap_runs where org_id = $1 and id = $2 for no key update', [
      inside.orgId,
      runId,
    ]);
    await inside.run(
      `update gap_runs set heartbeat_at = now(),
         done_units = (select count(*) from gap_run_units u where u.org_id = $1 and u.run_id = $2 and u.status <> 'pending')
           + (select count(*) from gap_run_series s where s.org_id = $1 and s.run_id = $2 and s.is_done)
       where org_id = $1 and id = $2`,
      [inside.orgId, runId],
    );
  });
}
