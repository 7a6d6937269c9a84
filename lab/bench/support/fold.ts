import type { Database } from '../../../db/client.js';
import { foldUsage, listUnfoldedOrganizations } from '../../../db/usage/rollups.js';

/** Folds until every stored event is in its organization's totals. */
export async function foldEverything(database: Database): Promise<void> {
  for (const orgId of await listUnfoldedOrganizations(database)) {
    while ((await foldUsage(database, orgId)).more);
  }
}
