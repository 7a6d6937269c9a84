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
