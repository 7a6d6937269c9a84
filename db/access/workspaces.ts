import { column, defineEntity, findEntity, listNewest, type TimePage } from '../entity.js';
import type { OrgDb } from '../orgDb.js';

/** A workspace: one project's calls, and the keys that see only them. */
export interface Workspace {
  id: string;
  name: string;
  /** The project label of its calls. */
  projectId: string;
  createdBy: string;
  createdAtMicros: bigint;
  archivedAtMicros: bigint | null;
}

const WORKSPACE = defineEntity<Workspace>('workspaces', {
  id: column(),
  name: column(),
  projectId: column(),
  createdBy: column(),
  createdAtMicros: column(),
  archivedAtMicros: column(),
});

export type NewWorkspace = Pick<Workspace, 'id' | 'name' | 'projectId' | 'createdBy'>;

export async function insertWorkspace(orgDb: OrgDb, workspace: NewWorkspace): Promise<Workspace | undefined> {
  const rows = await orgDb.rows<Workspace>(
    `insert into workspaces (org_id, id, name, project_id, created_by) values ($1, $2, $3, $4, $5)
     on conflict (org_id, project_id) where archived_at is null do nothing returning ${WORKSPACE.columns}`,
    [orgDb.orgId, workspace.id, workspace.name, workspace.projectId, workspace.createdBy],
  );
  return rows[0];
}

export async function listWorkspaces(
  orgDb: OrgDb,
  filter: { archived?: boolean | undefined; projectId?: string | undefined },
  page: TimePage,
): Promise<Workspace[]> {
  return listNewest(orgDb, WORKSPACE, {
    where: { project_id: filter.projectId },
    and: (query) => {
      if (filter.archived === true) query.whereNotNull('archived_at');
      if (filter.archived === false) query.whereNull('archived_at');
    },
    page,
  });
}

export function findWorkspace(orgDb: OrgDb, id: string): Promise<Workspace | undefined> {
  return findEntity(orgDb, WORKSPACE, { id });
}

/** `findWorkspace` with a lock: the workspace cannot be archived until the transaction ends. */
export function lockWorkspace(inside: OrgDb, id: string): Promise<Workspace | undefined> {
  return findEntity(inside, WORKSPACE, { id }, 'for share');
}

export async function countOpenWorkspaces(orgDb: OrgDb): Promise<number> {
  const [row] = await orgDb.rows<{ count: number }>(
    'select count(*) as count from workspaces where org_id = $1 and archived_at is null',
    [orgDb.orgId],
  );
  return row?.count ?? 0;
}

export async function renameWorkspace(
  orgDb: OrgDb,
  id: string,
  name: string,
): Promise<Workspace | undefined> {
  const rows = await orgDb.rows<Workspace>(
    `update workspaces set name = $3 where org_id = $1 and id = $2 and archived_at is null returning ${WORKSPACE.columns}`,
    [orgDb.orgId, id, name],
  );
  return rows[0];
}

export async function archiveWorkspace(
  orgDb: OrgDb,
  id: string,
  archivedBy: string,
): Promise<Workspace | undefined> {
  const rows = await orgDb.rows<Workspace>(
    `update workspaces set archived_at = now(), archived_by = $3 where org_id = $1 and id = $2 and archived_at is null
     returning ${WORKSPACE.columns}`,
    [orgDb.orgId, id, archivedBy],
  );
  return rows[0];
}
