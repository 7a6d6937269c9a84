import type { OrgDb } from '../orgDb.js';

/** A part of an organization: the calls of one project, and the keys that see no others. */
export interface Workspace {
  id: string;
  name: string;
  /** The label that its calls carry. */
  projectId: string;
  createdBy: string;
  createdAtMicros: bigint;
  archivedAtMicros: bigint | null;
}

interface WorkspaceRow {
  id: string;
  name: string;
  project_id: string;
  created_by: string;
  created_at: bigint;
  archived_at: bigint | null;
}

const COLUMNS = 'id, name, project_id, created_by, created_at, archived_at';

function fromWorkspaceRow(row: WorkspaceRow): Workspace {
  return {
    id: row.id,
    name: row.name,
    projectId: row.project_id,
    createdBy: row.created_by,
    createdAtMicros: row.created_at,
    archivedAtMicros: row.archived_at,
  };
}

export type NewWorkspace = Pick<Workspace, 'id' | 'name' | 'projectId' | 'createdBy'>;

/** Stores a workspace; undefined when another one that is not archived has the project. */
export async function insertWorkspace(orgDb: OrgDb, workspace: NewWorkspace): Promise<Workspace | undefined> {
  const rows = await orgDb.rows<WorkspaceRow>(
    `insert into workspaces (org_id, id, name, project_id, created_by) values ($1, $2, $3, $4, $5)
     on conflict (org_id, project_id) where archived_at is null do nothing returning ${COLUMNS}`,
    [orgDb.orgId, workspace.id, workspace.name, workspace.projectId, workspace.createdBy],
  );
  return rows[0] && fromWorkspaceRow(rows[0]);
}
