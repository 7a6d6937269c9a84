import type { ConnectionStatus } from '../domain/billing/connections.js';
import { DomainError } from '../domain/errors.js';
import type { RetentionStep } from '../domain/installation/retention.js';
import { describeRun, RUN_KINDS } from '../domain/runs/runKinds.js';
import type { AttemptAnswer } from '../domain/webhooks/retrySchedule.js';
import type { Database } from './client.js';
import { MIGRATIONS } from './migrations/index.js';
import { type SystemDb, unscoped } from './orgDb.js';
import { isRunRow } from './runs/runTable.js';

export type DatabaseState = 'up' | 'behind' | 'down';

export async function getDatabaseState(database: Database): Promise<DatabaseState> {
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

/** The server's version and its clock, milliseconds since 1970. */
export const SERVER_STATE = `select current_setting('server_version') as version, (extract(epoch from clock_timestamp()) * 1000)::text as now_ms`;

/** Far more than the memory of the probe's statement, and small for a disk. */
const PROBE_ROWS = 40_000;

/** Makes Postgres write about a megabyte to its disk, in a temporary file that ends with the statement. */
export const STORAGE_PROBE = {
  memory: `select set_config('work_mem', '64kB', true)`,
  write: `select count(*) from generate_series(1, ${PROBE_ROWS})`,
};

/** Tests a write: the disk may be full for Postgres alone (a quota, reserved blocks). 'unknown': no answer. */
export async function findFullStorage(database: Database): Promise<'ok' | 'full' | 'unknown'> {
  try {
    await unscoped(database, 'health concerns no organization', async (system) => {
      await system.rows(STORAGE_PROBE.memory);
      await system.rows(STORAGE_PROBE.write);
    });
    return 'ok';
  } catch (error) {
    return error instanceof DomainError && error.code === 'storage_full' ? 'full' : 'unknown';
  }
}

interface Backlog {
  /** Undelivered messages to Temporal. */
  outboxMessages: number;
  /** Seconds since the oldest of them was written; 0 when there is none. */
  outboxAgeSeconds: number;
  /** Runs of every kind that are queued or running. */
  openRuns: number;
  /** Invoices that are not read and compared yet. */
  waitingInvoices: number;
  connections: Partial<Record<ConnectionStatus, number>>;
  /**
   * Seconds since the last complete sync of the connection that has waited longest, except paused ones; 0 without any.
   */
  syncAgeSeconds: number;
  /** Seconds since the last success of each retention step that ever succeeded. */
  retentionAgeSeconds: Partial<Record<RetentionStep, number>>;
  webhooks: WebhookBacklog;
}

interface WebhookBacklog {
  pending: number;
  /** Seconds by which the oldest pending attempt is overdue; 0 when none is late. */
  overdueSeconds: number;
  /** Ended attempts that began in the last hour, by answer. */
  attemptsOfHour: Partial<Record<AttemptAnswer, number>>;
}

const OPEN_RUNS = RUN_KINDS.map(
  (kind) =>
    `(select count(*) from ${describeRun(kind).table} where ${isRunRow(kind)} and status in ('queued', 'running'))`,
).join(' + ');

/** Reads the backlog of all organizations; undefined: the database does not answer. */
export async function findBacklog(database: Database): Promise<Backlog | undefined> {
  try {
    return await unscoped(database, 'metrics concern no organization', async (system) => {
      const [row] = await system.rows<Omit<Backlog, 'webhooks'>>(
        `select (select count(*) from outbox where dispatched_at is null and dead_at is null)::bigint as "outboxMessages",
           coalesce((select extract(epoch from now() - min(created_at)) from outbox where dispatched_at is null and dead_at is null), 0)::float8 as "outboxAgeSeconds",
           (${OPEN_RUNS})::bigint as "openRuns",
           (select count(*) from invoices where status in ('received', 'extracting', 'matching'))::bigint as "waitingInvoices",
           (select coalesce(jsonb_object_agg(status, n), '{}') from (select status, count(*) as n from billing_connections where removed_at is null group by 1) c) as connections,
           coalesce((select extract(epoch from now() - min(coalesce(last_synced_at, created_at))) from billing_connections
             where removed_at is null and status <> 'paused'), 0)::float8 as "syncAgeSeconds",
           (select coalesce(jsonb_object_agg(step, age), '{}') from (
             select step, extract(epoch from now() - max(finished_at))::float8 as age from retention_runs
             where error_message is null and finished_at is not null group by step) r) as "retentionAgeSeconds"`,
      );
      const webhooks = await readWebhookBacklog(system);
      return row && { ...row, webhooks };
    });
  } catch {
    return undefined;
  }
}

async function readWebhookBacklog(system: SystemDb): Promise<WebhookBacklog> {
  const [row] = await system.rows<WebhookBacklog>(
    `select (select count(*) from webhook_deliveries where status = 'pending')::bigint as pending,
       coalesce((select greatest(0, extract(epoch from now() - min(next_attempt_at))) from webhook_deliveries where status = 'pending'), 0)::float8 as "overdueSeconds",
       (select coalesce(jsonb_object_agg(answer, n), '{}') from (
         select case when http_status is null then 'unanswered' when http_status between 200 and 299 then 'delivered'
             when http_status = 410 then 'gone' when http_status between 300 and 399 then 'redirected'
             when http_status between 400 and 499 then 'rejected' else 'failed' end as answer, count(*) as n
         from webhook_attempts where started_at > now() - interval '1 hour' and duration_ms is not null group by 1) a) as "attemptsOfHour"`,
  );
  return row ?? { pending: 0, overdueSeconds: 0, attemptsOfHour: {} };
}
