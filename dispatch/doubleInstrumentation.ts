import type { Logger } from 'pino';
import type { Database } from '../db/client.js';
import { listDoublyToldOrganizations, tellDoubleTellings } from '../db/events/doubleTellings.js';
import { OrgDb } from '../db/orgDb.js';

/**
 * One round of the duty that finds services which are instrumented twice and puts a notice into the feed of each
 * organization that has one. One organization that cannot be looked at keeps none of the others from it.
 */
export async function tellDoubleInstrumentation(
  database: Database,
  logger: Logger,
  nowMicros: bigint,
): Promise<number> {
  let told = 0;
  for (const orgId of await listDoublyToldOrganizations(database, nowMicros)) {
    told += await tellDoubleTellings(new OrgDb(database, orgId), nowMicros).catch((error: unknown) => {
      logger.warn({ err: error, orgId }, 'calls were not looked through for services instrumented twice');
      return 0;
    });
  }
  return told;
}
