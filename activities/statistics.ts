import { refreshStatistics } from '../db/statistics.js';
import type { ActivityDeps } from './deps.js';

/** Analyzes what was written in bulk. Reads work without it, so a failure is no matter: the next round repeats it. */
export async function analyzeAfterBulk(deps: Pick<ActivityDeps, 'database' | 'logger'>): Promise<void> {
  await refreshStatistics(deps.database).catch((error: unknown) =>
    deps.logger.warn({ err: error }, 'tables could not be analyzed'),
  );
}
