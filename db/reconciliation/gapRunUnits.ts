import type { OrgDb } from '../orgDb.js';
import { textArray } from '../pgArray.js';
import type { GapRun } from './gapRuns.js';

/** The provider-days that a gap run compares, and its progress through them. */

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

/**
 * Stores an open run's units in their order; a repeat changes nothing. Returns how many the run has; none where it has
 * ended.
 */
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
  );
  return rows[0];
}

/** Notes that a unit failed for good. */
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

/** Holds a run that has neither ended nor published until the transaction ends; false where it has. */
async function lockUnpublishedRun(inside: OrgDb, runId: string): Promise<boolean> {
  const rows = await inside.rows(
    `select from gap_runs where org_id = $1 and id = $2 and status in ('queued', 'running') and published_at is null
     for no key update`,
    [inside.orgId, runId],
  );
  return rows.length === 1;
}

/**
 * Sets an open run's progress from its units and series, so that it is right however often a unit was repeated. The row is
 * locked before the units are counted: a count beside the update would not see a unit that ends at the same time. The lock
 * is the weaker one that the units' foreign keys allow.
 */
export async function countGapRunUnits(inside: OrgDb, runId: string): Promise<void> {
  if (!(await lockUnpublishedRun(inside, runId))) return;
  await inside.run(
    `update gap_runs set heartbeat_at = now(),
       done_units = (select count(*) from gap_run_units u where u.org_id = $1 and u.run_id = $2 and u.status <> 'pending')
         + (select count(*) from gap_run_series s where s.org_id = $1 and s.run_id = $2 and s.is_done)
     where org_id = $1 and id = $2`,
    [inside.orgId, runId],
  );
}
