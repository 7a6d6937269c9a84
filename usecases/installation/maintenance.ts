import pg from 'pg';
import type { Logger } from 'pino';
import { deleteOldIdentities } from '../../db/events/callIdentities.js';
import { deleteOldMeteredUsage } from '../../db/events/meteredUsage.js';
import { deleteOldRecords } from '../../db/events/observationRecords.js';
import { deleteOldPairable } from '../../db/events/pairedReports.js';
import { ensurePartitions } from '../../db/partitions.js';
import { refreshStatistics } from '../../db/statistics.js';
import type { UseCaseDeps } from '../useCaseDeps.js';

/** Creates the partitions of the coming months, as the tables' owner over a direct connection. */
export async function makePartitions(directUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: directUrl, application_name: 'trueup-maintenance' });
  await client.connect();
  try {
    await ensurePartitions(client);
  } finally {
    await client.end();
  }
}

/**
 * Deletes old span identities, parts of observations, series of metrics and paired reports, a bounded number at a time;
 * returns the number deleted.
 */
export async function pruneCallSpans({ database }: UseCaseDeps): Promise<number> {
  const identities = await deleteOldIdentities(database);
  const records = (await deleteOldRecords(database)) + (await deleteOldMeteredUsage(database));
  return identities + records + (await deleteOldPairable(database));
}

/** Analyzes tables that have grown, so that query plans match the stored data; runs `afterEach` after each. */
export async function analyzeGrownTables(
  { database }: UseCaseDeps,
  afterEach?: () => Promise<void>,
): Promise<void> {
  await refreshStatistics(database, afterEach);
}

/** Analyzes bulk-written tables. Reads work without it, so a failure is ignored; the next round repeats it. */
export async function analyzeAfterBulk(deps: UseCaseDeps & { logger: Logger }): Promise<void> {
  await refreshStatistics(deps.database).catch((error: unknown) =>
    deps.logger.warn({ err: error }, 'tables could not be analyzed'),
  );
}
