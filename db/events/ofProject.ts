import type { OrgDb, SqlValue } from '../orgDb.js';

/**
 * The condition that keeps a statement to the handle's project, to stand behind others; nothing for a handle of the
 * whole organization. Pushes its value. Row-level security stands behind it (docs/decisions/0029).
 */
export function andOfProject(orgDb: OrgDb, values: SqlValue[], column = 'project_id'): string {
  return orgDb.projectId === undefined ? '' : ` and ${column} = $${values.push(orgDb.projectId)}`;
}
