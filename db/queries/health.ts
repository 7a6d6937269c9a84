import type { ConnectionStatus } from '../../domain/billing/connections.js';
import type { RetentionStep } from '../../domain/retention.js';
import type { Database } from '../client.js';
import { MIGRATIONS } from '../migrations/index.js';
import { unscoped } from '../orgDb.js';

/** Whether the database answers and has every migration that this version needs. */
export async function pingDatabase(database: Database): Promise<'up' | 'behind' | 'down'> {
  try {
    const rows = await unscoped(database, 'health concerns no organization', (system) =>
      system.rows<{ name: string }>('select name from schema_migrations'),
    );
    const done = new Set(rows.map((row) => row.name));
    return MIGRATIONS.every((migration) => done.has(migration.name)) ? 'up' : 'behind';
  } catch {
    return 'down';
  }
}

/** Work that waits behind the API: what a scrape of the metrics shows. */
export interface Backlog {
  /** Messages to the workflow engine that are not delivered. */
  outboxMessages: number;
  /** Seconds since the oldest of them was written; 0 when there is none. */
  outboxAgeSeconds: number;
  /** Runs, imports and syncs that are queued or at work. */
  openRuns: number;
  /** Billing connections by status. */
  connections: Partial<Record<ConnectionStatus, number>>;
  /** Seconds since the connection that has waited longest, and is not paused, was fetched whole; 0 without any. */
  syncAgeSeconds: number;
  /** Seconds since each step of the retention succeeded, of those that ever did. */
  retentionAgeSeconds: Partial<Record<RetentionStep, number>>;
}

/** Looks across all organizations; undefined when the database does not answer. */
export async function readBacklog(database: Database): Promise<Backlog | undefined> {
  try {
    const [row] = await unscoped(database, 'metrics concern no organization', (system) =>
      system.rows<{
        messages: number;
        age: number;
        runs: number;
        connections: Backlog['connections'];
        sync_age: number;
        retention_age: Backlog['retentionAgeSeconds'];
      }>(
        `select (select count(*) from outbox where dispatched_at is null and dead_at is null)::bigint as messages,
           coalesce((select extract(epoch from now() - min(created_at)) from outbox where dispatched_at is null and dead_at is null), 0)::float8 as age,
           ((select count(*) from gap_runs where status in ('queued', 'running'))
             + (select count(*) from billing_sources where kind = 'file' and status in ('queued', 'running'))
             + (select count(*) from sync_runs where status in ('queued', 'running')))::bigint as runs,
           (select coalesce(jsonb_object_agg(status, n), '{}') from (select status, count(*) as n from billing_connections where removed_at is null group by 1) c) as connections,
           coalesce((select extract(epoch from now() - min(coalesce(last_synced_at, created_at))) from billing_connections
             where removed_at is null and status <> 'paused'), 0)::float8 as sync_age,
           (select coalesce(jsonb_object_agg(step, age), '{}') from (
             select step, extract(epoch from now() - max(finished_at))::float8 as age from retention_runs
             where error_message is null and finished_at is not null group by step) r) as retention_age`,
      ),
    );
    return (
      row && {
        outboxMessages: row.messages,
        outboxAgeSeconds: row.age,
        openRuns: row.runs,
        connections: row.connections,
        syncAgeSeconds: row.sync_age,
        retentionAgeSeconds: row.retention_age,
      }
    );
  } catch {
    return undefined;
  }
}
