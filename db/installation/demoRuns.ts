import { DEMO_RUN_LOST_SECONDS, type DemoRunStatus } from '../../domain/installation/demoRuns.js';
import { column, defineEntity, findEntity, insertRow, listNewest } from '../entity.js';
import type { OrgDb } from '../orgDb.js';

/** A load of the demo. */
export interface DemoRun {
  id: string;
  status: DemoRunStatus;
  /** Its present step. */
  stage: string;
  errorMessage: string | null;
  createdAtMicros: bigint;
  startedAtMicros: bigint | null;
  finishedAtMicros: bigint | null;
}

const LOST = `finished_at is null and alive_at < now() - interval '${DEMO_RUN_LOST_SECONDS} seconds'`;

const DEMO_RUN = defineEntity<DemoRun>('demo_runs', {
  id: column(),
  status: column(),
  stage: column(),
  errorMessage: column(),
  createdAtMicros: column(),
  startedAtMicros: column(),
  finishedAtMicros: column(),
});

export async function findDemoRun(orgDb: OrgDb, id: string): Promise<DemoRun | undefined> {
  return findEntity(orgDb, DEMO_RUN, { id });
}

/** The organization's load that has not ended. */
export async function findOpenDemoRun(orgDb: OrgDb): Promise<DemoRun | undefined> {
  return findEntity(orgDb, DEMO_RUN, { finishedAtMicros: null });
}

/** The organization's newest load. */
export async function findNewestDemoRun(orgDb: OrgDb): Promise<DemoRun | undefined> {
  const [run] = await listNewest(orgDb, DEMO_RUN, { page: { limit: 1, offset: 0 } });
  return run;
}

export async function insertDemoRun(inside: OrgDb, run: { id: string; requestedBy: string }): Promise<void> {
  await insertRow(inside, 'demo_runs', { orgId: inside.orgId, ...run });
}

/** Ends loads whose program has died. */
export async function failLostDemoRuns(inside: OrgDb): Promise<void> {
  await inside.run(
    `update demo_runs set status = 'failed', finished_at = now(), error_message = 'the program that loaded it has ended: try again'
     where org_id = $1 and ${LOST}`,
    [inside.orgId],
  );
}

/** Records what a load is doing, and that its program lives; the stage undefined: the same as before. */
export async function recordDemoStage(orgDb: OrgDb, id: string, stage: string | undefined): Promise<void> {
  await orgDb.run(
    `update demo_runs set status = 'running', stage = coalesce($3, stage), alive_at = now(), started_at = coalesce(started_at, now())
     where org_id = $1 and id = $2 and finished_at is null`,
    [orgDb.orgId, id, stage ?? null],
  );
}

/** Ends a load; with a message it has failed. */
export async function recordDemoEnd(orgDb: OrgDb, id: string, errorMessage: string | null): Promise<void> {
  await orgDb.run(
    `update demo_runs set status = case when $3::text is null then 'succeeded' else 'failed' end, error_message = $3, finished_at = now()
     where org_id = $1 and id = $2 and finished_at is null`,
    [orgDb.orgId, id, errorMessage],
  );
}
