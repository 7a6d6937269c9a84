import {
  describeRun,
  type OutboxKind,
  type OutboxMessage,
  RUN_KINDS,
  type RunKind,
} from '../../domain/runs/runKinds.js';
import type { Database } from '../client.js';
import { insertRow } from '../entity.js';
import { type OrgDb, unscoped } from '../orgDb.js';
import { plainArray } from '../pgArray.js';
import { isRunRow } from './runTable.js';

/** Stores a message; call it in the transaction of the row that it announces. */
export async function insertOutboxMessage(orgDb: OrgDb, kind: OutboxKind, subjectId: string): Promise<void> {
  await insertRow(orgDb, 'outbox', { orgId: orgDb.orgId, kind, subjectId });
}

const WHY = 'the dispatcher delivers the messages of every organization';

/** Takes due messages under a lease: no two dispatchers hold one, and those of a killed dispatcher become due again. */
export async function claimOutboxMessages(
  database: Database,
  limit: number,
  leaseSeconds: number,
): Promise<OutboxMessage[]> {
  return unscoped(database, WHY, (system) =>
    system.rows<OutboxMessage>(
      `update outbox o set attempts = o.attempts + 1, next_attempt_at = now() + make_interval(secs => $2)
       from (select org_id, id from outbox
             where dispatched_at is null and dead_at is null and next_attempt_at <= now()
             order by next_attempt_at, id limit $1 for update skip locked) due
       where o.org_id = due.org_id and o.id = due.id
       returning o.org_id as "orgId", o.id, o.kind, o.subject_id as "subjectId", o.attempts`,
      [limit, leaseSeconds],
    ),
  );
}

export async function markOutboxDispatched(
  database: Database,
  messages: readonly OutboxMessage[],
): Promise<void> {
  await unscoped(database, WHY, (system) =>
    system.run(
      `update outbox o set dispatched_at = now(), last_error = null
       from unnest($1::uuid[], $2::bigint[]) as m (org_id, id) where o.org_id = m.org_id and o.id = m.id`,
      [plainArray(messages.map(({ orgId }) => orgId)), plainArray(messages.map(({ id }) => id))],
    ),
  );
}

/** Schedules another attempt for a message. */
export async function retryOutboxMessage(
  database: Database,
  message: OutboxMessage,
  error: string,
  delaySeconds: number,
): Promise<void> {
  await unscoped(database, WHY, (system) =>
    system.run(
      'update outbox set last_error = $3, next_attempt_at = now() + make_interval(secs => $4) where org_id = $1 and id = $2 and dispatched_at is null',
      [message.orgId, message.id, error.slice(0, 1_000), delaySeconds],
    ),
  );
}

/** Gives a message up. The caller ends its subject visibly. */
export async function killOutboxMessage(
  database: Database,
  message: OutboxMessage,
  error: string,
): Promise<void> {
  await unscoped(database, WHY, (system) =>
    system.run(
      'update outbox set last_error = $3, dead_at = now() where org_id = $1 and id = $2 and dispatched_at is null',
      [message.orgId, message.id, error.slice(0, 1_000)],
    ),
  );
}

/** A run that should be in progress and shows no heartbeat. */
export interface StalledRun {
  orgId: string;
  id: string;
  kind: RunKind;
  status: 'queued' | 'running';
}

/** Runs queued too long without a message, and running ones without a recent heartbeat. */
export async function listStalledRuns(
  database: Database,
  limits: { queuedSeconds: number; silentSeconds: number },
): Promise<StalledRun[]> {
  const stalled = (kind: RunKind) => `
    select t.org_id as "orgId", t.id, '${kind}' as kind, t.status from ${describeRun(kind).table} t
    where ${isRunRow(kind)} and ((t.status = 'queued' and t.created_at < now() - make_interval(secs => $1)
        and not exists (select from outbox o where o.org_id = t.org_id and o.subject_id = t.id and o.dispatched_at is null and o.dead_at is null))
       or (t.status = 'running' and coalesce(t.heartbeat_at, t.created_at) < now() - make_interval(secs => $2)))`;
  return unscoped(database, 'the sweeper looks for stalled runs of every organization', (system) =>
    system.rows<StalledRun>(`${RUN_KINDS.map(stalled).join(' union all ')} limit 1000`, [
      limits.queuedSeconds,
      limits.silentSeconds,
    ]),
  );
}

export async function pruneOutbox(database: Database, days: number): Promise<void> {
  await unscoped(database, 'delivered messages of every organization grow old', (system) =>
    system.run('delete from outbox where dispatched_at < now() - make_interval(days => $1)', [days]),
  );
}

/** Deletes chunks of uploads whose process died: older than `hours` and without an import. */
export async function deleteOrphanedPages(database: Database, hours: number): Promise<number> {
  return unscoped(database, 'broken uploads of every organization leave chunks behind', (system) =>
    system.run(
      `delete from billing_pages p where p.received_at < now() - make_interval(hours => $1)
       and not exists (select from billing_sources s where s.org_id = p.org_id and s.id = p.source_id)`,
      [hours],
    ),
  );
}
