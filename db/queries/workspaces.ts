import { isoFromMicros } from '../../domain/period.js';
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

/** Workspaces, the newest first; `after` is the time and id of the last one that was seen. */
export async function listWorkspaces(
  orgDb: OrgDb,
  filter: { archived?: boolean | undefined; projectId?: string | undefined },
  page: { limit: number; offset: number; after?: { micros: bigint; id: string } | undefined },
): Promise<Workspace[]> {
  const rows = await orgDb.rows<WorkspaceRow>(
    `select ${COLUMNS} from workspaces where org_id = $1 and ($2::boolean is null or (archived_at is not null) = $2)
       and ($3::text is null or project_id = $3) and ($4::timestamptz is null or (created_at, id) < ($4, $5::uuid))
     order by created_at desc, id desc limit $6 offset $7`,
    [
      orgDb.orgId,
      filter.archived ?? null,
      filter.projectId ?? null,
      page.after ? isoFromMicros(page.after.micros) : null,
      page.after?.id ?? null,
      page.limit,
      page.offset,
    ],
  );
  return rows.map(fromWorkspaceRow);
}

export async function findWorkspace(orgDb: OrgDb, id: string): Promise<Workspace | undefined> {
  const rows = await orgDb.rows<WorkspaceRow>(
    `select ${COLUMNS} from workspaces where org_id = $1 and id = $2`,
    [orgDb.orgId, id],
  );
  return rows[0] && fromWorkspaceRow(rows[0]);
}

/** As `findWorkspace`; until the transaction ends nobody archives it. */
export async function lockWorkspace(inside: OrgDb, id: string): Promise<Workspace | undefined> {
  const rows = await inside.rows<WorkspaceRow>(
    `select ${COLUMNS} from workspaces where org_id = $1 and id = $2 for share`,
    [inside.orgId, id],
  );
  return rows[0] && fromWorkspaceRow(rows[0]);
}

/** How many workspaces are not archived. */
export async function countOpenWorkspaces(orgDb: OrgDb): Promise<number> {
  const [row] = await orgDb.rows<{ count: number }>(
    'select count(*) as count from workspaces where org_id = $1 and archived_at is null',
    [orgDb.orgId],
  );
  return row?.count ?? 0;
}

/** Renames a workspace that is not archived; undefined when there is none. */
export async function renameWorkspace(
  orgDb: OrgDb,
  id: string,
  name: string,
): Promise<Workspace | undefined> {
  const rows = await orgDb.rows<WorkspaceRow>(
    `update workspaces set name = $3 where org_id = $1 and id = $2 and archived_at is null returning ${COLUMNS}`,
    [orgDb.orgId, id, name],
  );
  return rows[0] && fromWorkspaceRow(rows[0]);
}

/** Archives a workspace; undefined when there is none that is not archived. */
export async function archiveWorkspace(
  orgDb: OrgDb,
  id: string,
  archivedBy: string,
): Promise<Workspace | undefined> {
  const rows = await orgDb.rows<WorkspaceRow>(
    `update workspaces set archived_at = now(), archived_by = $3 where org_id = $1 and id = $2 and archived_at is null
     returning ${COLUMNS}`,
    [orgDb.orgId, id, archivedBy],
  );
  return rows[0] && fromWorkspaceRow(rows[0]);
}
