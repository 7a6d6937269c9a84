import type { Database } from '../db/client.js';
import { OrgDb } from '../db/orgDb.js';

/** What use cases need that work beyond one request; the rooms that call them pass it on and know nothing of db. */
export interface UseCaseDeps {
  database: Database;
}

/** The handle of an organization, or of one project of it. */
export function orgDbOf({ database }: UseCaseDeps, orgId: string, projectId?: string | undefined): OrgDb {
  return new OrgDb(database, orgId, { projectId });
}
