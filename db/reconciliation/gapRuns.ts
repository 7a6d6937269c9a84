import type { SuspectKeyReason } from '../../domain/billing/providerKeys.js';
import type { GapPeriod } from '../../domain/period.js';
import { isoFromMicros } from '../../domain/period.js';
import type { MergedMismatch } from '../../domain/reconciliation/audit/mergeMismatches.js';
import { RUN_TERMINAL_STATUSES, type RunStatus } from '../../domain/runs/runs.js';
import { lockByName } from '../locks.js';
import type { OrgDb } from '../orgDb.js';
import { endRun } from '../runs/runStates.js';
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
  /** When its findings were shown; it ends once its claims are drafted. */
  publishedAtMicros: bigint | null;
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
  /** Added once the run has published; absent where there was nothing to draft. */
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
  published_at: bigint | null;
  finished_at: bigint | null;
}

const COLUMNS =
  'id, period, provider, status, stage, window_start, window_end, done_units, total_units, observed_since, unchanged_units, day_offsets, result, error_code, error_message, created_at, started_at, published_at, finished_at';

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
    publishedAtMicros: row.published_at,
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

/**
 * Whether a run may go on now, has to wait for others of its organization, or is over. `published`: its findings are
 * published, and what is left is what follows from them.
 */
export type RunTurn = 'go' | 'wait' | 'published' | 'over';

/**
 * Marks a run as taken up by its workflow, when fewer than `runningMax` others of the organization are at work. A run
 * that has ended, also one that was cancelled before it began, stays ended; one that was asked to stop ends here.
 */
export async function takeGapRunTurn(orgDb: OrgDb, id: string, runningMax: number): Promise<RunTurn> {
  return orgDb.transaction(async (inside) => {
    await lockByName(inside, 'gapRunTurn', inside.orgId);
    const rows = await inside.rows<{
      status: RunStatus;
      is_published: boolean;
      is_cancel_requested: boolean;
      others: number;
    }>(
      `select r.status, r.published_at is not null as is_published, r.cancel_requested_at is not null as is_cancel_requested, (select count(*)::bigint from gap_runs o where o.org_id = $1 and o.status = 'running' and o.id <> r.id) as others
       from gap_runs r where r.org_id = $1 and r.id = $2 for no key update of r`,
      [inside.orgId, id],
    );
    const run = rows[0];
    if (!run || RUN_TERMINAL_STATUSES.has(run.status)) return 'over';
    if (run.is_cancel_requested && !run.is_published) {
      await endRun(inside, 'gap_run', id, { status: 'cancelled' });
      return 'over';
    }
    const goes = run.is_published || run.status === 'running' || run.others < runningMax;
    await inside.run(
      `update gap_runs set status = case when $3 then 'running' else status end,
         stage = case when published_at is not null then 'drafting' when $3 then 'planning' else 'waiting_for_turn' end,
         started_at = case when $3 then coalesce(started_at, now()) end, heartbeat_at = now(),
         explaining_since = case when status = 'running' then explaining_since end
       where org_id = $1 and id = $2 and status in ('queued', 'running')`,
      [inside.orgId, id, goes],
    );
    if (run.is_published) return 'published';
    return goes ? 'go' : 'wait';
  });
}
