import type { Database } from '../db/client.js';
import { OrgDb } from '../db/orgDb.js';
import { listSavingsDue } from '../db/policies/savingsDue.js';
import { queueSavingsRun } from '../usecases/policies/openSavingsRun.js';

/** Runs of the instance that are open at once, beyond which none is opened that nobody asked for. */
const OPEN_MAX = 20;

/**
 * Opens a savings run for each organization whose result has grown old. Two processes that do it at the same time open one
 * all the same. Returns how many it opened.
 */
export async function openDueSavings(database: Database, nowMicros: bigint): Promise<number> {
  let opened = 0;
  for (const orgId of await listSavingsDue(database, OPEN_MAX))
    if (await queueSavingsRun(new OrgDb(database, orgId), nowMicros, 'schedule')) opened += 1;
  return opened;
}
