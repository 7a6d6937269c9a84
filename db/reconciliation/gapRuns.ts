import type { SuspectKeyReason } from '../../domain/billing/providerKeys.js';
import { publicId } from '../../domain/ids.js';
import type { GapPeriod } from '../../domain/period.js';
import type { MergedMismatch } from '../../domain/reconciliation/audit/mergeMismatches.js';
import { endOfPublished, type Publication } from '../../domain/reconciliation/publishedRun.js';
import type { RunStatus } from '../../domain/runs/runKinds.js';
import { type EndedGapRun, gapRunMessage } from '../../domain/webhooks/messages.js';
import { column } from '../entity.js';
import { lockByName } from '../locks.js';
import type { OrgDb } from '../orgDb.js';
import { textArray } from '../pgArray.js';
import { defineRun, type Run } from '../runs/runTable.js';
import { publishMessages } from '../webhooks/webhookDeliveries.js';

export interface NewGapRun {
  id: string;
  period: GapPeriod;
  /** null: all providers with bills. */
  provider: string | null;
  windowStartMicros: bigint;
  windowEndMicros: bigint;
}

export interface GapRun extends Run, NewGapRun {
  id: string;
  doneUnits: number;
  totalUnits: number;
  /** By provider and account ('' without one): ISO time of the first event. */
  observedSince: Record<string, Record<string, string>>;
  /** Provider-days whose inputs equal the published ones: they get no units. */
  unchangedUnits: number;
  /** By provider: the hours by which its days are shifted; absent: none. */
  dayOffsets: Record<string, number>;
  result: GapRunResult | null;
  /** When its findings were published; the run ends once its claims are drafted. */
  publishedAtMicros: bigint | null;
}

/** The parts of a run's answer besides its buckets. */
export interface GapRunResult {
  /** Compared provider-days, and how many of them were unchanged; absent in older results. */
  provider_days?: number;
  unchanged_days?: number;
  total: number;
  flagged: number;
  reason?: 'no_billing_data';
  rate_mismatches: MergedMismatch[];
  /** The number of all; the list is cut. */
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
  /** Absent in results from before they were searched. */
  suspect_keys?: {
    provider: string;
    provider_account_id: string;
    provider_key_id: string;
    reason: SuspectKeyReason;
    first_day: string;
    last_day: string;
    billed_usd: string | null;
  }[];
  /** The number of all; the list is cut. */
  suspect_key_count?: number;
  failed_units: { provider: string; day: string; message: string }[];
  /** Accounts whose differences could not be explained: their former findings stay. */
  failed_accounts?: { provider: string; provider_account_id: string; message: string }[];
  /** Added once the run has published; absent where no claim could be drafted. */
  drafts?: RunDrafts;
}

/** A unique index permits one open run for an organization, period and provider. */
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

/** State that decides whether an open run may continue now. */
export interface GapRunTurn {
  status: RunStatus;
  isPublished: boolean;
  isCancelRequested: boolean;
  others: number;
}

/** Locks a run and its organization's turns; undefined: the run does not exist. */
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

export interface GapRunUnit {
  ordinal: number;
  provider: string;
  day: string;
}

/** The facts that planning a run determines. */
export interface GapRunPlan {
  units: readonly { provider: string; day: string; inputMark: string }[];
  unchangedUnits: number;
  observedSince: GapRun['observedSince'];
  dayOffsets: GapRun['dayOffsets'];
}

/** The number of the run's units, if it was planned before: a repeat uses that plan. */
export async function findGapRunPlan(orgDb: OrgDb, runId: string): Promise<{ units: number } | undefined> {
  const rows = await orgDb.rows<{ units: number }>(
    `select (select count(*) from gap_run_units u where u.org_id = $1 and u.run_id = $2)::bigint as units
     from gap_runs where org_id = $1 and id = $2 and planned_at is not null`,
    [orgDb.orgId, runId],
  );
  return rows[0];
}

/** Stores an open run's units in order; a repeat changes nothing. Returns their number, 0 when the run has ended. */
export async function insertGapRunUnits(inside: OrgDb, runId: string, plan: GapRunPlan): Promise<number> {
  const { units } = plan;
  if (!(await lockUnpublishedRun(inside, runId))) return 0;
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
    `update gap_runs set stage = case when stage = 'cancelling' then stage else 'matching' end, heartbeat_at = now(),
       planned_at = coalesce(planned_at, now()),
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
}

export async function findGapRunUnit(
  orgDb: OrgDb,
  runId: string,
  ordinal: number,
): Promise<(GapRunUnit & { status: string }) | undefined> {
  const rows = await orgDb.rows<GapRunUnit & { status: string }>(
    'select ordinal, provider, day, status from gap_run_units where org_id = $1 and run_id = $2 and ordinal = $3',
    [orgDb.orgId, runId, ordinal],
    'gap_unit',
  );
  return rows[0];
}

export async function failGapRunUnit(
  inside: OrgDb,
  runId: string,
  ordinal: number,
  message: string,
): Promise<void> {
  await inside.run(
    `update gap_run_units set status = 'failed', error_message = $4 where org_id = $1 and run_id = $2 and ordinal = $3 and status <> 'done'`,
    [inside.orgId, runId, ordinal, message.slice(0, 1_000)],
  );
  await countGapRunUnits(inside, runId);
}

/** Locks a run that has neither ended nor published until the transaction ends; false: it has. */
async function lockUnpublishedRun(inside: OrgDb, runId: string): Promise<boolean> {
  const rows = await inside.rows(
    `select from gap_runs where org_id = $1 and id = $2 and status in ('queued', 'running') and published_at is null
     for no key update`,
    [inside.orgId, runId],
    'gap_run_unpublished',
  );
  return rows.length === 1;
}

/** Recomputes progress under a lock: a count beside the update would miss a unit that ends at the same time. */
export async function countGapRunUnits(inside: OrgDb, runId: string): Promise<void> {
  if (!(await lockUnpublishedRun(inside, runId))) return;
  await inside.run(
    `update gap_runs set heartbeat_at = now(),
       done_units = (select count(*) from gap_run_units u where u.org_id = $1 and u.run_id = $2 and u.status <> 'pending')
         + (select count(*) from gap_run_series s where s.org_id = $1 and s.run_id = $2 and s.is_done)
     where org_id = $1 and id = $2`,
    [inside.orgId, runId],
    'gap_run_progress',
  );
}

interface OpenGapRun {
  /** undefined: nothing is published yet. */
  publication?: Publication;
  isCancelRequested: boolean;
}

/** Locks a run that is about to publish, against other runs' turns. undefined: it has ended. */
export async function lockOpenGapRun(inside: OrgDb, runId: string): Promise<OpenGapRun | undefined> {
  await lockByName(inside, 'gapRunTurn', inside.orgId);
  return holdOpenRun(inside, runId);
}

async function holdOpenRun(inside: OrgDb, runId: string): Promise<OpenGapRun | undefined> {
  const [row] = await inside.rows<{
    published_status: Publication['status'] | null;
    error_code: string | null;
    error_message: string | null;
    is_cancel_requested: boolean;
  }>(
    `select published_status, error_code, error_message, cancel_requested_at is not null as is_cancel_requested
     from gap_runs where org_id = $1 and id = $2 and status in ('queued', 'running') for no key update`,
    [inside.orgId, runId],
  );
  if (!row) return undefined;
  const { published_status: status, error_code: code, error_message: message } = row;
  const error = code === null ? {} : { error: { code, message: message ?? code } };
  return {
    isCancelRequested: row.is_cancel_requested,
    ...(status === null ? {} : { publication: { status, ...error } }),
  };
}

/** Records the publication; other runs may explain from then on, and this one ends once its claims are drafted. */
export async function recordPublication(
  inside: OrgDb,
  runId: string,
  { status, error }: Publication,
  result: GapRunResult,
): Promise<void> {
  await inside.run(
    `update gap_runs set published_at = now(), published_status = $3, error_code = $4, error_message = $5, result = $6::jsonb,
       stage = 'drafting', explaining_since = null, heartbeat_at = now()
     where org_id = $1 and id = $2 and status in ('queued', 'running')`,
    [inside.orgId, runId, status, error?.code ?? null, error?.message ?? null, JSON.stringify(result)],
  );
}

/** Keeps a published run open for the transaction. false: it has ended or published nothing to claim. */
export async function keepPublishedRunOpen(inside: OrgDb, runId: string): Promise<boolean> {
  const rows = await inside.rows(
    `select from gap_runs where org_id = $1 and id = $2 and status in ('queued', 'running')
       and published_status in ('succeeded', 'partial') for share`,
    [inside.orgId, runId],
  );
  return rows.length === 1;
}

const STOPPED = 'the run was stopped before all that follows from its findings was done';

/** Ends a published run as `endOfPublished` decides, else as requested. */
export async function settleGapRunEnd<
  E extends { status: string; error?: { code: string; message: string } },
>(inside: OrgDb, runId: string, end: E): Promise<E | Publication> {
  const publication = (await holdOpenRun(inside, runId))?.publication;
  if (!publication) return end;
  await recordRunDrafts(inside, runId, { by: publicId('run', runId) });
  return endOfPublished(
    publication,
    end.error?.message ?? (end.status === 'cancelled' ? STOPPED : undefined),
  );
}

/** Drafts of a gap run after its publication, as its result stores them. */
export interface RunDrafts {
  /** uuids, in order of creation */
  claim_ids: string[];
  /** Groups without a draft, because undercharges cancel them out; the list is cut. */
  withheld: {
    provider: string;
    provider_account_id: string;
    kind: string;
    month: string;
    dispute_ids: string[];
    disputed_usd: string;
    undercharged_usd: string;
  }[];
}

/** Adds drafted and withheld claims to an open run's result. */
export async function recordRunDrafts(
  orgDb: OrgDb,
  runId: string,
  { by, withheld }: { by: string; withheld?: RunDrafts['withheld'] },
): Promise<void> {
  await orgDb.run(
    `with made as (
       select coalesce(jsonb_agg(c.id order by c.created_at, c.id), '[]'::jsonb) as ids
       from claims c where c.org_id = $1 and c.created_by = $3),
     known as (
       select coalesce($4::jsonb, result #> '{drafts,withheld}', '[]'::jsonb) as withheld
       from gap_runs where org_id = $1 and id = $2::uuid)
     update gap_runs r set result = r.result || jsonb_build_object('drafts', jsonb_build_object('claim_ids', made.ids, 'withheld', known.withheld))
     from made, known
     where r.org_id = $1 and r.id = $2::uuid and r.status in ('queued', 'running') and r.result is not null
       and (made.ids <> '[]'::jsonb or known.withheld <> '[]'::jsonb)`,
    [orgDb.orgId, runId, by, withheld === undefined ? null : JSON.stringify(withheld)],
  );
}

/**
 * Stores the message about a gap run that the caller's transaction has just ended; does nothing for other kinds of
 * runs.
 */
export async function publishGapRunEnd(inside: OrgDb, id: string): Promise<void> {
  const [row] = await inside.rows<{
    status: EndedGapRun['status'];
    period: string;
    provider: string | null;
    total: number | null;
    flagged: number | null;
    finished_at: bigint;
  }>(
    `select status, period, provider, (result ->> 'total')::bigint as total, (result ->> 'flagged')::bigint as flagged, finished_at
     from gap_runs where org_id = $1 and id = $2 and finished_at = now()`,
    [inside.orgId, id],
  );
  if (!row) return;
  await publishMessages(inside, [gapRunMessage({ id, ...row, finishedAtMicros: row.finished_at })]);
}
