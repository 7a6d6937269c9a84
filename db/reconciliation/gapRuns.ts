import type { SuspectKeyReason } from '../../domain/billing/providerKeys.js';
import type { GapPeriod } from '../../domain/period.js';
import type { MergedMismatch } from '../../domain/reconciliation/audit/mergeMismatches.js';
import type { RunStatus } from '../../domain/runs/runs.js';
import { column } from '../entity.js';
import { lockByName } from '../locks.js';
import type { OrgDb } from '../orgDb.js';
import { defineRun, type Run } from '../runs/runTable.js';
import type { RunDrafts } from './runDrafts.js';

export interface NewGapRun {
  id: string;
  period: GapPeriod;
  /** Null: all providers that have bills. */
  provider: string | null;
  windowStartMicros: bigint;
  windowEndMicros: bigint;
}

/** A gap run as it is stored. */
export interface GapRun extends Run, NewGapRun {
  id: string;
  doneUnits: number;
  totalUnits: number;
  /** By provider and account ('' without one): ISO time of the first event. */
  observedSince: Record<string, Record<string, string>>;
  /** Provider-days that were compared with what is published and found unchanged: no units. */
  unchangedUnits: number;
  /** By provider: by how many hours its days are shifted; absent: by none. */
  dayOffsets: Record<string, number>;
  result: GapRunResult | null;
  /** When its findings were shown; it ends once its claims are drafted. */
  publishedAtMicros: bigint | null;
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

/** A run's organization, period and provider have one open run, which a unique index decides. */
export const GAP_RUNS = defineRun<GapRun, NewGapRun>('gap_run', {
  period: column(),
  provider: column(),
  windowStartMicros: column(),
  windowEndMicros: column(),
  doneUnits: column(),
  totalUnits: column(),
  observedSince: column(),
  unchangedUnits: column(),
  dayOffsets: column(),
  result: column(),
  publishedAtMicros: column(),
});

/** What decides whether an open run may go on now. */
export interface GapRunTurn {
  status: RunStatus;
  isPublished: boolean;
  isCancelRequested: boolean;
  /** Others of the organization that are at work. */
  others: number;
}

/**
 * Holds a run, and the turns of its organization's runs, until the transaction ends. Undefined where there is none.
 */
export async function lockGapRunTurn(inside: OrgDb, id: string): Promise<GapRunTurn | undefined> {
  await lockByName(inside, 'gapRunTurn', inside.orgId);
  const rows = await inside.rows<GapRunTurn>(
    `select r.status, r.published_at is not null as "isPublished", r.cancel_requested_at is not null as "isCancelRequested",
       (select count(*)::bigint from gap_runs o where o.org_id = $1 and o.status = 'running' and o.id <> r.id) as others
     from gap_runs r where r.org_id = $1 and r.id = $2 for no key update of r`,
    [inside.orgId, id],
  );
  return rows[0];
}

/** Notes on an open run whether it goes on now or waits for its turn. */
export async function recordGapRunTurn(inside: OrgDb, id: string, goes: boolean): Promise<void> {
  await inside.run(
    `update gap_runs set status = case when $3 then 'running' else status end,
       stage = case when published_at is not null then 'drafting' when $3 then 'planning' else 'waiting_for_turn' end,
       started_at = case when $3 then coalesce(started_at, now()) end, heartbeat_at = now(),
       explaining_since = case when status = 'running' then explaining_since end
     where org_id = $1 and id = $2 and status in ('queued', 'running')`,
    [inside.orgId, id, goes],
  );
}
