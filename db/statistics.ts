import type { Database } from './client.js';
import { unscoped } from './orgDb.js';

/**
 * Postgres samples 300 rows for each unit of this target, 100 by default. A quarter costs an eighth of the time on
 * `events`. Statements do not depend on finer statistics (docs/decisions/0042), which autovacuum makes in its own time.
 */
const SAMPLE = 'set local default_statistics_target = 25';

/**
 * Analyzes tables never analyzed or grown by half, so that plans do not wait for autovacuum, and runs `afterEach` after
 * each. Returns their names.
 */
export async function refreshStatistics(
  database: Database,
  afterEach?: () => Promise<void>,
): Promise<string[]> {
  const why = 'statistics of tables, which hold rows of all organizations';
  const grown = await unscoped(database, why, (system) =>
    system.rows<{ name: string }>('select tables_to_analyze() as name'),
  );
  const analyzed: string[] = [];
  for (const { name } of grown) {
    const [row] = await unscoped(database, why, async (system) => {
      await system.run(SAMPLE);
      return system.rows<{ is_done: boolean }>('select analyze_table($1) as is_done', [name]);
    });
    if (row?.is_done) analyzed.push(name);
    await afterEach?.();
  }
  return analyzed;
}
