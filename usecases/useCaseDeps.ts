import type { Database } from '../db/client.js';
import { OrgDb } from '../db/orgDb.js';

/** Dependencies of use cases that work outside of a request; callers pass them on without importing db. */
export interface UseCaseDeps {
  database: Database;
}

/** The database handle of an organization, or of one project of it. */
export function orgDbOf({ database }: UseCaseDeps, orgId: string, projectId?: string | undefined): OrgDb {
  return new OrgDb(database, orgId, { projectId });
}
