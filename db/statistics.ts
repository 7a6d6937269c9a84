import type { Database } from './client.js';
import { unscoped } from './orgDb.js';

/**
 * Analyzes every table that has never been, or that has grown by half since: so that plans rest on what was just written and
 * not on when autovacuum comes by. Cheap where nothing has grown. Each table is analyzed in a transaction of its own; a
 * repeat, or a second process at the same time, finds less to do. Returns the names.
 */
export async function refreshStatistics(database: Database): Promise<string[]> {
  const why = 'statistics of tables, which hold rows of all organizations';
  const grown = await unscoped(database, why, (system) =>
    system.rows<{ name: string }>('select tables_to_analyze() as name'),
  );
  const analyzed: string[] = [];
  for (const { name } of grown) {
    const [row] = await unscoped(database, why, (system) =>
      system.rows<{ is_done: boolean }>('select analyze_table($1) as is_done', [name]),
    );
    if (row?.is_done) analyzed.push(name);
  }
  return analyzed;
}
