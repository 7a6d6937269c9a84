import pg from 'pg';
import { INSTALLATION_LOCKS } from './locks.js';
import { MIGRATIONS } from './migrations/index.js';
import { ensurePartitions } from './partitions.js';

const MIGRATION_LOCK_TIMEOUT = '120s';

/**
 * Migrates the schema and creates the coming partitions, over a direct connection (a transaction pooler cannot hold the
 * lock). Returns the names of the applied migrations. `last` stops after that one: an import needs the schema under
 * which its rows were written.
 */
export async function migrate(directUrl: string, last?: string): Promise<{ applied: string[] }> {
  const client = new pg.Client({
    connectionString: directUrl,
    application_name: 'trueup-migrate',
    options: '-c timezone=UTC',
  });
  await client.connect();
  try {
    await client.query(`set lock_timeout = '${MIGRATION_LOCK_TIMEOUT}'`);
    await client.query('select pg_advisory_lock($1)', [INSTALLATION_LOCKS.migration]);
    await client.query(
      'create table if not exists schema_migrations (name text primary key, applied_at timestamptz not null default now())',
    );
    const done = new Set(
      (await client.query<{ name: string }>('select name from schema_migrations')).rows.map(
        (row) => row.name,
      ),
    );
    const applied: string[] = [];
    const wanted = MIGRATIONS.slice(0, MIGRATIONS.findIndex(({ name }) => name === last) + 1 || undefined);
    for (const migration of wanted) {
      if (done.has(migration.name)) continue;
      await applyOne(client, migration.name, migration.up);
      applied.push(migration.name);
    }
    await ensurePartitions(client);
    return { applied };
  } finally {
    await client.end();
  }
}

async function applyOne(client: pg.Client, name: string, sql: string): Promise<void> {
  await client.query('begin');
  try {
    await client.query(sql);
    await client.query('insert into schema_migrations (name) values ($1)', [name]);
    await client.query('commit');
  } catch (error) {
    await client.query('rollback');
    throw new Error(`migration ${name} failed: ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

/** Migrations that this version needs and the database lacks; API and worker refuse to start while there are any. */
export async function listPendingMigrations(directUrl: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: directUrl, application_name: 'trueup-migrate' });
  await client.connect();
  try {
    // The login of the API and the worker cannot read without a role.
    await client.query(
      `select set_config('role', rolname, false) from pg_roles where rolname = 'app_system' and pg_has_role(rolname, 'MEMBER')`,
    );
    const table = await client.query<{ present: boolean }>(
      `select to_regclass('public.schema_migrations') is not null as present`,
    );
    if (!table.rows[0]?.present) return MIGRATIONS.map((migration) => migration.name);
    const done = new Set(
      (await client.query<{ name: string }>('select name from schema_migrations')).rows.map(
        (row) => row.name,
      ),
    );
    return MIGRATIONS.filter((migration) => !done.has(migration.name)).map((migration) => migration.name);
  } finally {
    await client.end();
  }
}
