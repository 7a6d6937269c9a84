import { recordAudit } from '../../db/access/auditLog.js';
import { lockKeyRing, revokeKeys } from '../../db/access/keys.js';
import {
  archiveWorkspace,
  countOpenWorkspaces,
  findWorkspace,
  insertWorkspace,
  renameWorkspace,
  type Workspace,
} from '../../db/access/workspaces.js';
import type { OrgDb } from '../../db/orgDb.js';
import type { AuditAction, AuditDetails } from '../../domain/access/auditLog.js';
import { DomainError } from '../../domain/errors.js';
import { publicId } from '../../domain/ids.js';
import { type KeyAuthor, nameOfActor } from './keyChanges.js';

/** Most workspaces of one organization that are not archived. */
export const WORKSPACES_MAX = 1_000;

type WorkspaceAuthor = Pick<KeyAuthor, 'actor' | 'requestId'>;

/** Creates a workspace. Errors: project_taken, too_many_items. */
export async function createWorkspace(
  orgDb: OrgDb,
  wanted: { id: string; name: string; projectId: string },
  by: WorkspaceAuthor,
): Promise<Workspace> {
  return orgDb.transaction(async (inside) => {
    await lockKeyRing(inside);
    if ((await countOpenWorkspaces(inside)) >= WORKSPACES_MAX)
      throw new DomainError(
        'too_many_items',
        `an organization can have ${WORKSPACES_MAX} workspaces: archive some that are no longer used`,
      );
    const workspace = await insertWorkspace(inside, { ...wanted, createdBy: nameOfActor(by.actor) });
    if (!workspace)
      throw new DomainError(
        'project_taken',
        'another workspace has this project_id: use it, or archive it first',
      );
    const { name, projectId } = workspace;
    await record(inside, by, 'workspace.created', workspace.id, { name, project_id: projectId });
    return workspace;
  });
}

/** Renames a workspace. Errors: not_found, workspace_archived. */
export async function changeWorkspace(
  orgDb: OrgDb,
  id: string,
  change: { name?: string | undefined },
  by: WorkspaceAuthor,
): Promise<Workspace> {
  return orgDb.transaction(async (inside) => {
    const before = await getWorkspace(inside, id);
    if (before.archivedAtMicros !== null) throw archived();
    if (change.name === undefined || change.name === before.name) return before;
    const workspace = await renameWorkspace(inside, id, change.name);
    if (!workspace) throw archived();
    await record(inside, by, 'workspace.changed', id, { name: workspace.name });
    return workspace;
  });
}

/**
 * Archives a workspace and revokes its keys, in one transaction; its calls stay. undefined: it does not exist, or was
 * already archived.
 */
export async function archiveWithKeys(
  orgDb: OrgDb,
  id: string,
  by: WorkspaceAuthor,
): Promise<Workspace | undefined> {
  return orgDb.transaction(async (inside) => {
    // Keys are locked before workspaces, in the same order as when a key is created.
    await lockKeyRing(inside);
    const who = nameOfActor(by.actor);
    const workspace = await archiveWorkspace(inside, id, who);
    if (!workspace) return undefined;
    const revoked = await revokeKeys(inside, { workspaceId: id }, who);
    await record(inside, by, 'workspace.archived', id, { revoked_keys: revoked.length });
    for (const keyId of revoked)
      await recordAudit(inside, {
        actor: by.actor,
        requestId: by.requestId,
        action: 'key.revoked',
        subject: { type: 'key', id: keyId },
        details: { workspace_id: publicId('wsp', id) },
      });
    return workspace;
  });
}

async function getWorkspace(inside: OrgDb, id: string): Promise<Workspace> {
  const workspace = await findWorkspace(inside, id);
  if (!workspace) throw new DomainError('not_found', 'there is no workspace with this id');
  return workspace;
}

function archived(): DomainError {
  return new DomainError('workspace_archived', 'the workspace is archived: make another one');
}

async function record(
  inside: OrgDb,
  { actor, requestId }: WorkspaceAuthor,
  action: AuditAction,
  id: string,
  details: AuditDetails,
): Promise<void> {
  const subject = { type: 'workspace', id: publicId('wsp', id) };
  await recordAudit(inside, { action, actor, subject, details, requestId });
}
