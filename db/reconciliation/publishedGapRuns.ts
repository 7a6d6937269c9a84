import { publicId } from '../../domain/ids.js';
import { endOfPublished, type Publication } from '../../domain/reconciliation/publishedRun.js';
import { lockByName } from '../locks.js';
import type { OrgDb } from '../orgDb.js';
import type { GapRunResult } from './gapRuns.js';
import { recordRunDrafts } from './runDrafts.js';

/** A gap run that has not ended. */
export interface OpenGapRun {
  /** Undefined while it has published nothing. */
  publication?: Publication;
  isCancelRequested: boolean;
}

/**
 * Holds a run that is about to publish until the transaction ends: no other run of the organization publishes or takes a
 * turn meanwhile. Undefined when the run has ended.
 */
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

/**
 * Notes on an open run, in the transaction that publishes its findings, what it came to. Other runs may explain from then
 * on; this one ends once its claims are drafted.
 */
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

/**
 * Keeps a run that has published from ending until the transaction does, so that what the transaction makes belongs to
 * the run. False when the run has ended, or has published nothing that claims could rest on.
 */
export async function keepPublishedRunOpen(inside: OrgDb, runId: string): Promise<boolean> {
  const rows = await inside.rows(
    `select from gap_runs where org_id = $1 and id = $2 and status in ('queued', 'running')
       and published_status in ('succeeded', 'partial') for share`,
    [inside.orgId, runId],
  );
  return rows.length === 1;
}

const STOPPED = 'the run was stopped before all that follows from its findings was done';

/**
 * How a run ends, in the transaction that ends it: as it was asked to, or, when it has published, as `endOfPublished` says,
 * with the claims that it has drafted in its result.
 */
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
